"""The broker's session in the coordination tree has ended: whatever asks for a change may be asked again.

No administrative request gets UNKNOWN_SERVER_ERROR then, for which no client tries again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.error_counts import codes_of, count
from kpybroker.core import tree as t
from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.acls import PatternType, Permission
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kpybroker.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from kpybroker.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kpybroker.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kpybroker.wire.messages.create_acls import CreateAclsRequest
from kpybroker.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.delete_acls import DeleteAclsRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kpybroker.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest
from kpybroker.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.requests.config_requests import BROKER, SET, TOPIC, incremental, legacy

GROUP, CLIENT_METRICS = 32, 16
TOKEN_HMAC = b"filled in"
ACL: dict[str, Any] = {"host": "*", "operation": Operation.READ, "permission_type": Permission.ALLOW}
CLIENT = PlainConnectionInfo(
    connection_id="test", security_protocol="SASL_PLAINTEXT", principal=Principal("User", "alice")
)
CHANGED: list[tuple[int, str, str, str]] = [
    (TOPIC, "t", "retention.ms", "5"),
    (BROKER, "0", "log.retention.ms", "5"),
    (BROKER, "", "log.retention.ms", "5"),
    (GROUP, "g", "consumer.session.timeout.ms", "50000"),
    (CLIENT_METRICS, "m", "interval.ms", "5000"),
]


def acl(name: str) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:bob",
        **ACL,
    )


def acl_filter(name: str) -> DeleteAclsRequest.DeleteAclsFilter:
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=ResourceType.TOPIC,
        resource_name_filter=name,
        pattern_type_filter=PatternType.LITERAL,
        principal_filter="User:bob",
        host_filter=ACL["host"],
        operation=ACL["operation"],
        permission_type=ACL["permission_type"],
    )


def quota(user: str) -> AlterClientQuotasRequest.EntryData:
    return AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name=user)],
        ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1.0, remove=False)],
    )


def credential(user: str) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted"
    )


Moved, Move = (
    AlterPartitionReassignmentsRequest.ReassignableTopic,
    AlterPartitionReassignmentsRequest.ReassignablePartition,
)

ASKED: dict[str, tuple[Any, int, int]] = {
    "CreateTopics": (
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in "ab"
            ],
            timeout_ms=0,
        ),
        7,
        2,
    ),
    "CreatePartitions": (
        CreatePartitionsRequest(topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2)]),
        3,
        1,
    ),
    "DeleteTopics": (DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")]), 6, 1),
    "AlterConfigs": (legacy(*((kind, name, [(key, text)]) for kind, name, key, text in CHANGED)), 2, len(CHANGED)),
    "IncrementalAlterConfigs": (
        incremental(*((kind, name, [(key, SET, text)]) for kind, name, key, text in CHANGED)),
        1,
        len(CHANGED),
    ),
    "DescribeConfigs": (
        DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=TOPIC, resource_name="t")]
        ),
        4,
        1,
    ),
    "ListConfigResources": (ListConfigResourcesRequest(resource_types=[GROUP]), 1, 1),
    "CreateAcls": (CreateAclsRequest(creations=[acl("a"), acl("b")]), 3, 2),
    "DeleteAcls": (DeleteAclsRequest(filters=[acl_filter("there")]), 3, 1),
    "AlterClientQuotas": (AlterClientQuotasRequest(entries=[quota("u"), quota("v")]), 1, 2),
    "DescribeClientQuotas": (DescribeClientQuotasRequest(), 1, 1),
    "AlterUserScramCredentials": (
        AlterUserScramCredentialsRequest(upsertions=[credential("u"), credential("v")]),
        0,
        2,
    ),
    "DescribeUserScramCredentials": (DescribeUserScramCredentialsRequest(users=None), 0, 1),
    "CreateDelegationToken": (CreateDelegationTokenRequest(), 3, 1),
    "RenewDelegationToken": (RenewDelegationTokenRequest(hmac=TOKEN_HMAC, renew_period_ms=60_000), 2, 1),
    "ExpireDelegationToken": (ExpireDelegationTokenRequest(hmac=TOKEN_HMAC, expiry_time_period_ms=-1), 2, 1),
    "UpdateFeatures": (
        UpdateFeaturesRequest(
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
            ],
            timeout_ms=1000,
        ),
        2,
        1,
    ),
    "AlterPartitionReassignments": (
        AlterPartitionReassignmentsRequest(
            topics=[Moved(name="t", partitions=[Move(partition_index=0, replicas=[0])])]
        ),
        1,
        2,
    ),
    "AllocateProducerIds": (AllocateProducerIdsRequest(broker_id=0), 0, 1),
}
"""A request, its version, and how many parts of its response have an error: the whole of it may be one of them."""


@pytest.mark.parametrize("name", ASKED)
async def test_it_may_be_asked_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, version, parts = ASKED[name]
    keys: dict[str, Any] = {
        "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
        "super_users": "User:ANONYMOUS;User:alice",
        "delegation_token_secret_key": "key",
        "unstable_api_versions_enable": "true",
    }
    async with running_broker(tmp_path, topics=["t"], **keys) as broker:
        await ask(broker, CreateAclsRequest(creations=[acl("there")]), 3, connection=CLIENT)
        if getattr(request, "hmac", None) == TOKEN_HMAC:
            created = await ask(broker, CreateDelegationTokenRequest(), 3, connection=CLIENT)
            request = type(request)(**{n: getattr(request, n) for n in request.__slots__} | {"hmac": created.hmac})
        if isinstance(request, AllocateProducerIdsRequest):
            request.broker_epoch = broker.registration.broker_epoch

        async def ended(ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
            return [t.SessionExpired()] * len(ops)

        with monkeypatch.context() as away:
            away.setattr(broker.tree, "submit_many", ended)
            response = await ask(broker, request, version, connection=CLIENT)
        codes, counted = codes_of(type(response), version), Counter[int]()
        assert codes is not None
        count(response, codes, counted)
        del counted[ErrorCode.NONE]
        assert counted == {ErrorCode.NOT_CONTROLLER: parts}
