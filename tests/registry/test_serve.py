"""What prevents a start is two lines, and never holds a secret."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kpybroker.cli.registry import command
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.registry import serve
from kpybroker.registry.election.protocol import Identity
from kpybroker.registry.options import RegistryOptions
from tests.support.network.certificates import Authority
from tests.support.programs.command_line import invoke

OPTIONS = RegistryOptions(Settings("127.0.0.1:1", {}, 1.0, "the test"))


def test_no_other_host_is_bound_without_a_login() -> None:
    wide = OPTIONS._replace(host="0.0.0.0")
    with pytest.raises(CommandError) as caught:
        serve.check(wide)
    assert caught.value.exit_code == 2
    serve.check(wide._replace(users={"alice": "scrypt$..."}))
    serve.check(wide._replace(is_open=True))
    serve.check(OPTIONS)


def test_files_of_tls_are_checked_before_anything_starts(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem, _ = authority.issue("registry")
    other, _ = authority.issue("other", own_key=True)
    good = OPTIONS._replace(cert_file=str(pem), key_file=str(pem), ca_file=str(authority.certificate))
    serve.check(good)
    assert serve.scheme(good) == "https"
    for bad in (
        good._replace(key_file=None),
        good._replace(cert_file=None),
        good._replace(key_file=str(tmp_path / "other.key")),
        good._replace(cert_file=str(tmp_path / "missing")),
        good._replace(ca_file=str(tmp_path / "registry.csr")),
        good._replace(ca_file=str(tmp_path / "missing")),
    ):
        with pytest.raises(CommandError) as caught:
            serve.check(bad)
        assert caught.value.exit_code == 2
    assert other.exists()


@pytest.mark.parametrize("url", ["host:1", "http://", "http://host", "ftp://host:1", "http://host:0", "http://host:x"])
def test_an_advertised_url_is_an_address(url: str) -> None:
    with pytest.raises(CommandError):
        serve.check(OPTIONS._replace(advertised_url=url))


def test_an_instance_is_where_others_reach_it() -> None:
    assert serve.identity(OPTIONS, 8085) == Identity("http", "127.0.0.1", 8085)
    named = OPTIONS._replace(advertised_url="https://registry.example:443", is_eligible=False)
    assert serve.identity(named, 8085) == Identity("https", "registry.example", 443, False)
    anywhere = serve.identity(OPTIONS._replace(host="0.0.0.0"), 1)
    assert anywhere.host == socket.gethostname()


def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PACKAGES", ("starlette", "not_here"))
    result = invoke(monkeypatch, "registry")
    assert result.code == 2
    assert result.err.splitlines() == [
        "kpybroker: this command needs not_here, which is not installed",
        "fix: pip install 'kpybroker[registry]'",
    ]


@pytest.mark.not_quick
def test_what_prevents_a_start_is_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, code in (
            (("--port", port), 5),
            (("--port", "0", "-b", "127.0.0.1:1", "--timeout", "5"), 1),
            (("--add-user", "alice"), 2),
            (("--host", "0.0.0.0"), 2),
        ):
            result = invoke(monkeypatch, "registry", *arguments)
            cause, fix = result.err.splitlines()
            assert (result.code, cause[:11], fix[:5]) == (code, "kpybroker: ", "fix: "), arguments


LOADED = """
import sys
from kpybroker.registry import serve
print(sorted({"fastavro", "jsonschema", "referencing", "grpc_tools", "google.protobuf"} & set(sys.modules)))
print("kpybroker.registry.schemas.parse" in sys.modules)
"""


@pytest.mark.not_quick
def test_no_parser_is_in_the_process_of_the_registry() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "False"]
