"""Views of the target's own that a bootstrap under another name is to adopt (policy ``conflicts: adopt``)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hive_replication.dump.format.record_types import TableRecord
from hive_replication.errors import Refused
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.operations.conflict_resolutions import Adopt
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Table, copy_of
from tests.bootstraps import Loading, header, loading, record
from tests.moving import POLICY

NAMED = POLICY.model_copy(update={"databases": {"db": "dr"}, "conflicts": "adopt", "renamed_views": "rewrite"})


def view(database: str, text: str, expanded: str) -> Table:
    made = copy_of(record("v").table)
    made.tableType, made.dbName, made.sd.location = "VIRTUAL_VIEW", database, None
    made.viewOriginalText, made.viewExpandedText = text, expanded
    return made


OF_SOURCE = view("db", "SELECT a FROM db.orders", "SELECT `orders`.`a` FROM `db`.`orders`")


def bootstrap(found: Table) -> Loading:
    """A bootstrap of the database ``db`` as ``dr``, where there is a view of this name."""
    session = loading(ReplicaState(), header(9), [found], [TableRecord(OF_SOURCE)])
    replica = cast("Any", session.replica)
    replica.name = replica.image.name = "dr"
    replica.target.policy = NAMED
    load_objects(session, repair=False)
    return session


@pytest.mark.parametrize("name", ["dr", "`dr`"])
def test_a_view_with_the_text_that_its_replica_has_is_adopted(name: str) -> None:
    """It was compared with the source's text, which names another database: the bootstrap was refused as a whole."""
    session = bootstrap(view("dr", f"SELECT a FROM {name}.orders", "SELECT `orders`.`a` FROM `dr`.`orders`"))
    first = session.lanes["v"].operations[0]
    assert (session.held, type(first)) == ([], Adopt)


@pytest.mark.parametrize("text", [OF_SOURCE.viewOriginalText, "SELECT b FROM dr.orders"])
def test_one_with_another_text_refuses_the_bootstrap_before_anything_is_written(text: str) -> None:
    """That of the source reads a database of the target's own that has its name."""
    with pytest.raises(Refused, match=r"the target table dr\.v cannot be adopted: its view text is another"):
        bootstrap(view("dr", text, text))
