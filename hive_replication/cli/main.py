"""The program: finds the command, runs it, turns errors into one line and an exit code."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from importlib.metadata import version as metadata_version
from typing import Annotated

import typer

from hive_replication.cli import logs
from hive_replication.cli.command_table import COMMANDS, GROUPS
from hive_replication.cli.output import print_json
from hive_replication.cli.settings import DEFAULT_CONFIG, Json, RootConfig, Settings
from hive_replication.cli.words import arrange, command_of
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.logs import printable

PROGRAM = "hive-repl"
GROUP = "hive_replication.commands"
INTERRUPTED = 130


def _print_version(wanted: bool) -> None:
    if wanted:
        print(metadata_version("hive-replication"))
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True, show_default=False)
]


def main() -> None:
    """The console script ``hive-repl``."""
    logging.getLogger().addHandler(logging.NullHandler())  # libraries log each lost attempt; the one error at the end says it
    code = ReplicationError.exit_code
    atexit.register(lambda: _leave(code))  # first, so that it is called last
    try:
        code = run(sys.argv[1:])
        print(end="", flush=True)
    except BrokenPipeError:  # whoever reads the results has gone: Python would try again at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _leave(code: int) -> None:
    """Ends the process with its exit code where a thread waits on, as for a store that hangs.

    Such a thread may be in a library that is not Python: where it comes back from there, Python ends it in a way that lets the
    process abort.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def run(argv: Sequence[str]) -> int:
    """Runs one command line.

    Returns:
        The exit code: 0 done, 1 failed, 2 bad request, 3 refused to protect data, 130 interrupted (design: commands).
    """
    words = arrange(argv) or ["--help"]
    as_json = "--json" in argv
    try:
        _require_text(argv)
        code: int = application(words)(words, prog_name=PROGRAM, standalone_mode=False) or 0
    except ReplicationError as error:
        return _failed(str(error), error.exit_code, as_json=as_json)
    except OSError as error:  # what went away in the middle, or a file of this machine
        return _failed(str(error), ReplicationError.exit_code, as_json=as_json)
    except typer.TyperException as error:
        return _failed(f"{error.format_message()} (see {PROGRAM} --help)", error.exit_code, as_json=as_json)
    except typer.Abort:  # at a prompt
        code = INTERRUPTED
    if code == INTERRUPTED:
        return _failed("interrupted", INTERRUPTED, as_json=as_json)
    return code


def application(words: Sequence[str]) -> typer.Typer:
    """All commands; those of other packages are loaded only where ``words`` call them or a shell asks for completions."""
    app = typer.Typer(name=PROGRAM, rich_markup_mode=None, pretty_exceptions_enable=False, callback=root)
    for name, command in COMMANDS.items():
        app.command(name)(command)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    position = command_of(words)
    called = words[position] if position is not None else ""
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    for entry in sorted(entry_points(group=GROUP)):
        if completing or entry.name == called:
            app.add_typer(entry.load(), name=entry.name)
        else:
            app.command(entry.name, help=_summary(entry))(_never)
    return app


def root(
    context: typer.Context,
    config: RootConfig = None,
    json: Json = False,
    verbose: logs.Verbose = 0,
    log_format: logs.Format = "text",
    _version: Version = False,
) -> None:
    """Replicates Hive warehouses: metadata through dumps, files once and proven, from source storage to target storage."""
    context.with_resource(logs.shown(verbose, log_format))
    context.obj = Settings(config or DEFAULT_CONFIG, json)


def _summary(entry: EntryPoint) -> str:
    """The first line of the module that offers a command, without running it."""
    import ast
    from importlib.util import find_spec

    spec = find_spec(entry.module)
    if spec is None or spec.origin is None:
        return f"(in {entry.module})"
    with open(spec.origin, encoding="utf-8") as text:  # noqa: PTH123
        first = (ast.get_docstring(ast.parse(text.read())) or "").partition("\n")[0]
    summary = first.rpartition("``: ")[2]
    return summary[:1].upper() + summary[1:]


def _never() -> None:
    raise AssertionError("a stand-in for a command that was not called")


def _require_text(argv: Sequence[str]) -> None:
    """Refuses words that no server can be sent: Python has bytes that are no UTF-8 as surrogates."""
    for word in argv:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise BadRequest(f"{word!r} is not text in UTF-8") from None


def _failed(message: str, code: int, *, as_json: bool) -> int:
    line = printable(re.sub(r"\s*\n\s*", " ", message.strip()))
    if as_json:
        print_json({"error": line, "exit_code": code})
    else:
        print(f"{PROGRAM}: {line}", file=sys.stderr)
    return code
