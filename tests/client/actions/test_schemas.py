"""`topic produce` and `topic consume` with a schema registry, with patterns, a file, and topics that are made."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kpybroker.client.connect import errors
from kpybroker.client.connect.settings import REGISTRY_ENVIRONMENT
from tests.client.conftest import Run
from tests.support.network.ports import free_port
from tests.support.programs.missing import forget, uninstall

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "raw", "type": "bytes"}],
}
PAGES: dict[str, Any] = {
    "/schemas/ids/1": {"schema": json.dumps(ORDER)},
    "/schemas/ids/2": {"schemaType": "JSON", "schema": '{"type": "string"}'},
    "/subjects/orders-value/versions/latest": {"id": 1, "schema": json.dumps(ORDER)},
    "/subjects/strange/versions/latest": {"id": "x", "schema": "x"},
    "/subjects/a%2Fb/versions/latest": {"id": 2, "schema": '{"type": "string"}'},
}


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """A registry with PAGES, for `me` with the password `hidden`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = PAGES.get(self.path)
            is_known = self.headers["Authorization"] == "Basic bWU6aGlkZGVu"
            self.send_response(401 if not is_known else 404 if page is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(page).encode())

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://me:hidden@127.0.0.1:{server.server_port}"
        server.shutdown()


def test_records_go_in_and_out_as_json(run: Run, name: str, registry: str) -> None:
    run("topic", "create", name, f"{name}-copy")
    with_schema = ("--schema-registry", registry, "--value-schema", "orders-value")
    sent = run("topic", "produce", name, *with_schema, stdin=b'{"id":7,"raw":"\\u00ff"}\n{"id":8,"raw":""}\nnull\n')
    assert (sent.code, sent.err) == (0, "delivered 3 records to 1 partition\n")
    raw = run("topic", "consume", name, "-e", "-Z", "-f", "%v{hex}\\n")
    assert raw.lines == ["00000000010e02ff", "00000000011000", "NULL"]
    values = run("topic", "consume", name, "-e", "--schema-registry", registry)
    assert (values.code, values.lines) == (0, ['{"id":7,"raw":"ÿ"}', '{"id":8,"raw":""}', ""])
    lines = run("topic", "consume", name, "-e", "--schema-registry", registry, "-f", "json")
    assert [json.loads(line)["value"] for line in lines.lines] == [{"id": 7, "raw": "ÿ"}, {"id": 8, "raw": ""}, None]
    copied = run("topic", "produce", f"{name}-copy", "-f", "json", *with_schema, stdin=lines.out)
    assert copied.code == 0
    assert run("topic", "consume", f"{name}-copy", "-e", "-Z", "-f", "%v{hex}\\n").lines == raw.lines


def test_keys_and_values_have_their_own_schemas(run: Run, name: str, registry: str) -> None:
    run("topic", "create", name)
    keyed = ("-K", "|", "--key-schema", "a/b", "--value-schema", "1", "--schema-registry", registry)
    assert run("topic", "produce", name, *keyed, stdin=b'"k"|{"id":1,"raw":"x"}\n').code == 0
    out = run("topic", "consume", name, "-e", "--schema-registry", registry, "--decode", "both", "-f", "%k %v %V\\n")
    assert out.lines == ['"k" {"id":1,"raw":"x"} 18']
    assert run("topic", "consume", name, "-e", "-f", "%k{hex}\\n").lines == ["0000000002226b22"]


def test_what_is_not_of_a_schema_is_printed_as_it_is_and_is_a_failure(run: Run, name: str, registry: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"plain\n" + b"\0\0\0\0\x63x\n" + b"\0\0\0\0\1x\n")
    run("topic", "produce", name, "--schema-registry", registry, "--value-schema", "1", stdin=b'{"id":1,"raw":""}\n')
    found = run("topic", "consume", name, "-e", "--schema-registry", registry)
    assert found.code == 1
    assert found.out == b"plain\n\0\0\0\0\x63x\n\0\0\0\0\1x\n" + b'{"id":1,"raw":""}\n'
    assert f"the value of {name}-0 at offset 0 is not decoded: no id of a schema" in found.err
    assert "offset 1 is not decoded: the registry has no schema 99" in found.err
    assert "offset 2 is not decoded: it is not of schema 1" in found.err
    assert "not decoded, and printed as they are: 3" in found.err


