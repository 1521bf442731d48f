"""External tables that Spark made in a format that Hive cannot read, shown at the directory where their data is (pure).

Spark gives such a table a location that it deletes at once, and notes the directory in the serde parameter ``path``, which is all
that it reads. Whoever reads the table, or an event that has its image, takes it for one that lies there.
"""

from __future__ import annotations

import re

from hive_replication.metastore.table_kinds import PROVIDER
from hive_replication.metastore.types import Table, copy_of

#: Serde parameter that Spark's datasource tables follow instead of ``sd.location``.
PATH = "path"
_STORE = re.compile(r"[A-Za-z][\w+.-]*:(//[^/]*)?")  # metastores write file:/w
_NOWHERE = "-__PLACEHOLDER__"  # how the location ends that Spark gives


def at_its_data(table: Table) -> Table:
    """The table at the directory that Spark reads; any other table as it is."""
    location, serde = table.sd.location or "", table.sd.serdeInfo
    path = ((serde.parameters if serde else None) or {}).get(PATH)
    if not (path and location.endswith(_NOWHERE) and PROVIDER in (table.parameters or {})):
        return table
    image = copy_of(table)
    found = _STORE.match(location)
    store = found.group() if found else ""
    if store and not store.endswith((":", "/")):  # a store with a name, on which hdfs:///x lies too
        path = re.sub(rf"^{re.escape(store.partition(':')[0])}:(//)?(?=/(?!/))", "", path, flags=re.IGNORECASE)
    image.sd.location = f"{store}{path}" if path.startswith("/") else path
    return image
