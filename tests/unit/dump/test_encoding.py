from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.dump.format import encoding, json_fields
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, Scope
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Database

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
evids = st.integers(0, 2**60)
scopes = st.builds(Scope, text, st.none() | text, st.none() | st.lists(text, max_size=2).map(tuple))
headers = st.builds(
    DumpHeader,
    kind=st.sampled_from(["bootstrap", "incremental"]),
    scope=scopes,
    source=text,
    source_database=st.builds(
        Database, name=text.filter(bool), locationUri=text, parameters=st.dictionaries(text, text, max_size=2)
    ),
    from_evid=evids,
    to_evid=evids,
    to_time=evids,
    to_hash=text,
    created=st.floats(0, 1e12),
    skipped=st.dictionaries(text, text, max_size=2),
    unshown=st.dictionaries(text, text, max_size=2),
)
lines = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=10)
refs = st.lists(st.builds(FileRef, lines, lines, lines, lines), max_size=3).map(tuple)
events = st.builds(
    EventRecord,
    st.builds(Notification, evids, evids, text, text, text, text),
    st.lists(st.builds(FileGroup, text, refs, st.booleans()), max_size=3).map(tuple),
    text,
)


@given(headers)
def test_a_header_comes_back(header: DumpHeader) -> None:
    written = encoding.header_text(header)
    assert encoding.header_of(written) == header
    assert b"\n" not in written


@given(refs)
def test_files_come_back_a_line_each(files: tuple[FileRef, ...]) -> None:
    written = encoding.files_text(files)
    assert encoding.files_of(written) == files
    assert written.count(b"\n") == len(files)


@given(events)
def test_an_event_comes_back_without_its_files(record: EventRecord) -> None:
    read, numbers = encoding.event_of(encoding.event_text(record))
    assert read == replace(record, groups=tuple(replace(group, files=()) for group in record.groups))
    assert numbers == [len(group.files) for group in record.groups]


def test_text_is_readable_and_says_its_version() -> None:
    assert json.loads(encoding.text({"a": "é"})) == {"version": "1", "a": "é"}
    assert "é".encode() in encoding.text({"a": "é"})


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b"{}", b'{"version": "2"}', b"\xff", b'{"version": 1}'])
def test_other_text_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_fields.fields(data)
