"""``python -m bench.company.serve source|target FILES``: one side until its input ends; its first line says where it listens."""

from __future__ import annotations

import json
import sys

from bench.company.datanode import Blocks, DataNode
from bench.company.files import FormulaFiles
from bench.company.listening import Counts
from bench.company.metastore import MetastoreServer
from bench.company.namenode import NameNode
from bench.company.source_metastore import SourceMetastore
from bench.company.target_metastore import TargetMetastore
from bench.company.tree import Tree
from bench.company.webhdfs import WebHdfs
from bench.company.writing import Writes, growing, over_http, reads


def main() -> None:
    """Listens until standard input is closed."""
    kind, files = sys.argv[1], int(sys.argv[2])
    counts, blocks = Counts(), Blocks()
    datanode = DataNode(blocks, counts).port
    if kind == "source":
        shown = FormulaFiles()
        namenode = NameNode(shown, counts, reads(shown, blocks, datanode))
        handler = SourceMetastore(f"hdfs://127.0.0.1:{namenode.port}")
        web = WebHdfs(shown, counts, growing(handler.grow))
    else:
        tree = Tree(files)
        calls = reads(tree, blocks, datanode) | Writes(tree, blocks, datanode).methods()
        namenode, web = NameNode(tree, counts, calls), WebHdfs(tree, counts, over_http(tree))
        handler = TargetMetastore(f"hdfs://127.0.0.1:{namenode.port}", tree)
    where = {
        "metastore": f"thrift://127.0.0.1:{MetastoreServer(handler, counts).port}",
        "hdfs": f"hdfs://127.0.0.1:{namenode.port}/",
        "webhdfs": f"http://127.0.0.1:{web.port}",
    }
    print(json.dumps(where), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
