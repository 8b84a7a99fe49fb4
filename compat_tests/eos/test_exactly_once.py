"""A slice of `make soak-eos`: copied once while broker and copiers die; a failure prints its seed for `--seed`."""

from __future__ import annotations

import random

from compat_tests.conftest import StartBroker
from compat_tests.eos.place import OVERRIDES, OneBroker
from compat_tests.eos.soak import Soak

RECORDS = 9_000
KILLS = 2
ZOMBIES = 2
KINDER = {"kpybroker": 1, "kafka": 2}  # Kafka takes ten seconds to come back, and its clients to find it


def test_exactly_once(own_broker: StartBroker) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    broker = own_broker(**{key.replace(".", "_"): value for key, value in OVERRIDES.items()})
    soak = Soak(OneBroker(broker), seed, RECORDS // KINDER[broker.kind], groups=False, say=print)
    assert soak.run(KILLS // KINDER[broker.kind], ZOMBIES) == []
    assert soak.numbers.zombies.total() == ZOMBIES // KINDER[broker.kind]


def test_exactly_once_by_a_group(own_broker: StartBroker) -> None:
    """The copiers share the partitions; who has lost his may not commit what he copied of it."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    broker = own_broker(**{key.replace(".", "_"): value for key, value in OVERRIDES.items()})
    assert Soak(OneBroker(broker), seed, RECORDS // 2 // KINDER[broker.kind], groups=True, say=print).run(1, 0) == []
