"""What `--quick` leaves out of `tests/`, for `make unit`: other processes, and what takes long. `make test` runs all.

Folders and files are named here; single tests and parameters have the mark `not_quick`. No other test starts a Python,
a Java or a command of ours: in a quick run what does, fails. But a broker of a test's own process may start its
cleaner.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

STARTS_PROCESSES = (
    "broker/lifecycle/test_zookeeper_client.py",
    "broker/maintenance/test_log_cleaner.py",
    "cli/health/test_ping.py",
    "cli/test_control.py",
    "cli/test_log.py",
    "cli/test_main.py",
    "cli/test_signals.py",
    "cli/walk",
    "client/actions",
    "client/commands/test_complete.py",
    "client/doctor",
    "client/records/test_exact.py",
    "client/transfer",
    "console",
    "control/levers/test_tree_zookeeper.py",
    "control/process",
    "coordination/test_parity.py",
    "coordination/test_zookeeper.py",
    "docs/reference",
    "docs/test_deploy.py",
    "docs/test_mirroring_samples.py",
    "docs/test_samples.py",
    "docs/test_security_samples.py",
    "docs/test_testing_samples.py",
    "http/test_doors.py",
    "pytest_plugin",
    "registry/api/test_texts.py",
    "registry/test_dev.py",
    "registry/test_topic.py",
    "registry/texts/test_channels.py",
    "registry/texts/test_hostile_texts.py",
    "storage/cleaning/test_process.py",
    "test_costs.py",
    "test_flaky.py",
    "test_ports.py",
    "test_rerun.py",
    "test_scratch.py",
    "testing",
)
"""Brokers, ZooKeeper, pytest and commands as processes of their own."""
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
    "core/controller/test_failover.py",
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
    "simulation",
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
"""Many cases or examples, or seconds of waiting."""

LEFT_OUT = frozenset((*STARTS_PROCESSES, *TAKES_LONG))
EXAMPLES = 25
"""Of a property, where it names no number of its own. `make test` tries 40."""
PROGRAMS = ("java", "kpybroker", "python")
CLEANER = "kpybroker.storage.cleaning.process"


class Quick:
    """A pytest plugin."""

    def __init__(self, tests: Path) -> None:
        self._tests = tests
        self._started: list[str] = []

    def pytest_configure(self) -> None:
        hypothesis.settings.register_profile("quick", hypothesis.settings(), max_examples=EXAMPLES)
        hypothesis.settings.load_profile("quick")
        sys.addaudithook(self.on_event)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if not collection_path.is_relative_to(self._tests):
            return None
        return collection_path.relative_to(self._tests).as_posix() in LEFT_OUT or None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if item.get_closest_marker("not_quick")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not item.get_closest_marker("not_quick")]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        """Not where it starts: what has started it may try again and again."""
        yield
        started, self._started = self._started, []
        if started:
            pytest.fail(f"starts {' and '.join(started)}, and is not marked `not_quick`", pytrace=False)

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """A hook of Python's, which cannot be taken away again: it costs a call for each file that is opened."""
        if event == "subprocess.Popen":
            program = Path(str(arguments[0]))
            is_of_a_test = program.is_relative_to(tempfile.gettempdir())
            if program.name.startswith(PROGRAMS) and CLEANER not in arguments[1] and not is_of_a_test:
                self._started.append(program.name)
