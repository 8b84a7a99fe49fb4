"""Who may do what, and how much: ACLs, users with SCRAM credentials, quotas."""

from __future__ import annotations

from typing import Final

from kpybroker.client.actions.security import acls, quotas, users
from kpybroker.client.actions.security.acls import AclOptions
from kpybroker.client.actions.security.quotas import EntityOptions
from kpybroker.client.connect.errors import usage
from kpybroker.console.changes.abilities import QUOTAS as SERVED_QUOTAS
from kpybroker.console.changes.abilities import USERS, needing, without_authorizer
from kpybroker.console.changes.change import (
    Ask,
    Change,
    Command,
    Field,
    InField,
    Raising,
    Rows,
    Values,
    given,
    in_field,
    lines,
    number,
)

ITERATIONS_MAX: Final = 16384
NEEDS_ACLS: Final = "Alter and Describe on the cluster"


def _access(_: Values) -> str:
    return "/access"


# --- ACLs

ACL: Final = (
    ("Principal", "principal"),
    ("Host", "host"),
    ("Resource", "resource"),
    ("Name", "name"),
    ("Pattern", "pattern"),
    ("Operation", "operation"),
    ("Permission", "permission"),
)
ACL_KEYS: Final = tuple(key for _, key in ACL)
ALLOW, DENY = "ALLOW", "DENY"
LITERAL, PREFIXED = "LITERAL", "PREFIXED"
ACL_FIELDS: Final = (
    Field("principal", "Principal", hint="User:NAME; NAME alone is the same.", is_required=True),
    Field("permission", "Permission", "choice", choices=(ALLOW, DENY), default=ALLOW),
    Field("resource", "Resource", "choice", choices=tuple(acls.RESOURCES), default="topic"),
    Field("name", "Its name", hint="* is any. The cluster has none."),
    Field("pattern", "The name is", "choice", choices=(LITERAL, PREFIXED), default=LITERAL),
    Field("operations", "Operations", hint="read, write, create, describe, alter, delete, all; with commas."),
    Field("host", "From the host", hint="An address; * or nothing is any.", placeholder="*"),
)
_FLAGS: Final = {"topic": "--topic", "group": "--group", "transactional-id": "--transactional-id"}


def _acl_options(values: Values) -> AclOptions:
    kind, names = values["resource"], [values["name"]]
    if kind != "cluster" and not values["name"]:
        raise InField("name", usage("the name is missing", "* is any"))
    with in_field("operations"):
        if not values["operations"]:
            raise usage("no operation is named", "such as read, or read,describe")
        acls.operations_for(kind, AclOptions(operations=[values["operations"]]))
    people = [values["principal"]]
    return AclOptions(
        allow=people if values["permission"] == ALLOW else (),
        deny=people if values["permission"] == DENY else (),
        hosts=[values["host"]] if values["host"] else (),
        operations=[values["operations"]],
        topics=names if kind == "topic" else (),
        groups=names if kind == "group" else (),
        transactional_ids=names if kind == "transactional-id" else (),
        cluster=kind == "cluster",
        prefixed=values["pattern"] == PREFIXED,
    )


def _acl_command(values: Values, verb: str) -> Command:
    who = "--allow-principal" if values["permission"] == ALLOW else "--deny-principal"
    options = given((who, values["principal"]), ("--host", values["host"]), ("--operation", values["operations"]))
    if values["resource"] == "cluster":
        options.append("--cluster")
    else:
        options += given((_FLAGS.get(values["resource"], "--topic"), values["name"]))
    if values["pattern"] == PREFIXED:
        options.append("--prefixed")
    return ["acl", verb, *options, *(["--execute"] if verb == "delete" else [])], []


def _found(ask: Ask, options: AclOptions) -> Rows:
    """The ACLs that fit. Raises CommandError, also where there is no authorizer."""
    rows = [
        dict(acls.acl_row(one))
        for wanted in acls.filters(options)
        for one in ask.cluster.result(ask.cluster.admin.describe_acls(wanted, **ask.cluster.timeout))
    ]
    return sorted(rows, key=lambda row: [str(row[key]) for key in ACL_KEYS])


def _plan_acl(ask: Ask) -> Rows:
    options = _acl_options(ask.values)
    there = [[row[key] for key in ACL_KEYS] for row in _found(ask, options)]
    rows = [dict(acls.acl_row(one)) for one in acls.bindings(options)]
    for row in rows:
        is_there = [row[key] for key in ACL_KEYS] in there
        row |= {"status": "is there already" if is_there else "would be created", "error": None}
    return rows


def _create_acl(ask: Ask, _: Rows) -> Rows:
    return [dict(row) for row in acls.create_rows(ask.cluster, acls.bindings(_acl_options(ask.values)), Raising())]


