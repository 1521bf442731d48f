"""What a policy says of one side."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account, Kerberos, Tls, Warehouse, with_tokens_of_their_own

ACCOUNT = Kerberos(principal="repl@A.COM", keytab="/etc/repl.keytab", metastore_principal="hive/_HOST@A.COM")
HDFS = Root(uri="hdfs://n:8020/", webhdfs="http://n:9870")


def test_an_account_comes_back() -> None:
    side = Warehouse(metastore="thrift://m:9083", kerberos=ACCOUNT, roots=(HDFS, Root(uri="s3://bucket/")))
    assert Warehouse(**side.model_dump()) == side


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keytab": "/k", "metastore_principal": "hive/h@A"}, "keytab needs principal"),
        ({"principal": "repl", "metastore_principal": "hive/h@A"}, "principal"),
        ({"principal": "repl@A", "keytab": "k", "metastore_principal": "hive/h@A"}, "keytab"),
        ({"metastore_principal": "hive"}, "metastore_principal"),
    ],
)
def test_broken_accounts_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Kerberos(**settings)


def test_one_name_of_two_nameservices_is_refused_with_kerberos() -> None:
    def side(namenode: str, kerberos: Kerberos | None) -> Warehouse:
        options = {"dfs.namenode.rpc-address.warehouse.nn1": namenode}
        return Warehouse(metastore="thrift://m:9083", kerberos=kerberos, roots=(Root(uri="hdfs://warehouse/", options=options),))

    with_tokens_of_their_own(side("a:8020", None), side("b:8020", None))
    with_tokens_of_their_own(side("a:8020", ACCOUNT), side("a:8020", ACCOUNT))
    with pytest.raises(ValueError, match="the nameservice warehouse is another one on either side"):
        with_tokens_of_their_own(side("a:8020", ACCOUNT), side("b:8020", ACCOUNT))


@pytest.mark.parametrize("reverse", [False, True])
def test_webhdfs_of_one_root_is_that_of_all_on_its_hdfs(reverse: bool) -> None:
    """Files of a root for cmroot alone had checksums or not, by which root was used first."""
    web = HDFS.model_copy(update={"webhdfs_hosts": ("gateway",), "tls": Tls(ca="/web.pem")})
    roots = (web, Root(uri="hdfs://n:8020/cmroot/"), Root(uri="hdfs://other:8020/"))
    side = Warehouse(metastore="thrift://m:9083", tls=Tls(ca="/side.pem"), roots=roots[::-1] if reverse else roots)
    found = {root.uri: (root.webhdfs, root.webhdfs_hosts, root.tls and root.tls.ca) for root in side.storage_roots}
    one = ("http://n:9870", ("gateway",), "/web.pem")
    assert found == {"hdfs://n:8020/": one, "hdfs://n:8020/cmroot/": one, "hdfs://other:8020/": (None, (), "/side.pem")}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("side", [None, ACCOUNT])
def test_account_and_options_of_one_root_are_those_of_all_on_its_hdfs(side: Kerberos | None, *, reverse: bool) -> None:
    """Such a policy was refused, and without an account the root that names no NameNodes could not be connected to."""
    named = Account(principal="r@A.COM")
    roots = (
        Root(uri="hdfs://ns/warehouse/", kerberos=named, options={"dfs.ha.namenodes.ns": "a,b"}),
        Root(uri="hdfs://ns/external/"),
        Root(uri="hdfs://other/"),
    )
    found = Warehouse(metastore="thrift://m:9083", kerberos=side, roots=roots[::-1] if reverse else roots).storage_roots
    own = Account(principal=side.principal, keytab=side.keytab) if side else None
    assert {root.uri: (root.kerberos, root.options) for root in found} == {
        "hdfs://ns/warehouse/": (named, roots[0].options),
        "hdfs://ns/external/": (named, roots[0].options),
        "hdfs://other/": (own, {}),
    }


def test_two_accounts_at_one_hdfs_are_refused() -> None:
    """Which of them was used for both was that of the root that was used first."""
    finance, sales = (
        Root(uri=f"hdfs://n:8020/{name}/", webhdfs="http://n:9870", kerberos=Account(principal=f"{name}@A.COM"))
        for name in ("finance", "sales")
    )
    with pytest.raises(ValidationError, match="hdfs://n:8020/finance/ and hdfs://n:8020/sales/ are on one HDFS"):
        Warehouse(metastore="thrift://m:9083", kerberos=ACCOUNT, roots=(finance, sales))
    elsewhere = sales.model_copy(update={"uri": "hdfs://m:8020/"})
    Warehouse(metastore="thrift://m:9083", kerberos=ACCOUNT, roots=(finance, elsewhere))
