"""What a policy says of one side."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hive_replication.policy import Root
from hive_replication.policy.warehouse import Kerberos, Warehouse, with_tokens_of_their_own

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
