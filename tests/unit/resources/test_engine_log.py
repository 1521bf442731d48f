"""Messages of the engine in Dagster's runs and ticks."""

from __future__ import annotations

import logging
import threading

import dagster as dg
import pytest

from hive_replication.errors import Unreachable
from hive_replication.logs import about
from hive_replication.progress import LoggedProgress
from repl_assets.steps.engine import as_dagster_failure
from resources import engine_log
from resources.connection import ReplicationConnection

ENGINE = logging.getLogger("hive_replication.load.test")


@dg.op(required_resource_keys={"side"})
def step() -> None:
    ENGINE.info("an event is skipped: %s", "applied already", extra=about("sales", "orders", 170))
    thread = threading.Thread(target=lambda: ENGINE.warning("a\x1bb is held"))
    thread.start()
    thread.join()
    ENGINE.info("an event more is skipped")
    ENGINE.debug("a detail")


@dg.job
def one_step() -> None:
    step()


def messages(instance: dg.DagsterInstance) -> list[tuple[int, str, str | None]]:
    resource = ReplicationConnection(policy={})
    run = one_step.execute_in_process(resources={"side": resource}, instance=instance)
    logs = [entry for entry in instance.all_logs(run.run_id) if not entry.is_dagster_event]
    return [(entry.level, entry.user_message, entry.step_key) for entry in logs]


def untouched() -> bool:
    logger = logging.getLogger("hive_replication")
    return logger.level == logging.NOTSET and [type(one) for one in logger.handlers] == [logging.NullHandler]


def test_a_line_that_dagster_cannot_store_ends_no_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(*_: object) -> None:
        raise OSError("the server closed the connection")

    log = logging.getLogger("a run's")
    monkeypatch.setattr(log, "log", away)
    monkeypatch.setattr(log, "info", away)
    with engine_log.in_tick(log):
        ENGINE.warning("a is held")
        assert list(LoggedProgress(log, 0).count("ab", "files")) == ["a", "b"]
    assert "the server closed the connection" in capsys.readouterr().err


def test_a_runs_event_log_has_the_engines_messages_and_what_they_are_about() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert messages(instance) == [
            (logging.INFO, "an event is skipped: applied already [database=sales table=orders evid=170]", "step"),
            (logging.WARNING, "a\\x1bb is held", "step"),
            (logging.INFO, "an event more is skipped", "step"),
        ]
    assert untouched()


def test_a_run_takes_so_many_messages_and_all_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_log, "MOST", 1)
    with dg.DagsterInstance.ephemeral() as instance:
        assert [message for _, message, _ in messages(instance)] == [
            "an event is skipped: applied already [database=sales table=orders evid=170]",
            "a\\x1bb is held",
            "only warnings from here on: the engine wrote more than 1 others",
        ]


def test_a_tick_has_the_messages_of_its_own_thread() -> None:
    log, seen = logging.Logger("tick"), list[str]()  # noqa: LOG001 - as Dagster makes it for a tick
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    with engine_log.in_tick(log):
        ENGINE.info("mine", extra=about("sales"))
        other = threading.Thread(target=lambda: ENGINE.warning("another tick's"))
        other.start()
        other.join()
    ENGINE.warning("after the tick")
    assert seen == ["mine [database=sales]"]
    assert untouched()


ANSWER = "no answer from http://nn:9870/webhdfs/v1/x?op=OPEN&delegation=T0KEN"


@dg.op(required_resource_keys={"side"})
def failing_step() -> None:
    try:
        raise OSError(ANSWER)  # noqa: TRY301
    except OSError as error:
        ENGINE.warning("an unexpected error", exc_info=error)
        with as_dagster_failure():
            raise Unreachable("no answer from HDFS") from error


@dg.job
def one_failing_step() -> None:
    failing_step()


def test_the_event_log_has_no_token_of_a_cause(capfd: pytest.CaptureFixture[str]) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        resource = ReplicationConnection(policy={})
        run = one_failing_step.execute_in_process(resources={"side": resource}, instance=instance, raise_on_error=False)
        logs = instance.all_logs(run.run_id)
        stored = "\n".join(dg.serialize_value(entry) for entry in logs)
    assert any("raise OSError" in entry.user_message and "delegation=***" in entry.user_message for entry in logs)
    assert "no answer from HDFS" in stored
    assert "T0KEN" not in stored + capfd.readouterr().err
