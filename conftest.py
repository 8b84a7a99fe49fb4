"""Options of every run, and how `tests/scopes.py` spreads the tests over the workers of pytest-xdist (`-n 5`)."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import scratch
from tests.scopes import CLIENTS, SPARK, in_order, scope_of

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background of a script ignores Ctrl-C, and so would the commands whose reaction to it is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)

STARTS_PROCESSES = (
    "broker/lifecycle/test_zookeeper_client.py",
    "client/actions",
    "client/doctor",
    "client/transfer",
    "cli/test_main.py",
    "cli/test_signals.py",
    "control/levers/test_tree_zookeeper.py",
    "console",
    "coordination/test_parity.py",
    "coordination/test_zookeeper.py",
    "docs/test_mirroring_samples.py",
    "docs/test_samples.py",
    "docs/test_security_samples.py",
    "docs/test_testing_samples.py",
    "http/test_doors.py",
    "pytest_plugin",
    "registry/test_dev.py",
    "registry/test_topic.py",
    "test_costs.py",
    "test_flaky.py",
    "test_ports.py",
    "test_rerun.py",
    "testing",
)
"""Below `tests/`, what takes half of the time: brokers, ZooKeeper, pytest and commands as processes of their own."""
TAKES_LONG = (
    "broker/lifecycle/test_damage.py",
    "broker/requests/server/test_leaving.py",
    "broker/security/test_bearer_logins.py",
    "broker/security/test_jwks.py",
    "broker/security/test_stores.py",
    "cli/health/test_secured.py",
    "control/methods/test_topology.py",
    "control/requests/test_every_api.py",
    "core/consumer_group/test_stateful.py",
    "core/group/migration/test_stateful.py",
    "core/group/test_model.py",
    "core/group/test_room.py",
    "core/group/test_stateful.py",
    "core/transaction/test_stateful.py",
    "docs/test_site.py",
    "pipelines/demo/test_pictures.py",
    "registry/api/test_hostile.py",
    "registry/api/test_logins.py",
    "registry/compatibility/test_table.py",
    "storage/cleaning/test_crash.py",
    "storage/cleaning/test_load.py",
    "storage/disk/test_portable_files.py",
    "storage/inspection/test_verify.py",
    "storage/test_crash_matrix.py",
    "storage/test_faults.py",
    "system/test_system.py",
    "wire/records/test_default_record.py",
    "wire/records/test_record.py",
    "wire/records/test_slow_validation.py",
)
"""Half of what remains: many cases or examples, or seconds of waiting, in few files."""

LEFT_OUT = frozenset(Path(__file__).parent / "tests" / name for name in (*STARTS_PROCESSES, *TAKES_LONG))
"""By --quick."""

ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""How a run ends that came to its end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="of tests/, what is quick: no other processes, no long searches"
    )
    parser.addoption(
        "--failed-to", metavar="FILE", help="write the ids of tests that fail, for `python -m tests.rerun`"
    )
    parser.addoption("--costs-to", metavar="FILE", help="write what each file of tests costs: see tests/costs.py")


SCRATCH = pytest.StashKey[Path]()
"""The folder of this run's files."""


def pytest_configure(config: pytest.Config) -> None:
    if "TMPDIR" not in os.environ and scratch.has_room():
        config.stash[SCRATCH] = scratch.begin()
    file = config.getoption("--costs-to")
    if file is not None:
        from tests.costs import Measuring

        config.pluginmanager.register(Measuring(Path(file)))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write nothing for a run that did not come to its end: what it has not run may fail too."""
    file = session.config.getoption("--failed-to")
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if file is None or terminal is None or exitstatus not in ENDED:
        return
    if hasattr(session.config, "workerinput"):
        return
    failed = [report.nodeid for outcome in ("failed", "error") for report in terminal.stats.get(outcome, ())]
    Path(file).write_text("".join(f"{test_id}\n" for test_id in dict.fromkeys(failed)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--quick") and collection_path in LEFT_OUT else None


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, int, int]:
    """The run's files go with it, unless there is something to look at."""
    code = yield
    if SCRATCH in config.stash and not code and not config.getoption("--keep-files", False):
        shutil.rmtree(config.stash[SCRATCH], ignore_errors=True)
    return code


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected is never garbage: to look whether it is took a third of the time, and later each collection
    would look again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("compat_tests/") and "broker" in getattr(item, "fixturenames", ()):
            assert scope_of(item.nodeid) in (CLIENTS, SPARK), f"{item.nodeid}: its file is another worker's"
    positions = {nodeid: position for position, nodeid in enumerate(in_order([item.nodeid for item in items]))}
    items.sort(key=lambda item: positions[item.nodeid])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Spread(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False
    return Spread(config, log)
