"""``python -m bench.company.serve``: the simulated source until its input ends; its first line says where it listens."""

from __future__ import annotations

import json
import sys

from bench.company.files import FormulaFiles
from bench.company.listening import Counts
from bench.company.metastore import MetastoreServer, SourceMetastore
from bench.company.namenode import NameNode
from bench.company.webhdfs import WebHdfs


def main() -> None:
    """Listens until standard input is closed."""
    counts, files = Counts(), FormulaFiles()
    namenode, web = NameNode(files, counts), WebHdfs(files, counts)
    store = f"hdfs://127.0.0.1:{namenode.port}"
    metastore = MetastoreServer(SourceMetastore(store), counts)
    where = {
        "metastore": f"thrift://127.0.0.1:{metastore.port}",
        "hdfs": f"{store}/",
        "webhdfs": f"http://127.0.0.1:{web.port}",
    }
    print(json.dumps(where), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
