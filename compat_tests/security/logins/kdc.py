"""A Kerberos realm of the test's own: a real MIT KDC on a free port of this machine, its files in one directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.support.services import Service
from tests.support.network.ports import free_port

REALM = "KPYBROKER.TEST"
SBIN = "/usr/sbin:/usr/local/sbin:/sbin"

KRB5_CONF = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""

KDC_CONF = """[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    acl_file = {directory}/kadm5.acl
  }}
"""


class Realm:
    """Principals get random keys; `keytab(name)` is the file with the key of one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        port = free_port()
        values = {"realm": REALM, "port": port, "directory": directory}
        self.config = directory / "krb5.conf"
        self.config.write_text(KRB5_CONF.format(**values))
        (directory / "kdc.conf").write_text(KDC_CONF.format(**values))
        self.env = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{directory}/tickets",
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={self.config}",
            "PATH": f"{os.environ['PATH']}:{SBIN}",
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.service = Service("krb5kdc", ["krb5kdc", "-n"], directory, self.env)

    def add(self, *names: str) -> None:
        for name in names:
            self._run("kadmin.local", "-q", f"addprinc -randkey {name}@{REALM}")
            self._run("kadmin.local", "-q", f"ktadd -k {self.keytab(name)} {name}@{REALM}")

    def keytab(self, name: str) -> Path:
        return self.directory / f"{name.replace('/', '.')}.keytab"

    def log_in(self, name: str) -> None:
        """Get a ticket for what finds it by KRB5CCNAME."""
        self._run("kinit", "-k", "-t", str(self.keytab(name)), f"{name}@{REALM}")

    def _run(self, *command: str) -> None:
        env = {**os.environ, **self.env}
        done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextmanager
def realm(directory: Path, names: Sequence[str]) -> Iterator[Realm]:
    """A running realm with these principals; this process and those that it starts use it."""
    with pytest.MonkeyPatch.context() as patch:
        one = Realm(directory)
        for name, value in one.env.items():
            patch.setenv(name, value)
        one.add(*names)
        one.service.start(lambda output: "starting" in output.lower() or "commencing" in output.lower())
        try:
            yield one
        finally:
            one.service.kill()
