"""Sessions end, and are bounded."""

from __future__ import annotations

from kpybroker.console.web import sessions
from kpybroker.console.web.sessions import Sessions

HERE = "127.0.0.1"


def test_a_session_ends_with_time() -> None:
    now = [0.0]
    kept = Sessions("secret", lambda: now[0])
    session = kept.log_in("secret", HERE)
    assert kept.is_logged_in(session)
    now[0] = sessions.SESSION_S_MAX
    assert not kept.is_logged_in(session)


def test_the_oldest_session_gives_way() -> None:
    kept = Sessions("secret")
    first = kept.log_in("secret", HERE)
    others = [kept.log_in("secret", HERE) for _ in range(sessions.SESSIONS_MAX)]
    assert not kept.is_logged_in(first)
    assert all(map(kept.is_logged_in, others))


def test_wrong_passwords_age() -> None:
    now = [0.0]
    kept = Sessions("secret", lambda: now[0])
    for _ in range(sessions.RULES.of_address):
        assert kept.wait_s(HERE) == 0
        assert kept.log_in("wrong", HERE) is None
    assert kept.wait_s(HERE) > 0
    assert kept.wait_s("10.0.0.2") == 0, "others may log in"
    now[0] = kept.wait_s(HERE)
    assert kept.wait_s(HERE) == 0


def test_a_token_is_of_one_session_and_one_process() -> None:
    kept, other = Sessions(None), Sessions(None)
    assert kept.is_token("a", kept.token("a"))
    assert not kept.is_token("b", kept.token("a"))
    assert not other.is_token("a", kept.token("a"))
    assert not kept.is_token(None, None)
