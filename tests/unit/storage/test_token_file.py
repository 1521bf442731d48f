"""Files of delegation tokens, against one that Hadoop has written."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hive_replication.errors import ReplicationError
from hive_replication.storage.token_file import TokenFile, encoded, times

# Written by Hadoop's Credentials: one token of hdfs@EXAMPLE.COM for 127.0.0.1:9000.
FILE = base64.b64decode(
    "SERUUwABDjEyNy4wLjAuMTo5MDAwLgAaaGRmcy9sb2NhbGhvc3RARVhBTVBMRS5DT00AAIoBiX/hghSKAYmj7gYUAQIUadF4ni3ObKqU8niv40WBFsGhFm4V"
    "SERGU19ERUxFR0FUSU9OX1RPS0VODjEyNy4wLjAuMTo5MDAwAA=="
)
SERVICE = "127.0.0.1:9000"
#: The same token as WebHDFS writes it: without alias and number, and with no padding.
TOKEN = base64.urlsafe_b64encode(FILE[21:-1]).decode().rstrip("=")


def test_a_file_is_as_hadoop_writes_it() -> None:
    assert encoded({SERVICE: TOKEN}) == FILE


def test_long_services_and_many_tokens() -> None:
    services = {f"{'n' * 200}{number}:8020": TOKEN for number in range(130)}
    found = encoded(services)
    assert found.startswith(b"HDTS\0\x8f\x82")  # a number over 127 has its length first
    assert found.count(b"\x8f\xce" + b"n" * 200) == 2 * 10  # alias and service of the numbers of one digit


def test_times_of_a_token() -> None:
    assert times(TOKEN) == (1690067632.660, 1690672432.660)


@pytest.mark.parametrize("text", ["", "A", "!", TOKEN[:20], "f39_"])
def test_what_is_no_token_is_told(text: str) -> None:
    with pytest.raises(ReplicationError, match="is no delegation token: set webhdfs in the policy"):
        times(text)
    with pytest.raises(ReplicationError, match="is no delegation token"):
        encoded({SERVICE: text})


def test_the_file_is_replaced_at_once_and_goes_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    file = TokenFile()
    file.put(SERVICE, TOKEN)
    path = os.environ["HADOOP_TOKEN_FILE_LOCATION"]
    file.put("other:8020", TOKEN)
    assert os.environ["HADOOP_TOKEN_FILE_LOCATION"] == path
    script = f"import pathlib; print(len(pathlib.Path({path!r}).read_bytes()))"
    size = int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)  # in a child
    assert size == len(encoded({SERVICE: TOKEN, "other:8020": TOKEN}))


def test_a_forked_process_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    file = TokenFile()
    file.put(SERVICE, TOKEN)
    before = os.environ["HADOOP_TOKEN_FILE_LOCATION"]
    monkeypatch.setattr("os.getpid", lambda: 1)
    file.put("other:8020", TOKEN)
    assert os.environ["HADOOP_TOKEN_FILE_LOCATION"].startswith("/proc/1/fd/")
    assert Path(before).read_bytes() == FILE
