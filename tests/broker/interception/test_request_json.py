"""What the list of requests shows, and what not."""

from __future__ import annotations

import json

import pytest

from kpybroker.broker.interception.request_json import message_json
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "listener.name.secure.ssl.key.password",
        "listener.name.clients.scram-sha-512.sasl.jaas.config",
        "delegation.token.secret.key",
    ],
)
def test_a_password_that_is_set_is_hidden(name: str) -> None:
    entry = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=SECRET)
    other = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", config_operation=0, value="7")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, configs=[entry, other])
    shown = message_json(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert SECRET not in json.dumps(shown)
    assert [one["value"] for one in shown["resources"][0]["configs"]] == ["[hidden]", "7"]


def test_a_token_of_a_login_is_hidden() -> None:
    shown = message_json(SaslAuthenticateRequest(auth_bytes=SECRET.encode()), 2)
    assert shown == {"auth_bytes": "[hidden]"}
