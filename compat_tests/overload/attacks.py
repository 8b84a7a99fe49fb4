"""Attacks on a listener with TLS and logins: handshakes that are never finished, and logins that are wrong.

As a program it attacks at a rate, in a process of its own, until its standard input ends; then it prints how often:

    python -m compat_tests.overload.attacks half-open 127.0.0.1 9093 CA.pem --rate 2000
"""

from __future__ import annotations

import argparse
import base64
import enum
import secrets
import selectors
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from compat_tests.overload.raw import Raw
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest

Address = tuple[str, int]
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256")
GUESSES_AT_ONCE: Final = 20
HELD_MAX: Final = 2_000
"""Half-open handshakes that the attacker keeps at once."""


class HalfOpen(enum.Enum):
    """How far the attacker goes with a handshake."""

    SILENT = "silent"
    PART = "part"
    HELLO = "hello"


def client_hello(context: ssl.SSLContext) -> bytes:
    """The first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake is not complete after the first message")


def half_open(address: Address, context: ssl.SSLContext, how: HalfOpen) -> Raw:
    """A connection whose handshake goes no further. After HELLO the broker has made its keys and signed."""
    hello = b"" if how is HalfOpen.SILENT else client_hello(context)
    client = Raw(address)
    client.send(hello[: len(hello) // 2] if how is HalfOpen.PART else hello)
    return client


def wrong_login(address: Address, context: ssl.SSLContext, mechanism: str, user: str) -> tuple[int, str | None]:
    """Log in with a wrong password: the error and its message. The broker closes the connection then."""
    with Raw(address, context=context) as client:
        assert client.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
        if mechanism == "PLAIN":
            response = client.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0wrong".encode()), 2)
        else:
            nonce = secrets.token_hex(8)
            first = client.ask(SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r={nonce}".encode()), 2)
            if first.error_code:
                return first.error_code, first.error_message
            whole = bytes(first.auth_bytes).decode().partition(",")[0].removeprefix("r=")
            proof = base64.b64encode(secrets.token_bytes(32)).decode()
            response = client.ask(SaslAuthenticateRequest(auth_bytes=f"c=biws,r={whole},p={proof}".encode()), 2)
        assert client.is_closed()
        return response.error_code, response.error_message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", choices=("half-open", "wrong-login"))
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("authority")
    parser.add_argument("--rate", type=float, default=2_000, help="a minute")
    options = parser.parse_args()
    address = (options.host, options.port)
    context = ssl.create_default_context(cafile=options.authority)
    attack = _half_opening(address, context) if options.attack == "half-open" else _guessing(address, context)
    print(_until_input_ends(attack, 60 / options.rate))
    return 0


def _half_opening(address: Address, context: ssl.SSLContext) -> Callable[[int], None]:
    held: deque[Raw] = deque()

    def attack(number: int) -> None:
        held.append(half_open(address, context, HalfOpen.HELLO))
        if len(held) > HELD_MAX:
            held.popleft().socket.close()

    return attack


def _guessing(address: Address, context: ssl.SSLContext) -> Callable[[int], None]:
    """Side by side, since each refusal is held back."""
    attackers = ThreadPoolExecutor(GUESSES_AT_ONCE)
    pending: deque[Future[tuple[int, str | None]]] = deque()

    def attack(number: int) -> None:
        mechanism, user = MECHANISMS[number % len(MECHANISMS)], "alice" if number % 4 < 2 else "ghost"
        pending.append(attackers.submit(wrong_login, address, context, mechanism, user))
        if len(pending) > GUESSES_AT_ONCE:
            code, _ = pending.popleft().result()
            assert code != 0

    return attack


def _until_input_ends(attack: Callable[[int], None], pause_s: float) -> int:
    """How many attacks there were, each `pause_s` after the one before, or as soon as that has ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        begin, count = time.monotonic(), 0
        while True:
            attack(count)
            count += 1
            if selector.select(max(0.0, begin + count * pause_s - time.monotonic())):
                return count


if __name__ == "__main__":
    sys.exit(main())