def _plan_delete_acl(ask: Ask) -> Rows:
    return [{**row, "status": "would be deleted", "error": None} for row in _found(ask, _acl_options(ask.values))]


def _delete_acl(ask: Ask, _: Rows) -> Rows:
    return [dict(row) for row in acls.delete_rows(ask.cluster, _acl_options(ask.values), Raising())]


CREATE_ACL: Final = Change(
    "acl-create",
    "Create an ACL",
    "Create the ACL",
    ACL_FIELDS,
    (*ACL, ("Status", "status")),
    NEEDS_ACLS,
    _plan_acl,
    _create_acl,
    lambda values: _acl_command(values, "create"),
    _access,
    same=ACL_KEYS,
    missing=lambda ask: without_authorizer(ask.cluster),
)
DELETE_ACL: Final = Change(
    "acl-delete",
    "Delete ACLs",
    "Delete these ACLs",
    ACL_FIELDS,
    (*ACL, ("Status", "status")),
    NEEDS_ACLS,
    _plan_delete_acl,
    _delete_acl,
    lambda values: _acl_command(values, "delete"),
    _access,
    same=ACL_KEYS,
    typed_again=("principal",),
    note="Who depends on them may do less from now on, or more if they denied something.",
    missing=lambda ask: without_authorizer(ask.cluster),
)

# --- users

USER: Final = Field("user", "User", is_required=True)
MECHANISM: Final = Field(
    "mechanism", "Mechanism", "choice", choices=tuple(users.MECHANISMS), default="SCRAM-SHA-512", is_required=True
)
CREDENTIALS: Final = (("User", "user"), ("Mechanism", "mechanism"), ("#Iterations", "iterations"), ("Status", "status"))
NEEDS_USERS: Final = "Alter and Describe on the cluster"


def _credentials(ask: Ask) -> Rows:
    """Those of the mechanism that the user has."""
    found = users.credentials(ask.cluster, (), Raising())
    wanted = ask.values["user"], ask.values["mechanism"]
    return [dict(row) for row in found if (row["user"], row["mechanism"]) == wanted]


def _iterations(values: Values) -> int:
    return number(values, "iterations", users.ITERATIONS_MIN, ITERATIONS_MAX) or 2 * users.ITERATIONS_MIN


def _plan_user(ask: Ask) -> Rows:
    iterations, there = _iterations(ask.values), _credentials(ask)
    row = {"user": ask.values["user"], "mechanism": ask.values["mechanism"], "iterations": iterations}
    return [{**row, "status": "would be replaced" if there else "would be created", "error": None}]


def _set_user(ask: Ask, rows: Rows) -> Rows:
    values = ask.values
    password = values["password"].encode()
    wanted = users.upsertions(values["user"], [values["mechanism"]], _iterations(values), password)
    done = users.alter_rows(ask.cluster, wanted, "set", Raising())
    return [{**row, **found} for row, found in zip(rows, done, strict=True)]


SET_USER: Final = Change(
    "user-set",
    "Set the password of a user",
    "Set the password of {user}",
    (
        USER,
        MECHANISM,
        Field("iterations", "Iterations", "number", "4096 to 16384.", "8192"),
        Field("password", "Password", "secret", "Neither shown nor logged.", is_required=True),
    ),
    CREDENTIALS,
    NEEDS_USERS,
    _plan_user,
    _set_user,
    lambda values: (
        [
            *("user", "set", "--mechanism", values["mechanism"]),
            *given(("--iterations", values["iterations"])),
            *("--password-file", "FILE"),
        ],
        [values["user"]],
    ),
    _access,
    same=("user", "mechanism", "status"),
    missing=needing(USERS),
)


def _plan_delete_user(ask: Ask) -> Rows:
    found = _credentials(ask)
    if not found:
        cause = f"user {ask.values['user']} has no credentials with {ask.values['mechanism']}"
        raise InField("user", usage(cause, "Access shows the users and their mechanisms"))
    return [{**row, "status": "would be deleted", "error": None} for row in found]


def _delete_user(ask: Ask, rows: Rows) -> Rows:
    done = users.delete_rows(ask.cluster, rows, Raising())
    return [{**row, **found} for row, found in zip(rows, done, strict=True)]


DELETE_USER: Final = Change(
    "user-delete",
    "Delete credentials of a user",
    "Delete the credentials",
    (USER, MECHANISM),
    CREDENTIALS,
    NEEDS_USERS,
    _plan_delete_user,
    _delete_user,
    lambda values: (["user", "delete", "--mechanism", values["mechanism"], "--execute"], [values["user"]]),
    _access,
    same=("user", "mechanism", "iterations"),
    typed_again=("user",),
    note="Connections that are open stay; new ones with these credentials are refused.",
    missing=needing(USERS),
)

