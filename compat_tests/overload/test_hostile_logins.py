"""A listener with TLS and logins under attack: what attackers begin and do not finish is gone afterwards, and a client
that is logged in does not notice.

How long its records take during the attack is measured by `make bench-hostile`.
"""

from __future__ import annotations

import contextlib
import resource
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import pytest

from compat_tests.conftest import Launcher
from compat_tests.overload.attacks import MECHANISMS, HalfOpen, half_open, wrong_login
from compat_tests.overload.raw import Raw
from compat_tests.overload.victim import MIB, Victim
from compat_tests.support.security.secured import LOGIN, librdkafka_login, secured_keys
from compat_tests.support.waiting import eventually
from kpybroker.broker.network.tls_stream import HANDSHAKE_BYTES_MAX
from kpybroker.broker.security.stores import HANDSHAKE_S_MAX
from kpybroker.system import IS_PORTABLE
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port

ATTACKS: Final = 500, 2_000
"""In `make test`, and with the wide tests: there less that is left of each would be noticed."""
ATTACKERS: Final = 20
HALF_OPEN_BYTES_MAX: Final = 100_000
"""Of memory, for a handshake that is under way; what OpenSSL alone takes is half of it."""
LEFT_BYTES_MAX: Final = 24 * MIB
"""What may be left of an attack: pages of the heap that something else is in too, which the next attack uses again."""
LOGIN_BYTES_MAX: Final = 32 * MIB
SOCKETS_SLACK: Final = 20
DEADLINE_S: Final = 120.0


class Attacked(NamedTuple):
    victim: Victim
    address: tuple[str, int]
    context: ssl.SSLContext


@pytest.fixture(scope="module")
def attacked(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A broker whose bystander is logged in over TLS."""
    authority = Authority(tmp_path_factory.mktemp("hostile"))
    port = free_port()
    broker = launcher.unstarted()
    broker.configure(secured_keys(broker.port, port, authority))
    broker.start()
    victim = Victim(broker, login=librdkafka_login(f"127.0.0.1:{port}", authority))
    victim.bystander.start()
    yield Attacked(victim, ("127.0.0.1", port), ssl.create_default_context(cafile=str(authority.certificate)))
    victim.close()
    broker.service.kill()


def are_ended(victim: Victim, sockets: int) -> bool:
    """Whether the broker has about as many sockets as before."""
    assert victim.open_sockets < sockets + SOCKETS_SLACK, f"{victim.open_sockets} are open, and {sockets} were before"
    return True


@pytest.fixture
def attacks(request: pytest.FixtureRequest) -> int:
    """How many there are."""
    return ATTACKS[bool(request.config.getoption("--all-versions"))]


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough for this process's ends of the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, max(ATTACKS) + 1_000)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, id=how.value, marks=[pytest.mark.wide] if how is not HalfOpen.HELLO else [])
        for how in HalfOpen
    ],
)
def test_half_open_handshakes_end_and_leave_nothing(attacked: Attacked, attacks: int, how: HalfOpen) -> None:
    victim, address, context = attacked
    victim.is_unharmed()
    victim.reset_peak()
    before, sockets = victim.rss, victim.open_sockets
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(half_open(address, context, how)) for _ in range(attacks)]
        victim.is_unharmed()
        assert victim.peak_rss - before < attacks * HALF_OPEN_BYTES_MAX
        # They say nothing more, and it is the broker that ends them.
        eventually(lambda: are_ended(victim, sockets), "the broker ends them", HANDSHAKE_S_MAX + DEADLINE_S)
        assert all(client.is_closed() for client in clients)
    victim.is_unharmed()
    if not IS_PORTABLE:  # portable mode leaves freed memory to the C library: docs/reference/operating-systems.md
        eventually(lambda: victim.rss - before < LEFT_BYTES_MAX, "the memory is given back")


def test_a_handshake_may_not_be_long(attacked: Attacked) -> None:
    """A client that sends records of a handshake without end is disconnected at the limit."""
    victim, address, _ = attacked
    record = b"\x16\x03\x01\x40\x00" + b"\x01\x01\xff\xff" + bytes(0x4000 - 4)
    with Raw(address) as client:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 100 * HANDSHAKE_BYTES_MAX:
                client.send(record)
                sent += len(record)
        assert client.is_closed()
    assert sent < 100 * HANDSHAKE_BYTES_MAX
    victim.is_unharmed()


def test_wrong_logins_leave_nothing(attacked: Attacked, attacks: int) -> None:
    victim, address, context = attacked
    victim.is_unharmed()
    sockets = victim.open_sockets
    users = (LOGIN.user, "ghost")

    def one(number: int) -> tuple[int, str | None]:
        return wrong_login(address, context, MECHANISMS[number % 2], users[number // 2 % 2])

    def attack(count: int) -> Counter[tuple[int, str | None]]:
        with ThreadPoolExecutor(ATTACKERS) as attackers:  # each waits for the delay of its refusal
            return Counter(attackers.map(one, range(count)))

    attack(attacks // 10)  # what is made once
    victim.reset_peak()
    before = victim.rss
    responses = attack(attacks)
    assert {code for code, _ in responses} == {ErrorCode.SASL_AUTHENTICATION_FAILED}, responses
    assert len(responses) == len(MECHANISMS), "a user that does not exist is refused like one that does"
    eventually(lambda: are_ended(victim, sockets), "all connections have ended")
    assert victim.peak_rss - before < LOGIN_BYTES_MAX
    eventually(lambda: victim.rss - before < LEFT_BYTES_MAX, "the memory is given back")
    victim.is_unharmed()


def test_a_refusal_waits_and_the_attackers_other_logins_do_not_wait_for_it(attacked: Attacked) -> None:
    """Each failure is held back for 100 ms, and that delay takes no one else's time."""
    victim, address, context = attacked
    begin = time.monotonic()
    wrong_login(address, context, "PLAIN", LOGIN.user)
    assert time.monotonic() - begin >= 0.1
    victim.is_unharmed()


def test_before_the_login_there_is_nothing_but_the_login(attacked: Attacked) -> None:
    """A frame of more than 64 KiB is not waited for."""
    victim, address, context = attacked
    with Raw(address, context=context) as client:
        client.send((64 * 1024 + 1).to_bytes(4, "big"))
        assert client.is_closed()
    with Raw(address, context=context) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        client.send((64 * 1024 + 1).to_bytes(4, "big"))
        assert client.is_closed()
    victim.is_unharmed()


def test_all_records_of_the_client_that_was_logged_in_have_arrived(attacked: Attacked) -> None:
    attacked.victim.bystander.finish()
    assert attacked.victim.bystander.acknowledged > 0
