"""Secrets of a policy: only references to them are accepted, and they are read where they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hive_replication.errors import BadRequest
from hive_replication.policy import Policy
from hive_replication.policy.secrets import names_secret, resolved_options
from hive_replication.policy.warehouse import Tls
from hive_replication.signing import SigningKey, signing_key
from hive_replication.storage import Storage

SECRET = "hunter2hunter2"


def policy(options: dict[str, str], spark: dict[str, str] | None = None, **fields: Any) -> Policy:
    side = {"metastore": "thrift://s:9083", "roots": [{"uri": "s3://bucket/", "options": options}]}
    given = {"source": side, "target": side, "dump_root": "s3://bucket/d", "databases": {"a": "a"}, "spark": spark or {}}
    return Policy.model_validate(given | fields)


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "token",
        "key",
        "fs.s3a.secret.key",
        "fs.s3a.access.key",
        "fs.s3a.session.token",
        "fs.azure.account.key.a.dfs.core.windows.net",
        "fs.azure.account.oauth2.client.secret",
        "spark.ssl.keyPassword",
        "spark.hadoop.fs.s3a.secret.key",
        "account_key",
        "sas_token",
        "passphrase",
        "SSECustomerKey",
        "spark.executorEnv.AZURE_STORAGE_KEY",
        "Authorization",
    ],
)
def test_a_secret_itself_is_refused(name: str) -> None:
    for one in ({"options": {name: SECRET}}, {"options": {}, "spark": {name: SECRET}}):
        with pytest.raises(ValidationError, match=r"\$\{env:NAME\}") as error:
            policy(**one)  # type: ignore[arg-type]
        assert SECRET not in str(error.value)
    made = policy({name: "${env:S}"}, {name: "${file:/run/secrets/s}"})
    assert made.spark == {name: "${file:/run/secrets/s}"}


@pytest.mark.parametrize(
    "name",
    [
        "dfs.nameservices",
        "hadoop.security.credential.provider.path",
        "fs.s3a.aws.credentials.provider",
        "dfs.encryption.key.provider.uri",
        "spark.authenticate.secret.file",
        "dfs.data.transfer.saslproperties.resolver.class",
        "spark.master",
        "endpoint_url",
        "hadoop.security.authorization",
        "SSECustomerAlgorithm",
    ],
)
def test_what_is_no_secret(name: str) -> None:
    assert not names_secret(name)


@pytest.mark.parametrize(
    "value",
    [
        f"https://user:{SECRET}@store/",
        f"https://a/m,https://user:{SECRET}@store/m",
        f"https://a/m, https://user:{SECRET},1@store/m",
        f"-Dtrust.Password={SECRET}",
        f"-Dproxy=https://user:{SECRET}@store/",
        f'{{"aws_secret_access_key": "{SECRET}"}}',
        f'{{"password": "{SECRET}"}}',
        f'{{"password": "{SECRET}", "password": ""}}',
        f'{{"p\\u0061ssword": "{SECRET}"}}',
        f'{{"proxies": {{"https": "http://u:{SECRET}@h:1"}}}}',
        f'[{{"a": [{{"session_token": "{SECRET}"}}]}}]',
        f"{{'password': '{SECRET}'}}",
        f"-Dhttp.proxy='http://u:{SECRET}@h'",
        f'proxy "http://u:{SECRET}@h:1"',
        f"(http://u:{SECRET}@h)",
        f"jdbc:mysql://u:{SECRET}@h/db",
        f'{{"config": "{{\\"token\\": \\"{SECRET}\\"}}"}}',
        f'{{"headers": {{"Authorization": "Bearer {SECRET}"}}}}',
        f'{{"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "{SECRET}"}}',
        "${env:A} and more",
    ],
)
def test_secrets_within_values(value: str) -> None:
    with pytest.raises(ValidationError) as error:
        policy({"endpoint_url": value})
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "value",
    [
        '{"endpoint_url": "http://h:1", "region_name": "eu-west-1", "verify": false}',
        '{"config": {"retries": {"max_attempts": 3}, "s3": {"addressing_style": "path"}}, "use_token": true, "password": null}',
        '{"credentials_provider": "a.B"}',
        '{"config": "{\\"max_attempts\\": 3}"}',
        "-Dhttp.proxy='http://h:1' -Dmail=a@b",
        'proxy "http://h:1", "mailto:u@h"',
        "(http://u@h:1), http://[::1]:80/a:b@c",
        "jdbc:mysql://h:3306/db?user=u@h",
        "abfss://container@account.dfs.core.windows.net:443/",
        "8388608",
        '"true"',
        pytest.param("[" * 100_000, id="brackets"),
    ],
)
def test_values_without_secrets_are_accepted(value: str) -> None:
    assert policy({"client_kwargs": value}).source.roots[0].options == {"client_kwargs": value}


@pytest.mark.parametrize("first", ["", "thrift://a:1,", "http://a:1, "])
def test_passwords_in_addresses(first: str) -> None:
    for place in ("metastore", "uri", "webhdfs"):
        side: dict[str, Any] = {"metastore": "thrift://s:9083", "roots": [{"uri": "hdfs://n:8020/", "webhdfs": "http://n:9870"}]}
        where = side if place == "metastore" else side["roots"][0]
        where[place] = first + where[place].replace("://", f"://me:{SECRET}@")
        with pytest.raises(ValidationError, match="the address holds a password") as error:
            policy({}, source=side)
        assert SECRET not in str(error.value)


@pytest.mark.parametrize("setting", ["dump_root", "external_root", "functions_root", "locations", "paths", "roots"])
@pytest.mark.parametrize("uri", [f"s3://me:{SECRET}@bucket/d", f"s3://me:{SECRET}[w@bucket/d", f"hdfs://me:[{SECRET}@b:8020/d"])
def test_passwords_in_addresses_of_directories(setting: str, uri: str) -> None:
    """One with a bracket, by which no address can be read, was shown in the error, or kept."""
    side = {"metastore": "thrift://s:9083", "roots": [{"uri": "s3://bucket/"}], "paths": [uri]}
    other = {"metastore": "thrift://s:9083", "roots": [{"uri": uri}]}
    fields: dict[str, Any] = {"paths": {"source": side}, "roots": {"source": other}, "locations": {"locations": {"a": uri}}}
    with pytest.raises(ValidationError, match="the address holds a password") as error:
        policy({}, **fields.get(setting, {setting: uri}))
    assert SECRET not in str(error.value)


def test_lists_of_addresses_without_passwords() -> None:
    side = {"metastore": "thrift://a:1,thrift://b:1", "roots": [{"uri": "hdfs://n:8020/", "webhdfs": "http://a:1,http://b:1"}]}
    assert policy({}, source=side).source.metastore == "thrift://a:1,thrift://b:1"


def test_references_are_resolved_where_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIVE_REPL_TEST_SECRET", SECRET)
    (tmp_path / "file").write_text(f"{SECRET}\n")
    found = resolved_options({"secret": "${env:HIVE_REPL_TEST_SECRET}", "token": f"${{file:{tmp_path}/file}}", "a": "b"})
    assert found == {"secret": SECRET, "token": SECRET, "a": "b"}
    monkeypatch.delenv("HIVE_REPL_TEST_SECRET")
    with pytest.raises(BadRequest, match="no environment variable HIVE_REPL_TEST_SECRET: set it"):
        resolved_options({"secret": "${env:HIVE_REPL_TEST_SECRET}"})
    with pytest.raises(BadRequest, match="cannot be read: No such file"):
        resolved_options({"secret": f"${{file:{tmp_path}/none}}"})


def test_a_storage_resolves_them_when_it_connects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[dict[str, str]] = []
    monkeypatch.setattr(
        "hive_replication.storage.storage.connect_backend", lambda scheme, authority, root, *_: made.append(root.options)
    )
    storage = Storage(policy({"secret": "${env:HIVE_REPL_TEST_SECRET}"}).source.roots)
    with pytest.raises(BadRequest, match="HIVE_REPL_TEST_SECRET"):
        storage.exists("s3://bucket/a")
    monkeypatch.setenv("HIVE_REPL_TEST_SECRET", SECRET)
    with pytest.raises(AttributeError):
        storage.exists("s3://bucket/a")
    assert made == [{"secret": SECRET}]
    assert SECRET not in repr(storage.__reduce__())


@pytest.mark.parametrize("kind", ["env", "file"])
def test_the_signing_key_is_a_reference_as_all_others(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("k" * 20 + "\n")
    monkeypatch.setenv("HIVE_REPL_TEST_KEY", "k" * 20)
    name = {"env": "HIVE_REPL_TEST_KEY", "file": f"{tmp_path}/key"}[kind]
    key = signing_key(policy({}, signing_key=f"${{{kind}:{name}}}").signing_key)
    assert key is not None
    assert key.verifies("dump", b"x", SigningKey(b"k" * 20).sign("dump", b"x"))


@pytest.mark.parametrize("written", ["k" * 20, "${env:A", "env:A", "${env:A} ", "${file:relative}", "${env:}", "file:/a"])
def test_a_key_that_is_no_reference_is_refused(written: str) -> None:
    """``env:A`` was taken for the password of the key of a client certificate itself."""
    with pytest.raises(ValidationError, match="signing_key"):
        policy({}, signing_key=written)
    with pytest.raises(ValidationError, match="key_password"):
        Tls(certificate="/c.pem", key="/k.pem", key_password=written)


def test_a_file_that_is_larger_than_any_secret_is_refused_and_not_read_to_its_end(tmp_path: Path) -> None:
    """A signing key in /dev/zero took all memory; of options the first part of a larger file was taken for the secret."""
    larger = tmp_path / "larger"
    larger.write_bytes(b"k" * (64 * 1024 + 1))
    for file in ("/dev/zero", str(larger)):
        with pytest.raises(BadRequest, match="it has more than 65,536 bytes"):
            signing_key(f"${{file:{file}}}")
        with pytest.raises(BadRequest, match="it has more than 65,536 bytes"):
            resolved_options({"token": f"${{file:{file}}}"})
    with pytest.raises(BadRequest, match="null byte"):
        signing_key("${file:/key\0}")