# --- quotas

KINDS: Final = ("user", "client-id", "ip")
QUOTA_FIELDS: Final = (
    Field("user", "User", hint="(default): all that have none of their own."),
    Field("client_id", "Client id", hint="With a user: of this user's. (default) too."),
    Field("ip", "Address", hint="Alone. (default) too."),
)
QUOTAS: Final = (("Entity", "of"), ("Key", "key"), ("#Now", "from"), ("#Then", "to"), ("Status", "status"))


def _entity_options(values: Values) -> EntityOptions:
    named = {kind: values[kind.replace("-", "_")] for kind in KINDS}
    defaults = [kind for kind, name in named.items() if name == quotas.DEFAULT_NAME]
    user, client_id, ip = (named[kind] if named[kind] and kind not in defaults else None for kind in KINDS)
    options = EntityOptions(user, client_id, ip, defaults)
    with in_field("ip" if named["ip"] else "user"):
        if not options.entity():
            raise usage("no one is named whose quota it is", "name a user, a client id or an address")
    return options


def _entity_flags(values: Values) -> list[str]:
    flags: list[str] = []
    for kind in KINDS:
        name = values[kind.replace("-", "_")]
        flags += ["--default", kind] if name == quotas.DEFAULT_NAME else given((f"--{kind}", name))
    return flags


def _quota_rows(ask: Ask, changes: dict[str, float | None], dry_run: bool) -> Rows:
    options = _entity_options(ask.values)
    entity = options.entity()
    field = "keys" if "keys" in ask.values else "values"
    with ask.cluster.wire() as wire:
        now = {row["key"]: row["value"] for row in quotas.quota_rows(wire, entity) if row["entity"] == entity}
        for key in (key for key, value in changes.items() if value is None and key not in now):
            raise InField(field, usage(f"there is no quota {key[:100]} of this entity", "Access shows the quotas"))
        found = quotas.change_rows(wire, options, changes, dry_run)
    of = ", ".join(f"{kind} {name if name is not None else quotas.DEFAULT_NAME}" for kind, name in entity.items())
    rows: Rows = []
    for row in found:
        is_same = dry_run and row["value"] is not None and now.get(row["key"]) == row["value"]
        status = "is so already" if is_same else row["status"]
        shown = {"of": of, "key": row["key"], "from": now.get(row["key"]), "to": row["value"]}
        rows.append({**shown, "status": status, "error": None})
    return rows


def _set_values(ask: Ask) -> dict[str, float | None]:
    with in_field("values"):
        found = quotas.parse_values(lines(ask.values, "values"))
        if not found:
            raise usage("there is no line", "write KEY=NUMBER, as in producer_byte_rate=1000000")
    return found


def _unset_values(ask: Ask) -> dict[str, float | None]:
    return dict.fromkeys(key for text in lines(ask.values, "keys") for key in text.replace(",", " ").split())


NEEDS_QUOTAS: Final = "AlterConfigs and DescribeConfigs on the cluster"
OF_QUOTAS: Final = {"INVALID_REQUEST": "values", "INVALID_CONFIG": "values", "UNSUPPORTED_VERSION": "values"}
SET_QUOTA: Final = Change(
    "quota-set",
    "Set quotas",
    "Set these quotas",
    (
        *QUOTA_FIELDS,
        Field("values", "Quotas", "lines", "KEY=NUMBER in each line.", "producer_byte_rate=1000000", is_required=True),
    ),
    QUOTAS,
    NEEDS_QUOTAS,
    lambda ask: _quota_rows(ask, _set_values(ask), True),
    lambda ask, _: _quota_rows(ask, _set_values(ask), False),
    lambda values: (["quota", "set", *_entity_flags(values)], lines(values, "values")),
    _access,
    same=("of", "key", "from"),
    blame=OF_QUOTAS,
    note="The broker has checked the keys. producer_byte_rate and consumer_byte_rate are bytes a second.",
    missing=needing(SERVED_QUOTAS),
)
UNSET_QUOTA: Final = Change(
    "quota-unset",
    "Remove quotas",
    "Remove these quotas",
    (*QUOTA_FIELDS, Field("keys", "Quotas", "lines", "A key in each line.", "producer_byte_rate", is_required=True)),
    QUOTAS,
    NEEDS_QUOTAS,
    lambda ask: _quota_rows(ask, _unset_values(ask), True),
    lambda ask, _: _quota_rows(ask, _unset_values(ask), False),
    lambda values: (["quota", "unset", *_entity_flags(values)], lines(values, "keys")),
    _access,
    same=("of", "key", "from"),
    typed_again=("user", "client_id", "ip"),
    blame=OF_QUOTAS,
    missing=needing(SERVED_QUOTAS),
)
