"""Wrong passwords: who waits for them, and who does not."""

from __future__ import annotations

from kpybroker.core.doors.attempts import Attempts, Rules

RULES = Rules(of_address=5, of_name=20, per_s=60.0, known_s=1_000.0)
HERE, THERE, HOME = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def test_an_address_waits_after_its_wrong_passwords_and_others_do_not() -> None:
    attempts = Attempts(RULES)
    for number in range(5):
        assert attempts.wait_s(HERE, f"name-{number}", 0) == 0
        attempts.failed(HERE, f"name-{number}", 0)
    assert attempts.wait_s(HERE, "another", 0) == 12.0
    assert attempts.wait_s(THERE, "name-0", 0) == 0
    assert attempts.wait_s(HERE, "another", 11.9) > 0
    assert attempts.wait_s(HERE, "another", 12) == 0


def test_one_that_goes_on_gets_one_try_for_each_place_that_is_free() -> None:
    attempts, tries = Attempts(RULES), 0
    for second in range(600):
        if attempts.wait_s(HERE, "a", second) == 0:
            attempts.failed(HERE, "a", second)
            tries += 1
    assert 5 + 600 // 12 - 2 <= tries <= 5 + 600 // 12


def test_a_name_waits_wherever_it_is_guessed_but_not_where_its_user_is() -> None:
    attempts = Attempts(RULES)
    attempts.succeeded(HOME, "alice", 0)
    for number in range(20):
        attempts.failed(f"9.9.{number}.1", "alice", 1)
    assert attempts.wait_s("9.9.99.1", "alice", 1) > 0
    assert attempts.wait_s(HOME, "alice", 1) == 0
    assert attempts.wait_s(THERE, "bob", 1) == 0
    for number in range(20):
        attempts.failed(f"9.9.{number}.1", "alice", 1_000)
    assert attempts.wait_s(HOME, "alice", 1_000) > 0, "that was long ago"


def test_a_right_password_does_not_make_up_for_wrong_ones() -> None:
    """A guesser with a password of its own would reset the count with it."""
    attempts = Attempts(RULES)
    for _ in range(5):
        attempts.failed(HERE, "alice", 0)
        attempts.succeeded(HERE, "mallory", 0)
    assert attempts.wait_s(HERE, "alice", 0) > 0


def test_addresses_of_one_network_count_as_one() -> None:
    attempts = Attempts(RULES)
    for number in range(5):
        attempts.failed(f"2001:db8::{number}", "a", 0)
    assert attempts.wait_s("2001:db8::ffff", "a", 0) > 0
    assert attempts.wait_s("2001:db8:0:1::1", "a", 0) == 0


def test_one_name_for_all_is_not_limited() -> None:
    attempts = Attempts(RULES._replace(of_name=None))
    for number in range(1_000):
        attempts.failed(f"9.9.{number // 250}.{number % 250}", "", 0)
    assert attempts.wait_s(HERE, "", 0) == 0


def test_the_tables_are_bounded() -> None:
    attempts = Attempts(RULES, entries_max=100)
    for number in range(10_000):
        attempts.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", f"name-{number}", number)
        attempts.succeeded(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", f"name-{number}", number)
    assert {len(attempts._addresses), len(attempts._names), len(attempts._known)} == {100}
