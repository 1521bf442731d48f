"""The console's tests where there is no browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.console import browser


@pytest.fixture(autouse=True)
def no_chromium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_they_are_skipped_on_a_machine_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``make test`` failed on a machine that has only what the README names."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium here: install the package chromium"), browser("", tmp_path):
        pass


def test_ci_does_not_go_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="CI has no Chromium"), browser("", tmp_path):
        pass
