"""ACLs, SCRAM users and quotas: added and removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from compat_tests.console.administration.administrator import Administrator, Task, new_name, nothing
from compat_tests.console.administration.places import Place
from compat_tests.support.waiting import eventually

PASSWORD: Final = "secret-of-a-task"


def principal(_: Place) -> str:
    return f"User:{new_name()}"


def add_an_acl(who: Administrator, name: str) -> None:
    who.click("Access")
    who.click("Create an ACL")
    who.type("Principal", name)
    who.type("Its name", "orders")
    who.type("Operations", "read,describe")
    who.enter("Principal")
    who.do("Create the ACL")


def acls_of(place: Place, name: str) -> Any:
    any_pattern, anything = ResourcePatternType.ANY, AclOperation.ANY
    wanted = AclBindingFilter(ResourceType.ANY, None, any_pattern, name, None, anything, AclPermissionType.ANY)
    admin = place.admin
    return sorted((one.name, one.operation.name, one.host) for one in admin.describe_acls(wanted).result())


def allowed(place: Place) -> str:
    name = principal(place)
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    one = AclBinding(ResourceType.TOPIC, "orders", literal, name, "*", AclOperation.READ, allow)
    admin = place.admin
    admin.create_acls([one])[one].result()
    eventually(lambda: acls_of(place, name) != [], "the ACL")
    return name


def remove_an_acl(who: Administrator, name: str) -> None:
    who.click("Access")
    who.click(f"Delete the ACL of {name} on topic orders")
    who.do("Delete these ACLs", name)


def no_acls(place: Place, name: str) -> Any:
    eventually(lambda: acls_of(place, name) == [], "no ACL")
    return acls_of(place, name)


def set_a_password(who: Administrator, name: str) -> None:
    who.click("Access")
    who.click("Set a password")
    who.type("User", name)
    who.enter("User")
    who.type("Password", PASSWORD)
    who.do("Set the password of " + name)


def credentials_of(place: Place, name: str) -> Any:
    rows = place.cli.json("user", "list")
    return [(row["mechanism"], row["iterations"]) for row in rows if row["user"] == name]


def user(place: Place) -> str:
    name = new_name()
    wanted = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin = place.admin
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, wanted, b"secret")])[name].result()
    eventually(lambda: credentials_of(place, name) != [], "the user")
    return name


def delete_a_user(who: Administrator, name: str) -> None:
    who.click("Access")
    who.click(f"Delete {name}")
    who.do("Delete the credentials", name)


def set_a_quota(who: Administrator, name: str) -> None:
    who.click("Access")
    who.click("Set quotas")
    who.type("User", name)
    who.type("Quotas", "producer_byte_rate=1000000")
    who.enter("User")
    who.do("Set these quotas")


def quotas_of(place: Place, name: str) -> Any:
    rows = place.cli.json("quota", "list")
    return [(row["key"], row["value"]) for row in rows if row["entity"] == {"user": name}]


def slowed(place: Place) -> str:
    name = new_name()
    place.cli.run("quota", "set", "--user", name, "producer_byte_rate=1000000")
    eventually(lambda: quotas_of(place, name) != [], "the quota")
    return name


def remove_a_quota(who: Administrator, name: str) -> None:
    who.click("Access")
    who.click(f"Remove producer_byte_rate of user {name}")
    who.do("Remove these quotas", name)


TASKS: Final[Mapping[str, Task]] = {
    "acl-create": Task(principal, add_an_acl, acls_of),
    "acl-delete": Task(allowed, remove_an_acl, no_acls),
    "user-set": Task(nothing, set_a_password, credentials_of),
    "user-delete": Task(user, delete_a_user, credentials_of),
    "quota-set": Task(nothing, set_a_quota, quotas_of),
    "quota-unset": Task(slowed, remove_a_quota, quotas_of),
}