def test_a_value_that_is_not_of_the_schema_stops_it(run: Run, name: str, registry: str) -> None:
    run("topic", "create", name)
    with_schema = ("--schema-registry", registry, "--value-schema", "1")
    for line, why in (
        (b"x", "its value is no JSON"),
        (b'{"id":"7"}', "its value cannot be written: it is not of schema 1: id:"),
        (b"[" * 100_000, "its value is no JSON"),
        (b"\xff", "its value is no JSON"),
    ):
        found = run("topic", "produce", name, *with_schema, stdin=b'{"id":1,"raw":""}\n' + line + b"\n")
        assert found.code == 1
        assert f"line 2 is no record: {why}" in found.err
        assert "delivered 1 record" in found.err


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("produce", "t", "--value-schema", "1"), 2, "no schema registry is named"),
        (("produce", "t", "--schema-registry", "URL"), 2, "no schema is named"),
        (("produce", "t", "--message", "M"), 2, "no schema is named"),
        (("produce", "t", "--schema-registry", "x", "--value-schema", "1"), 2, "--schema-registry is no address"),
        (("produce", "t", "--schema-registry", "URL", "--value-schema", "9"), 1, "has no schema 9"),
        (("produce", "t", "--schema-registry", "URL", "--value-schema", "99999999999"), 2, "no id of a schema"),
        (("produce", "t", "--schema-registry", "URL", "--value-schema", "gone"), 1, "no subject gone"),
        (("produce", "t", "--schema-registry", "URL", "--value-schema", "strange"), 1, "is no schema registry's"),
        (("produce", "t", "--schema-registry", "URL", "--value-schema", "1", "--message", "M"), 2, "has no messages"),
        (("consume", "t", "--decode", "value"), 2, "no schema registry is named"),
        (("consume", "t", "--decode", "all"), 2, "'all' is not one of"),
        (("consume", "t", "--schema-registry", "ftp://x"), 2, "--schema-registry is no address"),
    ],
)
def test_what_cannot_be_used_is_refused(
    run: Run, registry: str, words: tuple[str, ...], code: int, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REGISTRY_ENVIRONMENT, raising=False)
    result = run("topic", *(registry if word == "URL" else word for word in words), stdin=b"x\n")
    assert (result.code, result.out) == (code, b"")
    assert named in result.err
    assert "hidden" not in result.err


def test_a_registry_that_is_away_ends_the_command(run: Run, name: str, registry: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"\0\0\0\0\1x\n" * 3)
    away = f"http://me:hidden@127.0.0.1:{free_port()}"
    for result in (
        run("topic", "consume", name, "-e", "--schema-registry", away),
        run("topic", "produce", name, "--schema-registry", away, "--value-schema", "1", stdin=b"x\n"),
        run("topic", "consume", name, "-e", "--schema-registry", registry.replace("me:hidden@", "")),
    ):
        assert (result.code, result.out) == (1, b"")
        assert "127.0.0.1" in result.err
        assert "hidden" not in result.err
        assert len(result.err.splitlines()) == 2


