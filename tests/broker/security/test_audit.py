"""The audit log: Kafka's logger, levels and lines."""

from __future__ import annotations

import logging

import pytest

from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.broker.security.audit import AclAuthorizer
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acl_authorizer import AclIndex, AuthorizerRules, VersionedAcls
from kpybroker.core.security.acls import Entry, Pattern, Permission
from kpybroker.wire.api import ApiKey

LOGGER = "kafka.authorizer.logger"
READ, WRITE, TOPIC = Operation.READ, Operation.WRITE, ResourceType.TOPIC


@pytest.fixture
def context() -> RequestContext:
    index = AclIndex(AuthorizerRules())
    entry = Entry("User:ANONYMOUS", "*", READ, Permission.ALLOW)
    index.update(Pattern(TOPIC, "orders"), VersionedAcls((entry,), 0))
    connection = PlainConnectionInfo(client=("10.0.0.7", 1234))
    return RequestContext(connection, AclAuthorizer(index), ApiKey.FETCH, 12)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == LOGGER]


def test_what_is_denied_is_logged_at_info(context: RequestContext, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        assert context.authorized(READ, TOPIC, "orders")
        assert not context.authorized(WRITE, TOPIC, "orders", references=3)
        assert not context.authorized(WRITE, TOPIC, "orders", log_denied=False)
    assert lines(caplog) == [
        (
            "INFO",
            "Principal = User:ANONYMOUS is Denied Operation = Write from host = 10.0.0.7 on resource = "
            "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 3",
        )
    ]


def test_what_is_allowed_is_logged_at_debug_with_its_reason(
    context: RequestContext, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, LOGGER):
        assert context.authorized(READ, TOPIC, "orders")
    reason, line = lines(caplog)
    assert reason[0] == line[0] == "DEBUG"
    assert reason[1].endswith("is ALLOW based on acl = (principal=User:ANONYMOUS, host=*, operation=READ, "
                              "permissionType=ALLOW)")  # fmt: skip
    assert line[1].startswith("Principal = User:ANONYMOUS is Allowed Operation = Read from host = 10.0.0.7 on ")


def test_a_decision_about_a_type_names_no_resource(context: RequestContext, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        assert context.authorized_on_any(READ, TOPIC)
        assert not context.authorized_on_any(WRITE, TOPIC)
    ((_, line),) = lines(caplog)
    assert " on resource = Topic:UNKNOWN:NONE for request = Fetch with resourceRefCount = 0" in line


def test_bits_of_operations_are_not_logged(context: RequestContext, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, LOGGER):
        bits = context.authorized_operations(TOPIC, "orders")
    assert bits == 1 << READ | 1 << Operation.DESCRIBE
    assert lines(caplog) == []


def test_a_name_does_not_begin_a_line(context: RequestContext, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        assert not context.authorized(READ, ResourceType.GROUP, "g\nPrincipal = User:root is Allowed")
    ((_, line),) = lines(caplog)
    assert "Group:LITERAL:g\\nPrincipal" in line
    assert "\n" not in line
