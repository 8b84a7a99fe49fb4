"""DescribeClientQuotas, AlterClientQuotas: users, client ids, pairs, addresses, defaults; and what quotas do."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import Ask, ask, script
from kpybroker.wire.api import ApiKey

ALTER = ApiKey.ALTER_CLIENT_QUOTAS
DESCRIBE = ApiKey.DESCRIBE_CLIENT_QUOTAS

EXACT, DEFAULT, ANY = 0, 1, 2
PRODUCED, CONSUMED, REQUESTS, MUTATIONS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
CONNECTIONS = "connection_creation_rate"

Entity = dict[str, str | None]


def entry(entity: Entity, **values: float | None) -> dict[str, Any]:
    """None removes."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": 0.0 if value is None else float(value), "remove": value is None}
            for key, value in values.items()
        ],
    }


def alter(*entries: dict[str, Any], validate_only: bool = False, **options: Any) -> Ask:
    return ask(ALTER, entries=list(entries), validate_only=validate_only, **options)


def change(entity: Entity, **values: float | None) -> Ask:
    return alter(entry(entity, **values))


def describe(*components: tuple[str, int, str | None], strict: bool = False, **options: Any) -> Ask:
    wanted = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components]
    return ask(DESCRIBE, components=wanted, strict=strict, **options)


def user(name: str | None) -> Entity:
    return {"user": name}


def client(name: str | None) -> Entity:
    return {"client-id": name}


def pair(name: str | None, client_id: str | None) -> Entity:
    return {"user": name, "client-id": client_id}


def address(name: str | None) -> Entity:
    return {"ip": name}


ALICE, APP = "{t}-alice", "{t} app/é*~+"

