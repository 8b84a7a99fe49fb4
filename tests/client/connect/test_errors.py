"""Causes, fixes, and secrets that stay secret."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from kpybroker.client.connect import errors
from kpybroker.client.connect.errors import CommandError, Failures, broker_error, check, kafka_error
from kpybroker.wire.errors import ErrorCode


def test_an_error_has_the_name_of_kafkas_documentation() -> None:
    found = kafka_error(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    assert "UNKNOWN_TOPIC_OR_PARTITION" in found.cause
    assert found.fix == errors.FIXES["UNKNOWN_TOPIC_OR_PARTITION"]
    local = kafka_error(KafkaError(KafkaError._TIMED_OUT, "Failed to x (after 306ms in state AUTH_REQ)"))
    assert local.cause == "Failed to x (TIMED_OUT)"


def test_the_doctor_is_named_only_where_it_can_find_the_cause() -> None:
    """It looks at connections, logins and certificates, and not at names, limits or groups."""
    named = {name for name, fix in errors.FIXES.items() if "doctor" in fix}
    assert named == {"_TIMED_OUT", "_MSG_TIMED_OUT", "_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE", "_SSL"}
    assert "doctor" not in errors.DEFAULT_FIX
    assert "doctor" not in errors.broker_error(ErrorCode.INVALID_TOPIC_EXCEPTION).fix  # type: ignore[union-attr]


def test_fixes_are_for_errors_that_exist() -> None:
    theirs = {name for name in dir(KafkaError) if name.startswith("_")}
    unknown = [name for name in errors.FIXES if name not in ErrorCode.__members__ and name not in theirs]
    assert unknown == []


def test_a_brokers_code_becomes_an_error() -> None:
    check(0)
    with pytest.raises(CommandError, match="mine \\(NON_EMPTY_GROUP\\)"):
        check(68, "mine.")
    unknown = broker_error(9999)
    assert unknown is not None
    assert "9999" in unknown.cause


def test_no_secret_is_written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_secrets", set())
    errors.keep_secret(["hunter2", "hunter22", ""])
    errors.report("password hunter22 is bad", "not hunter2")
    assert capsys.readouterr().err == "kpybroker: password *** is bad\nfix: not ***\n"


def test_each_failure_is_reported_and_each_fix_once(capsys: pytest.CaptureFixture[str]) -> None:
    failures = Failures()
    for item in ("a", "b"):
        assert failures.add(item, CommandError("broken", "repair it")) == {"cause": "broken", "fix": "repair it"}
    assert failures.exit_code() == 1
    assert capsys.readouterr().err == "kpybroker: a: broken\nkpybroker: b: broken\nfix: repair it\n"
    assert Failures().exit_code() == 0
