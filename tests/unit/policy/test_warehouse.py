"""What a policy says of one side."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hive_replication.policy import Root
from hive_replication.policy.warehouse import Kerberos, Warehouse

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
