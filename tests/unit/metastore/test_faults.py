"""Which faults of a metastore pass."""

from __future__ import annotations

import pytest
from hive_metastore.ttypes import MetaException
from thrift.Thrift import TApplicationException, TException

from hive_replication.metastore.faults import is_transient

INTERNAL = TApplicationException.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (MetaException("A lock could not be obtained within the time requested"), True),
        (MetaException("Communications link failure"), True),
        (MetaException("hive.metastore.warehouse.dir is not set"), False),
        *((TApplicationException(INTERNAL, f"Internal error processing {call}"), True) for call in ("open_txns", "commit_txn")),
        (TApplicationException(INTERNAL, "Internal error processing allocate_table_write_ids"), True),
        (TApplicationException(INTERNAL, "Internal error processing repl_tbl_writeid_state"), True),
        (TApplicationException(INTERNAL, "Internal error processing heartbeat"), True),
        (TApplicationException(INTERNAL, "Internal error processing create_table"), False),  # may not be repeated just so
        (TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'open_txns'"), False),
        (TException("open_txns"), False),
    ],
)
def test_faults_that_pass(fault: TException, *, passes: bool) -> None:
    assert is_transient(fault) is passes
