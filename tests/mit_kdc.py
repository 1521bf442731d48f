"""MIT's KDC, which most companies run, in the place of the embedded one: the same realms, principals and keytabs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from resources.embedded.kerberos import Kdc
from resources.embedded.processes import Server

_PATH = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin"


def in_place(patch: pytest.MonkeyPatch) -> None:
    """Makes KDCs that start from now on MIT's, where it is installed; in CI it has to be."""
    if shutil.which("krb5kdc", path=_PATH) and shutil.which("kadmin.local", path=_PATH):
        prepare = Kdc._prepare

        def prepared(kdc: Kdc) -> None:
            prepare(kdc)
            _make_database(kdc)

        patch.setattr(Kdc, "_prepare", prepared)
        patch.setattr(Kdc, "_server", _server)
    elif os.environ.get("CI"):
        raise FileNotFoundError("install the packages krb5-kdc and krb5-admin-server")


def _server(kdc: Kdc) -> Server:
    command = ("env", *(f"{name}={value}" for name, value in _environment(kdc).items()), "krb5kdc", "-n", "-r", kdc.realm)
    return Server(f"{kdc.side}.kdc", kdc._home, command, (kdc.ports[kdc.side],))


def _environment(kdc: Kdc) -> dict[str, str]:
    return {"PATH": _PATH, "KRB5_CONFIG": str(kdc.config), "KRB5_KDC_PROFILE": str(kdc._home / "kdc.conf")}


def _make_database(kdc: Kdc) -> None:
    """Makes the realm's database and keytabs of what the embedded KDC would read, unless they are there."""
    home = kdc._home
    settings = {
        "database_name": home / "principals.db",
        "key_stash_file": home / "stash",
        "max_life": f"{kdc.ticket_seconds}s",
        "max_renewable_life": f"{kdc.ticket_seconds}s",
    }
    realm = "".join(f"  {name} = {value}\n" for name, value in settings.items())
    addresses = f'  kdc_listen = ""\n  kdc_tcp_listen = 127.0.0.1:{kdc.ports[kdc.side]}\n'
    content = f"[kdcdefaults]\n{addresses}[realms]\n  {kdc.realm} = {{\n{realm}  }}\n"
    (home / "kdc.conf").write_text(content, encoding="utf-8")
    if (home / "stash").is_file():
        return
    lines = [line.split("\t") for line in kdc._principals.read_text(encoding="utf-8").splitlines()]
    asked = [f"addprinc -pw {password} {principal}" for principal, password, *_ in lines]
    asked += [f"ktadd -norandkey -k {keytab[0]} {principal}" for principal, _, *keytab in lines if keytab]
    _run(kdc, "kdb5_util", "-P", "master", "create", "-s")
    _run(kdc, "kadmin.local", text="\n".join(asked))
    missing = [keytab[0] for _, _, *keytab in lines if keytab and not Path(keytab[0]).is_file()]
    assert not missing, missing


def _run(kdc: Kdc, program: str, *arguments: str, text: str = "") -> None:
    environment = {**os.environ, **_environment(kdc)}
    command = [str(shutil.which(program, path=_PATH)), "-r", kdc.realm, *arguments]
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
