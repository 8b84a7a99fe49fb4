"""DescribeUserScramCredentials and AlterUserScramCredentials: Kafka's checks, and what is in the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.core.security.scram import MAX_ITERATIONS, ScramMechanism, make_credential, parse_credential
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kpybroker.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from tests.support.brokers.running_broker import ask, running_broker

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
SHA_256, SHA_512 = 1, 2
SALTED = b"salted password"


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> Upsertion:
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=SALTED)


async def alter(broker: Broker, *changes: Upsertion | Deletion) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, Deletion)],
        upsertions=[one for one in changes if isinstance(one, Upsertion)],
    )
    response = await ask(broker, request, 0)
    return {result.user: (result.error_code, result.error_message) for result in response.results}


async def describe(broker: Broker, *names: str) -> Any:
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    response = await ask(broker, DescribeUserScramCredentialsRequest(users=users or None), 0)
    assert response.error_code == 0
    return [
        (
            result.user,
            result.error_code,
            result.error_message,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in response.results
    ]


async def test_what_is_set_is_described_and_deleted(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        done = await alter(broker, upsertion("bob"), upsertion("alice"), upsertion("alice", SHA_512, 8192))
        assert done == {"bob": (0, ""), "alice": (0, "")}
        alice = ("alice", 0, "", [(SHA_256, 4096), (SHA_512, 8192)])
        assert await describe(broker) == [alice, ("bob", 0, "", [(SHA_256, 4096)])]
        assert await describe(broker, "alice") == [alice]
        assert await alter(broker, Deletion(name="alice", mechanism=SHA_256)) == {"alice": (0, "")}
        assert await describe(broker, "alice") == [("alice", 0, "", [(SHA_512, 8192)])]


async def test_the_tree_holds_kafkas_credential_of_the_salted_password(tmp_path: Path) -> None:
    expected = make_credential(ScramMechanism.SHA_256, "secret", b"salt", 4096)
    from kpybroker.core.security.scram import salted_password

    one = upsertion("a b~c")
    one.salted_password = salted_password(ScramMechanism.SHA_256, "secret", b"salt", 4096)
    async with running_broker(tmp_path) as broker:
        await alter(broker, one)
        props = await broker.configs.read(znodes.CONFIG_USERS, "a%20b%7Ec")
        assert parse_credential(props["SCRAM-SHA-256"]) == expected
        assert [user for user, *_ in await describe(broker)] == ["a b~c"]


async def test_other_settings_of_a_user_are_kept(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await broker.configs.write(znodes.CONFIG_USERS, "alice", {"producer_byte_rate": "1000"})
        assert await describe(broker) == []
        await alter(broker, upsertion("alice"))
        await alter(broker, Deletion(name="alice", mechanism=SHA_256))
        assert await broker.configs.read(znodes.CONFIG_USERS, "alice") == {"producer_byte_rate": "1000"}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ([upsertion("")], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        ([Deletion(name="", mechanism=9)], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        ([upsertion("a", 3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        ([Deletion(name="a", mechanism=0)], ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        ([upsertion("a", iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        ([upsertion("a", iterations=MAX_ITERATIONS + 1)], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            [upsertion("a"), upsertion("a", iterations=8192)],
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
        (
            [upsertion("a"), Deletion(name="a", mechanism=SHA_256)],
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
        (
            [upsertion("a"), Deletion(name="a", mechanism=SHA_512)],
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
async def test_a_bad_change_is_refused_with_all_of_its_user_and_no_other(
    tmp_path: Path, changes: list[Upsertion | Deletion], code: ErrorCode, message: str
) -> None:
    async with running_broker(tmp_path) as broker:
        done = await alter(broker, *changes, upsertion("other"))
        assert done.pop("other") == (0, "")
        assert list(done.values()) == [(code, message)]
        assert [user for user, *_ in await describe(broker)] == ["other"]


async def test_users_that_cannot_be_described(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await alter(broker, upsertion("alice"))
        assert await describe(broker, "", "ghost", "alice", "alice") == [
            ("", ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty", []),
            (
                "ghost",
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to describe a user credential that does not exist: ghost",
                [],
            ),
            (
                "alice",
                ErrorCode.DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request: alice",
                [],
            ),
        ]


async def test_an_unreadable_credential_is_an_error_that_does_not_show_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        await broker.configs.write(znodes.CONFIG_USERS, "alice", {"SCRAM-SHA-256": "geheim"})
        ((user, code, _, infos),) = await describe(broker, "alice")
        assert (user, code, infos) == ("alice", ErrorCode.UNKNOWN_SERVER_ERROR, [])
        assert "credential of user 'alice'" in caplog.text
        assert "geheim" not in caplog.text


async def test_only_the_controller_alters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path) as broker:
        monkeypatch.setattr(type(broker.controller), "is_active", property(lambda _: False))
        assert (await alter(broker, upsertion("a"), Deletion(name="b", mechanism=1))).keys() == {"a", "b"}
        assert {code for code, _ in (await alter(broker, upsertion("a"))).values()} == {ErrorCode.NOT_CONTROLLER}
