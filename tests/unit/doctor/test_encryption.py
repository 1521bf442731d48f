"""What the doctor says of TLS."""

from __future__ import annotations

from hive_replication.doctor.encryption import encryption
from hive_replication.policy import Root
from hive_replication.policy.model import Warehouse
from hive_replication.policy.warehouse import Tls
from tests.lags import NOWHERE


def test_a_file_of_tls_that_is_not_there_hides_nothing_of_other_servers() -> None:
    unusable = Root(uri="hdfs://a/", webhdfs="https://127.0.0.1:1", tls=Tls(ca="/no/such.pem"))
    plain = Root(uri="hdfs://b/", webhdfs="http://127.0.0.1:2")
    metastore, bad, good = encryption("source", Warehouse(metastore=NOWHERE, roots=(unusable, plain)))
    assert (metastore.verdict, bad.verdict, good.verdict) == ("ok", "error", "ok")
    assert "WebHDFS https://127.0.0.1:1: tls.ca of the policy, /no/such.pem, cannot be used" in bad.found