def test_the_environment_names_the_registry(
    run: Run, name: str, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topic", "create", name)
    monkeypatch.setattr(errors, "_secrets", set())
    monkeypatch.setenv(REGISTRY_ENVIRONMENT, registry)
    assert run("topic", "produce", name, "--value-schema", "1", stdin=b'{"id":1,"raw":""}\n').code == 0
    assert run("topic", "consume", name, "-e").out == b"\0\0\0\0\1\2\0\n"
    assert run("topic", "consume", name, "-e", "--decode", "value").lines == ['{"id":1,"raw":""}']


@pytest.mark.parametrize("package", ["fastavro", "httpx", "jsonschema", "google"])
def test_a_missing_package_is_named(
    run: Run, name: str, registry: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topic", "create", name)
    forget(monkeypatch, "kpybroker.client.schemas")
    uninstall(monkeypatch, package)
    schema = "2" if package == "jsonschema" else "1"
    found = run("topic", "produce", name, "--schema-registry", registry, "--value-schema", schema, stdin=b"x\n")
    assert found.code == 2
    assert found.err.splitlines() == [
        f"kpybroker: a schema registry needs {package}, which is not installed",
        "fix: pip install 'kpybroker[schemas]'",
    ]


# --- patterns, files, topics that are made


def test_a_pattern_reads_what_matches_and_no_internal_topic(run: Run, name: str) -> None:
    run("topic", "create", f"{name}.a", f"{name}.b", f"other-{name}")
    for topic in (f"{name}.a", f"{name}.b", f"other-{name}"):
        run("topic", "produce", topic, stdin=topic.encode() + b"\n")
    assert sorted(run("topic", "consume", f"{name}.*", "-e").lines) == [f"{name}.a", f"{name}.b"]
    assert sorted(run("topic", "consume", f"{name}.[ab]", f"other-{name}", "-o", ":end").lines) == [
        f"other-{name}", f"{name}.a", f"{name}.b"
    ]  # fmt: skip
    assert sorted(run("topic", "consume", f"*{name}*", "-g", name, "-e").lines) == [
        f"other-{name}", f"{name}.a", f"{name}.b"
    ]  # fmt: skip
    none = run("topic", "consume", f"none-{name}*", "-e")
    assert (none.code, none.out) == (1, b"")
    assert f"no topic matches none-{name}*" in none.err
    assert run("topic", "consume", "__consumer_offset?", "-e").code == 1


def test_a_file_is_sent(run: Run, name: str, tmp_path: Path) -> None:
    run("topic", "create", name)
    file = tmp_path / "lines.txt"
    file.write_bytes(b"a\n\xff\nb")
    assert run("topic", "produce", name, str(file), stdin=b"not this\n").code == 0
    assert run("topic", "produce", name, "-", stdin=b"and this\n").code == 0
    assert run("topic", "consume", name, "-e").out == b"a\n\xff\nb\nand this\n"
    for path in (tmp_path, tmp_path / "gone"):
        found = run("topic", "produce", name, str(path))
        assert found.code == 2
        assert f"{path} cannot be read" in found.err


def test_an_input_that_cannot_be_read_is_an_error(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kpybroker.client.actions.interrupts import InterruptibleSource

    run("topic", "create", name)
    read = InterruptibleSource.read1
    calls = []

    def broken(self: InterruptibleSource, size: int, /) -> bytes:
        calls.append(size)
        if len(calls) > 1:
            raise OSError(5, "Input/output error")
        return read(self, size)

    monkeypatch.setattr(InterruptibleSource, "read1", broken)
    found = run("topic", "produce", name, stdin=b"a\nb\nc")
    assert found.code == 1
    assert "the input cannot be read: Input/output error, after line 2" in found.err
    assert "delivered 2 records" in found.err


def test_a_copy_by_json_lines_makes_the_topic_as_the_source_is(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "5", "-c", "retention.ms=777")
    lines = b"".join(b'{"value":"%d","partition":%d}\n' % (n, n) for n in (0, 2, 3))
    run("topic", "produce", name, "-f", "json", stdin=lines)
    read = run("topic", "consume", name, "-e", "-f", "json")
    made = run("topic", "produce", f"{name}-copy", "-f", "json", "--create", stdin=read.out)
    assert (made.code, made.err) == (0, "delivered 3 records to 3 partitions\n")
    (found,) = run("topic", "describe", f"{name}-copy", "--format", "json").json
    assert len(found["partitions"]) == 5
    assert {one["key"]: one["value"] for one in found["configs"]} == {"retention.ms": "777"}
    form = ("-e", "-f", "%p %v\\n")
    assert sorted(run("topic", "consume", f"{name}-copy", *form).lines) == ["0 0", "2 2", "3 3"]


def test_partitions_are_made_as_records_of_another_cluster_need_them(run: Run, name: str) -> None:
    rows = [{"topic": f"elsewhere-{name}", "value": str(n), "partition": n} for n in (0, 3, 1, 6)]
    stdin = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert run("topic", "produce", name, "-f", "json", "--create", stdin=stdin).code == 0
    (found,) = run("topic", "describe", name, "--format", "json").json
    assert len(found["partitions"]) == 7
    assert sorted(run("topic", "consume", name, "-e", "-f", "%p=%v\\n").lines) == ["0=0", "1=1", "3=3", "6=6"]


def test_a_topic_that_cannot_be_made_is_named_with_its_line(run: Run, name: str) -> None:
    found = run("topic", "produce", "-f", "json", "--create", stdin=b'{"topic":"a b","value":"x"}\n')
    assert found.code == 1
    assert "delivered 0 records" in found.err
    too_many = run("topic", "produce", name, "-f", "json", "--create", stdin=b'{"value":"x","partition":2000000000}\n')
    assert too_many.code == 1
    assert "line 1: " in too_many.err
    assert "delivered 0 records" in too_many.err


def test_a_topic_like_another(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "3", "-c", "retention.ms=777", "-c", "min.insync.replicas=1")
    assert run("topic", "create", f"{name}-a", f"{name}-b", "--like", name, "-c", "retention.ms=5").code == 0
    for copy in (f"{name}-a", f"{name}-b"):
        (found,) = run("topic", "describe", copy, "--format", "json").json
        assert len(found["partitions"]) == 3
        assert {one["key"]: one["value"] for one in found["configs"]} == {
            "min.insync.replicas": "1", "retention.ms": "5"
        }  # fmt: skip
    run("topic", "create", f"{name}-c", "--like", name, "-p", "1")
    assert len(run("topic", "describe", f"{name}-c", "--format", "json").json[0]["partitions"]) == 1
    gone = run("topic", "create", f"{name}-d", "--like", f"{name}-gone")
    assert gone.code == 1
    assert f"topic {name}-gone" in gone.err
    both = run("topic", "create", f"{name}-d", "--like", name, "--replica-assignment", "0")
    assert both.code == 2
