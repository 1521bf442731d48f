"""``policy``: making and checking the policy's file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hive_replication.cli.settings import Config, Json, settings
from hive_replication.errors import BadRequest

app = typer.Typer(help="Makes and checks the policy.")

SourceMetastore = Annotated[str | None, typer.Option(help="e.g. thrift://source-metastore:9083", show_default=False)]
SourceRoot = Annotated[str | None, typer.Option(help="e.g. hdfs://source-namenode:8020/", show_default=False)]
SourceWebhdfs = Annotated[str | None, typer.Option(help="e.g. http://source-namenode:9870", show_default=False)]
TargetMetastore = Annotated[str | None, typer.Option(help="e.g. thrift://target-metastore:9083", show_default=False)]
TargetRoot = Annotated[str | None, typer.Option(help="e.g. hdfs://target-namenode:8020/", show_default=False)]
TargetWebhdfs = Annotated[str | None, typer.Option(help="e.g. http://target-namenode:9870", show_default=False)]
DumpRoot = Annotated[
    str | None, typer.Option(help="Directory for dumps; /repl/dumps below the target's root.", show_default=False)
]
Databases = Annotated[
    list[str] | None, typer.Option("--database", help="A database, or source=target. Repeat it for more.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.", show_default=False)]


@app.command()
def init(
    context: typer.Context,
    source_metastore: SourceMetastore = None,
    source_root: SourceRoot = None,
    source_webhdfs: SourceWebhdfs = None,
    target_metastore: TargetMetastore = None,
    target_root: TargetRoot = None,
    target_webhdfs: TargetWebhdfs = None,
    database: Databases = None,
    dump_root: DumpRoot = None,
    force: Force = False,
    config: Config = None,
) -> None:
    """Writes a commented policy; prompts for what no option sets."""
    from pydantic import ValidationError

    from hive_replication.connect.connection import require_usable
    from hive_replication.policy import Policy
    from hive_replication.policy.template import commented
    from hive_replication.policy.wrong_setting import described

    path = settings(context, config, False).config
    if path.exists() and not force:
        raise BadRequest(f"{path} exists already: name another file with --config, or replace it with --force")
    source_root = source_root or _asked("source storage root", "--source-root", "hdfs://source-namenode:8020/")
    target_root = target_root or _asked("target storage root", "--target-root", "hdfs://target-namenode:8020/")
    answers = {
        "source": _side("source", source_metastore, source_root, source_webhdfs),
        "target": _side("target", target_metastore, target_root, target_webhdfs),
        "databases": _databases(database or _asked("databases to replicate, joined by commas", "--database", "sales").split(",")),
        "dump_root": dump_root or f"{target_root.rstrip('/')}/repl/dumps",
    }
    try:
        policy = Policy.model_validate(answers)
    except ValidationError as error:
        raise BadRequest(f"no policy was written: {described(error)}") from error
    require_usable(policy)
    try:
        path.write_text(commented(policy), encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror}") from error
    print(f"{path} written; next: hive-repl doctor --config {path}", file=sys.stderr)


@app.command()
def check(context: typer.Context, config: Config = None, json: Json = False) -> None:
    """Reads the policy; names line, column and setting of each error."""
    from hive_replication.connect.connection import require_usable
    from hive_replication.policy.policy_file import policy_of, policy_text

    chosen = settings(context, config, json)
    text = policy_text(chosen.config)
    policy = policy_of(text, str(chosen.config))
    require_usable(policy, text)
    rows = [(source, target) for source, target in policy.databases.items()]
    chosen.output.table(("database", "on target"), rows, {"valid": True, "policy": policy.model_dump(mode="json")})


@app.command()
def swap(context: typer.Context, config: Config = None) -> None:
    """Prints the policy of the other direction, for a failback: source and target are swapped."""
    import yaml

    from hive_replication.policy.swap import swapped

    made = swapped(settings(context, config, False).policy())
    print("# Where the other policy stays in use for other databases, give this one a name of its own, before failover reverse.")
    print(yaml.safe_dump(made.model_dump(mode="json", exclude_defaults=True), sort_keys=False), end="")


@app.command()
def schema() -> None:
    """Prints the policy's JSON schema, for editors."""
    from hive_replication.policy.template import schema as policy_schema

    print(policy_schema(), end="")


def _side(name: str, metastore: str | None, root: str, webhdfs: str | None) -> dict[str, object]:
    metastore = metastore or _asked(f"{name} metastore", f"--{name}-metastore", f"thrift://{name}-metastore:9083")
    if root.startswith("hdfs:") and webhdfs is None and sys.stdin.isatty():
        webhdfs = _asked(f"{name} WebHDFS address, for checksums", f"--{name}-webhdfs", f"http://{name}-namenode:9870")
    return {"metastore": metastore, "roots": [{"uri": root, **({"webhdfs": webhdfs} if webhdfs else {})}]}


def _asked(what: str, option: str, example: str) -> str:
    """Asks on a terminal.

    Raises:
        BadRequest: there is none to ask.
    """
    if not sys.stdin.isatty():
        raise BadRequest(f"the policy needs the {what}: give {option}, e.g. {option} {example}")
    return str(typer.prompt(f"{what[:1].upper()}{what[1:]} (e.g. {example})", err=True))


def _databases(names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in filter(None, map(str.strip, names)):
        source, _, target = name.partition("=")
        if found.setdefault(source, target or source) != (target or source):
            raise BadRequest(f"{source} is given twice, as {found[source]} and {target or source}: a database has one replica")
    return found
