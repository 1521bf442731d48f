"""Names of embedded servers: sides, or parts of them, for ``up`` as for ``down``."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.errors import BadRequest
from resources.embedded import java, versions
from resources.embedded.cluster import Cluster, _Parts
from resources.embedded.jars import locked


def test_sides_and_parts() -> None:
    both, one = ("source", "target"), ("source",)
    assert _Parts.of(["source.metastore"]) == _Parts(one, one, one, one)
    assert _Parts.of(["source.hdfs", "target"]) == _Parts(both, both, ("target",), ("target",))
    assert _Parts.of(["source.hdfs", "source.metastore"]) == _Parts(one, one, one, one)
    assert _Parts.of(["source.database"]) == _Parts(one, (), one, ()), "which down takes"
    for wrong in ("source.what", "Source", "no_side.hdfs"):
        with pytest.raises(BadRequest):
            _Parts.of([wrong])


def test_a_name_ends_with_the_version() -> None:
    numbers = {name: versions.parsed(name)[1].number for name in ("source2", "source", "source40", "target41", "source-short4")}
    assert numbers == {
        "source2": "2.3.10",
        "source": "3.1.3",
        "source40": "4.0.1",
        "target41": "4.1.0",
        "source-short4": "4.2.0",
    }
    assert versions.parsed("source-short4")[0] == "source"
    with pytest.raises(BadRequest, match=r"'source5' is not the name of a side, such as source2 \(2\.3\.10\)"):
        versions.parsed("source5")


def test_every_version_has_its_jars() -> None:
    groups = {group: {jar.coordinate for jar in locked(group)} for one in versions.VERSIONS.values() for group in one.groups}
    for version in versions.VERSIONS.values():
        jars = {coordinate for group in version.groups for coordinate in groups[group]}
        assert f"org.apache.hive:hive-exec:{version.number}" in jars
        assert any("hive-hcatalog-server-extensions" in one for one in jars), "the notification listener"
        assert any(":tar.gz:" in one for one in groups[version.groups[0]]), "the schema scripts"


def test_a_folder_that_cannot_be_made_or_is_damaged_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "java", lambda: Path("java"))
    (tmp_path / "ports.json").write_text("", encoding="utf-8")
    with pytest.raises(BadRequest, match=r"ports\.json is damaged"):
        Cluster(tmp_path).status()
    with pytest.raises(BadRequest, match=r"cannot make .*ports\.json: File exists; name another folder"):
        Cluster(tmp_path / "ports.json").up()
