"""With pytest-xdist, one broker for all workers: started by the first that needs it, ended by the controller.

The broker's process ends with the controller's (`--exit-with`), whatever ends that. The workers find it by a file in
a directory that is named after the run.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from kpybroker.pytest_plugin.options import extra_config, scope, security

if TYPE_CHECKING:
    from kpybroker.testing import Broker

START_S_MAX: Final = 60.0
POLL_S: Final = 0.01
NOT_SHARED: Final = frozenset(("kafka_faults", "kafka_clock", "kafka_requests"))
"""Fixtures that change or see what tests of other workers do."""


def shared_broker(request: pytest.FixtureRequest) -> Broker | None:
    """The run's broker, not started; None where this process has its own."""
    config = request.config
    worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or scope(config) != "session" or not hasattr(os, "getppid") or _is_remote(worker):
        return None
    if any(NOT_SHARED & set(getattr(item, "fixturenames", ())) for item in request.session.items):
        return None
    from kpybroker.pytest_plugin.attached import AttachedBroker

    wanted = security(config)
    return AttachedBroker(*_address(_place(worker["testrunuid"]), extra_config(config), wanted), **wanted)


def _is_remote(worker: Mapping[str, Any]) -> bool:
    """Whether the controller is not this process's parent: it may be on another machine."""
    return bool(worker.get("kafka_controller_pid", os.getppid()) != os.getppid())


def _place(run_id: str) -> Path:
    return Path(tempfile.gettempdir()) / f"kpybroker-pytest-{run_id}"


def _address(place: Path, keys: Mapping[str, str], wanted: Mapping[str, Any]) -> tuple[str, int, str]:
    """Host and port of the control channel, and where its files are; starts the broker if no other worker does."""
    from kpybroker.system.private_files import take_directory

    try:
        take_directory(str(place))
    except OSError as error:
        raise pytest.UsageError(f"the workers' directory {error.filename} cannot be used: {error.strerror}") from error
    found = place / "broker.json"
    try:
        os.close(os.open(place / "starting", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return _wait_for(found)
    from kpybroker.testing.running.launch import Launch
    from kpybroker.testing.running.options import BrokerOptions
    from kpybroker.testing.security import Security

    try:
        security_ = Security(**{"tls": False, "sasl": None, "acl": False, **wanted})
        launch = Launch(1, dict(keys), BrokerOptions(), security_.wanted)
        host, port = launch.process(exit_with=os.getppid()).start(START_S_MAX)
    except Exception as error:
        _publish(found, {"error": str(error)})
        raise
    _publish(found, {"host": host, "port": port, "directory": launch.directory})
    return host, port, launch.directory


def _publish(file: Path, value: Mapping[str, Any]) -> None:
    written = file.with_suffix(".new")
    written.write_text(json.dumps(value))
    written.replace(file)


def _wait_for(file: Path) -> tuple[str, int, str]:
    end = time.monotonic() + START_S_MAX
    while not file.exists():
        if time.monotonic() > end:
            raise pytest.UsageError(f"the broker that the workers share was not started within {START_S_MAX:g} s")
        time.sleep(POLL_S)
    value = json.loads(file.read_text())
    if "error" in value:
        raise pytest.UsageError(f"the broker that the workers share did not start: {value['error']}")
    return value["host"], value["port"], value["directory"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In the controller: stop the broker, if there is one."""
    manager = session.config.pluginmanager.get_plugin("dsession")
    run_id = getattr(getattr(manager, "nodemanager", None), "testrunuid", None)
    if run_id is None or not _place(run_id).exists():
        return
    place = _place(run_id)
    try:
        from kpybroker.pytest_plugin.attached import AttachedBroker

        with AttachedBroker(*_wait_for(place / "broker.json")) as broker:
            broker.channel.call("stop")
    except Exception as error:  # the tests have their results; the broker ends with this process
        session.config.issue_config_time_warning(pytest.PytestWarning(f"the shared broker: {error}"), stacklevel=2)
    finally:
        shutil.rmtree(place, ignore_errors=True)
