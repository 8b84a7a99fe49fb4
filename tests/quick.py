"""What `--quick` leaves out of `tests/`, for `make unit`: other processes, and what takes long. `make test` runs all.

A name is of a folder, a file, or a test with all of its parameters. That nothing else starts a command of ours, a
broker or a Python is checked in each quick run: what does, fails.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest

STARTS_PROCESSES = (
    "broker/lifecycle/test_zookeeper_client.py",
    "cli/dump/test_merge.py::test_a_bad_option_is_two_lines_and_exit_code_2",
    "cli/dump/test_merge.py::test_bytes_that_are_not_utf8_pass_through",
    "cli/dump/test_merge.py::test_files_are_named_or_found_by_a_pattern",
    "cli/health/test_notify.py::test_a_broker_says_when_it_is_ready_and_when_it_stops",
    "cli/health/test_ping.py",
    "cli/test_control.py",
    "cli/test_log.py",
    "cli/test_log_set_up.py::test_a_directory_that_cannot_be_is_two_lines_and_exit_code_2",
    "cli/test_main.py",
    "cli/test_odd_arguments.py::test_bytes_of_the_command_line_end_no_process",
    "cli/test_signals.py",
    "client/actions",
    "client/commands/test_complete.py",
    "client/commands/test_help.py::test_declarations_import_click_and_nothing_else",
    "client/commands/test_help.py::test_the_version_and_dev_import_nothing_of_the_clients",
    "client/doctor",
    "client/transfer",
    "console",
    "control/levers/test_tree_zookeeper.py",
    "control/process",
    "coordination/test_embedded.py::test_kill_9_loses_no_acknowledged_write",
    "coordination/test_parity.py",
    "coordination/test_zookeeper.py",
    "docs/test_deploy.py",
    "docs/test_mirroring_samples.py",
    "docs/test_samples.py",
    "docs/test_security_samples.py",
    "docs/test_testing_samples.py",
    "http/test_doors.py",
    "pytest_plugin",
    "registry/test_dev.py",
    "registry/test_topic.py",
    "storage/cleaning/test_process.py",
    "storage/disk/test_files.py::test_a_lock_is_seen_by_another_process",
    "test_costs.py",
    "test_flaky.py",
    "test_rerun.py",
    "test_scratch.py",
    "testing",
    "wire/test_api.py::test_no_message_module_is_imported_before_it_is_needed",
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
"""Of a property, where it names no number of its own. `make test` tries 100."""


def is_left_out(name: str) -> bool:
    """Whether the name of a folder, a file or a test below `tests/` is in one of the lists."""
    return name.partition("[")[0] in LEFT_OUT


class Quick:
    """A pytest plugin."""

    def __init__(self, tests: Path) -> None:
        self._tests = tests
        self._running = ""

    def pytest_configure(self) -> None:
        hypothesis.settings.register_profile("quick", hypothesis.settings(), max_examples=EXAMPLES)
        hypothesis.settings.load_profile("quick")
        sys.addaudithook(self.on_event)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if not collection_path.is_relative_to(self._tests):
            return None
        return is_left_out(collection_path.relative_to(self._tests).as_posix()) or None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = {item for item in items if is_left_out(item.nodeid.removeprefix(f"{self._tests.name}/"))}
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running = nodeid

    def pytest_runtest_logfinish(self) -> None:
        self._running = ""

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """A hook of Python's, which cannot be taken away again: it costs a call for each file that is opened."""
        if event == "subprocess.Popen" and self._running:
            program = Path(str(arguments[0])).name
            if program.startswith(("python", "kpybroker")):
                raise RuntimeError(f"{self._running} starts {program}: name it in tests/quick.py")
