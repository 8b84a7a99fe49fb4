"""Sessions end, and are bounded."""

from __future__ import annotations

from kpybroker.console.web import sessions
from kpybroker.console.web.sessions import Sessions


def test_a_session_ends_with_time() -> None:
    now = [0.0]
    kept = Sessions("secret", lambda: now[0])
    session = kept.log_in("secret")
    assert kept.is_logged_in(session)
    now[0] = sessions.SESSION_S_MAX
    assert not kept.is_logged_in(session)


def test_the_oldest_session_gives_way() -> None:
    kept = Sessions("secret")
    first = kept.log_in("secret")
    others = [kept.log_in("secret") for _ in range(sessions.SESSIONS_MAX)]
    assert not kept.is_logged_in(first)
    assert all(map(kept.is_logged_in, others))


def test_wrong_passwords_age() -> None:
    now = [0.0]
    kept = Sessions("secret", lambda: now[0])
    for _ in range(sessions.FAILURES_MAX):
        assert kept.log_in("wrong") is None
    assert kept.is_throttled()
    now[0] = sessions.FAILURE_S + 1
    assert not kept.is_throttled()


def test_a_token_is_of_one_session_and_one_process() -> None:
    kept, other = Sessions(None), Sessions(None)
    assert kept.is_token("a", kept.token("a"))
    assert not kept.is_token("b", kept.token("a"))
    assert not other.is_token("a", kept.token("a"))
    assert not kept.is_token(None, None)
