"""What `import kpybroker.testing` costs: it is in every run of a user's tests, also where no broker is started."""

from __future__ import annotations

import subprocess
import sys

from _pytest.fixtures import FixtureFunctionDefinition

NOT_IMPORTED = (
    "trio",
    "asyncio",
    "http.client",
    "json",
    "tempfile",
    "shutil",
    "kpybroker.broker",
    "kpybroker.control",
    "kpybroker.config",
    "kpybroker.wire",
    "kpybroker.testing.fixtures",
    "kpybroker.testing.typed",
    "confluent_kafka",
    "kafka",
    "aiokafka",
    "pytest",
)
SECONDS_MAX = 0.05

PROGRAM = """
import dataclasses, time, typing, sys  # which any test run has imported
began = time.thread_time()
import kpybroker.testing
print(time.thread_time() - began)
print(*sys.modules)
"""


def run() -> tuple[float, set[str]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    seconds, names = done.stdout.splitlines()
    return float(seconds), set(names.split())


def test_nothing_is_imported_that_a_test_may_not_need() -> None:
    _, names = run()
    assert names.intersection(NOT_IMPORTED) == set()


def test_it_takes_fifty_milliseconds_at_most() -> None:
    """Of processor time, in the best of a few tries: other processes take their share of the machine."""
    assert min(run()[0] for _ in range(5)) <= SECONDS_MAX


def test_all_public_names_are_there() -> None:
    import kpybroker.testing as testing

    missing = [name for name in testing.__all__ if not hasattr(testing, name)]
    assert missing == []


TYPES = """
import sys
from kpybroker.testing import Admin, ApiName, BrokerFactory, Consumer, ErrorName, Producer, Requests
def test(made: Producer | None, names: list[ErrorName]) -> Admin: ...
print(*sys.modules)
"""


def test_types_of_clients_import_no_client() -> None:
    done = subprocess.run([sys.executable, "-c", TYPES], capture_output=True, text=True, check=True)
    assert {"confluent_kafka", "kafka", "aiokafka"}.isdisjoint(done.stdout.split())


def test_each_fixture_has_a_type_that_can_be_imported() -> None:
    import kpybroker.pytest_plugin.fixtures as plugin
    import kpybroker.testing as testing

    found = {name: one for name, one in vars(plugin).items() if isinstance(one, FixtureFunctionDefinition)}
    assert len(found) >= 12
    for name, one in found.items():
        returned = one._get_wrapped_function().__annotations__["return"]
        returned = returned.removeprefix("Iterator[").removesuffix("]")
        assert returned == "str" or returned in testing.__all__, (name, returned)
