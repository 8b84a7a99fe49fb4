"""Where lines go: standard error, the files of the streams, and the levels that a setting gives."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.requests.log_fields import write_counts
from kpybroker.cli.log_set_up import STREAMS, LogSettingError, apply_settings, set_up_logging
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.line_limit import about_client
from tests.support.loggers import kept_logging

FILES = {"server.log", *STREAMS.values()}


@pytest.fixture(autouse=True)
def undo() -> Iterator[None]:
    with kept_logging():
        yield


def settings(**keys: object) -> BrokerConfig:
    """Keys are those of `kpybroker.log.` with `.` written as `_`."""
    return BrokerConfig({f"kpybroker.log.{name.replace('_', '.')}": str(value) for name, value in keys.items()})


def start(directory: Path, log_format: str = "text", *, level: str = "INFO", quiet: bool = False, **keys: Any) -> None:
    set_up_logging(log_format, level, quiet)
    apply_settings(settings(dir=directory / "logs", **keys))


def contents(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in (directory / "logs").iterdir()}


def log_one_line_each() -> None:
    for name in ("kafka.server.KafkaServer", "kafka.controller.KafkaController", *STREAMS):
        logging.getLogger(name).warning("of %s", name)


def test_without_a_directory_everything_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("text", "INFO", quiet=False)
    apply_settings(settings())
    log_one_line_each()
    assert capsys.readouterr().err.count(" WARN of ") == 2 + len(STREAMS)


def test_each_stream_has_a_file_and_the_rest_is_in_server_log_and_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path)
    log_one_line_each()
    found = contents(tmp_path)
    assert found.keys() == FILES
    assert found["controller.log"].count("\n") == 2  # the controller's own logger, and one below it
    assert "of kafka.controller.KafkaController" in found["controller.log"]
    for name, file in STREAMS.items():
        assert f"of {name} ({name})\n" in found[file]
        assert name not in found["server.log"]
    assert re.fullmatch(
        r"\[.{23}\] WARN of kafka.server.KafkaServer \(kafka.server.KafkaServer\)\n", found["server.log"]
    )
    assert capsys.readouterr().err == found["server.log"]


def test_files_are_json_where_the_log_is(tmp_path: Path) -> None:
    start(tmp_path, "json")
    log_one_line_each()
    line = json.loads(contents(tmp_path)["state-change.log"])
    assert (line["logger"], line["message"]) == ("state.change.logger", "of state.change.logger")


def test_a_quiet_terminal_leaves_files_at_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(tmp_path, quiet=True)
    logging.getLogger("kafka.log.UnifiedLog").info("rolled")
    logging.getLogger("kafka.server.KafkaServer").info("started")
    logging.getLogger("state.change.logger").info("changed")
    err = capsys.readouterr().err
    assert ("rolled" in err, "started" in err) == (False, True)
    found = contents(tmp_path)
    assert "rolled" in found["server.log"]
    assert "changed" in found["state-change.log"]


def test_files_rotate_by_size_and_the_oldest_go(tmp_path: Path) -> None:
    start(tmp_path, max_bytes=500, max_files=2)
    for number in range(100):
        logging.getLogger("state.change.logger").info("change %d", number)
    found = {name: text for name, text in contents(tmp_path).items() if name.startswith("state-change")}
    assert found.keys() == {"state-change.log", "state-change.log.1", "state-change.log.2"}
    assert all(len(text) <= 500 for text in found.values())
    assert "change 99 " in found["state-change.log"]
    assert "change 0 " not in "".join(found.values())


@pytest.mark.parametrize(("roll", "when"), [("hourly", 3600), ("daily", 86400)])
def test_files_rotate_by_time(tmp_path: Path, roll: str, when: int) -> None:
    start(tmp_path, roll=roll)
    handler: Any = logging.getLogger("state.change.logger").handlers[-1]
    logging.getLogger("state.change.logger").info("earlier")
    handler.rolloverAt -= 2 * when  # as if so much time had passed
    logging.getLogger("state.change.logger").info("later")
    rotated = [name for name in contents(tmp_path) if name.startswith("state-change.log.")]
    assert len(rotated) == 1
    assert "earlier" in contents(tmp_path)[rotated[0]]
    assert "later" in contents(tmp_path)["state-change.log"]


def test_a_broker_goes_on_where_a_line_cannot_be_written(tmp_path: Path) -> None:
    start(tmp_path, max_bytes=100)
    (tmp_path / "logs" / "server.log").unlink()
    (tmp_path / "logs" / "server.log").mkdir()
    for _ in range(3):
        logging.getLogger("kafka.server.KafkaServer").warning("x" * 100)


def test_the_request_log_is_off_at_any_level_of_the_root(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("text", "DEBUG", quiet=False)
    assert not logging.getLogger("kafka.request.logger").isEnabledFor(logging.DEBUG)
    apply_settings(settings(levels="kafka.request.logger=TRACE,root=ERROR"))
    assert logging.getLogger("kafka.request.logger").isEnabledFor(5)
    assert logging.getLogger().level == logging.ERROR


@pytest.mark.parametrize("levels", ["kafka", "=INFO", "kafka.request.logger=loud", "a=INFO,b"])
def test_a_bad_level_has_a_cause_and_a_fix(levels: str) -> None:
    with pytest.raises(LogSettingError, match=r"kpybroker\.log\.levels has") as raised:
        apply_settings(settings(levels=levels))
    assert "TRACE" in raised.value.fix


@pytest.mark.not_quick
@pytest.mark.parametrize("broken", ["file", "logs"])
def test_a_directory_that_cannot_be_is_two_lines_and_exit_code_2(tmp_path: Path, broken: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "logs" / "server.log").mkdir(parents=True)
    command = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--ephemeral", "--override"]
    done = subprocess.run(
        [*command, f"kpybroker.log.dir={tmp_path / broken}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "kpybroker.log.dir: " in done.stderr
    assert "\nfix: name a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_how_many_lines_a_client_may_cause_is_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("text", "INFO", quiet=False)
    apply_settings(settings(client_lines_max=5))
    for _ in range(20):
        logging.getLogger("kafka.server.KafkaApis").warning("Refused", extra=about_client("10.0.0.1"))
    write_counts(is_end=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.count("Refused") for line in lines] == [1] * 5 + [0]
    assert "15 more lines about the client at 10.0.0.1 were not written" in lines[-1]