SCRIPTS = [
    script(
        "alter-quotas",
        ALTER,
        "sets and removes each key of each kind of entity",
        change(user(ALICE), producer_byte_rate=1000, consumer_byte_rate=2000.0000001),
        describe(("user", EXACT, ALICE), v=1),
        change(user(ALICE), request_percentage=12.5, controller_mutation_rate=0.1, producer_byte_rate=None),
        describe(("user", EXACT, ALICE), v=1),
        change(pair(ALICE, APP), producer_byte_rate=3),
        describe(("user", EXACT, ALICE), ("client-id", EXACT, APP), v=1),
        describe(("user", EXACT, ALICE), strict=True, v=1),
        change(client(APP), request_percentage=1e7, controller_mutation_rate=1e-4),
        describe(("client-id", EXACT, APP), strict=True, v=1),
        change(address("10.1.2.3"), connection_creation_rate=5),
        describe(("ip", EXACT, "10.1.2.3"), v=1),
        change(user(ALICE), request_percentage=None, controller_mutation_rate=None, consumer_byte_rate=None),
        describe(("user", EXACT, ALICE), strict=True, v=1),
        describe(("user", EXACT, ALICE), ("client-id", EXACT, APP), strict=True, v=1),
        change(pair(ALICE, APP), producer_byte_rate=None),
        change(client(APP), request_percentage=None, controller_mutation_rate=None, no_such_key=None),
        change(address("10.1.2.3"), connection_creation_rate=None),
        describe(v=1),
    ),
    script(
        "alter-quotas-refused",
        ALTER,
        "keys, values and entities that there are not",
        change(user(ALICE), producer_byte_rate=1.5),
        change(user(ALICE), producer_byte_rate=1e30),
        change(user(ALICE), no_such_key=1),
        change(user(ALICE), connection_creation_rate=1),
        change(user(ALICE), **{"SCRAM-SHA-256": 1}),
        change(client(APP), **{"SCRAM-SHA-256": 1}),
        change(user(None), **{"SCRAM-SHA-256": 1}),
        change(address("10.1.2.3"), producer_byte_rate=1),
        change(address("10.1.2.3"), connection_creation_rate=-1),
        change(address("10.1.2.3"), connection_creation_rate=3e9),
        change(address("10.1.2.3"), connection_creation_rate=1.5),
        change(address("no such host"), connection_creation_rate=1),
        change(address("::1"), connection_creation_rate=1),
        change({}, producer_byte_rate=1),
        change({"planet": "mars"}, producer_byte_rate=1),
        change({"user": ""}, producer_byte_rate=1),
        change({"client-id": ""}, producer_byte_rate=1),
        change({"ip": ""}, connection_creation_rate=1),
        change({"user": "u", "ip": "10.1.2.3"}, connection_creation_rate=1),
        change({"client-id": "u", "ip": "10.1.2.3"}, connection_creation_rate=1),
        change({"user": "u", "planet": "mars"}, producer_byte_rate=1),
        alter(),
        describe(v=1),
    ),
    script(
        "alter-quotas-together",
        ALTER,
        "several entities in one request, one of them twice; only validated",
        alter(entry(user(ALICE), producer_byte_rate=1), entry(client(APP), producer_byte_rate=2.5)),
        describe(v=1),
        alter(entry(user(ALICE), producer_byte_rate=7), entry(user(ALICE), producer_byte_rate=8.5)),
        describe(v=1),
        alter(entry(user(ALICE), producer_byte_rate=9), validate_only=True),
        alter(entry(user(ALICE), producer_byte_rate=9.5), validate_only=True),
        alter(entry(address("10.1.2.3"), connection_creation_rate=-1), validate_only=True),
        alter(entry(user(ALICE)), entry(client(APP))),
        describe(v=1),
        change(user(ALICE), producer_byte_rate=None),
        describe(v=1),
    ),
    script(
        "describe-quotas",
        DESCRIBE,
        "every kind of filter",
        alter(entry(user(ALICE), producer_byte_rate=1), v=1),
        alter(entry(user(None), producer_byte_rate=2), v=1),
        alter(entry(client(APP), consumer_byte_rate=3), v=1),
        alter(entry(client(None), consumer_byte_rate=4), v=1),
        alter(entry(address("10.1.2.3"), connection_creation_rate=5), v=1),
        *(
            describe(*components, strict=strict)
            for strict in (False, True)
            for components in (
                (("user", EXACT, ALICE),),
                (("user", DEFAULT, None),),
                (("user", ANY, None),),
                (("client-id", EXACT, APP),),
                (("client-id", DEFAULT, None),),
                (("client-id", ANY, None),),
                (("ip", EXACT, "10.1.2.3"),),
                (("ip", DEFAULT, None),),
                (("ip", ANY, None),),
                (("user", EXACT, "absent"),),
                (("user", ANY, None), ("client-id", ANY, None)),
            )
        ),
        describe(strict=True),
        alter(entry(user(ALICE), producer_byte_rate=None), entry(user(None), producer_byte_rate=None), v=1),
        alter(entry(client(APP), consumer_byte_rate=None), entry(client(None), consumer_byte_rate=None), v=1),
        alter(entry(address("10.1.2.3"), connection_creation_rate=None), v=1),
        *(alter(entry(pair(one, two), producer_byte_rate=6), v=1) for one in (ALICE, None) for two in (APP, None)),
        *(
            describe(("user", how, one), ("client-id", what, two), strict=strict)
            for strict in (False, True)
            for how, one in ((EXACT, ALICE), (DEFAULT, None))
            for what, two in ((EXACT, APP), (DEFAULT, None))
        ),
        describe(("user", EXACT, ALICE), ("client-id", ANY, None)),
        describe(("user", ANY, None), ("client-id", DEFAULT, None), strict=True),
        *(alter(entry(pair(one, two), producer_byte_rate=None), v=1) for one in (ALICE, None) for two in (APP, None)),
        describe(),
    ),
    script(
        "describe-quotas-refused",
        DESCRIBE,
        "filters that there are not",
        describe(("user", EXACT, "a"), ("user", ANY, None)),
        describe(("client-id", EXACT, "a"), ("client-id", ANY, None)),
        describe(("ip", EXACT, "a"), ("ip", ANY, None)),
        describe(("user", EXACT, "a"), ("ip", ANY, None)),
        describe(("client-id", EXACT, "a"), ("ip", ANY, None)),
        describe(("", EXACT, "a")),
        describe(("planet", EXACT, "a")),
        describe(("user", 3, "a")),
        describe(("user", -1, "a")),
        describe(("user", EXACT, None)),
    ),
]
