"""The step of the start that makes the authorizer: it reads all ACLs before a client is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.security.acls import Acls
from kpybroker.broker.security.audit import AclAuthorizer
from kpybroker.core.security.acl_authorizer import AuthorizerRules
from kpybroker.core.security.acls import parse_super_users

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.core.authorizer import Authorizer

SUPER_USERS: Final = "super.users"
ALLOW_WITHOUT_ACL: Final = "allow.everyone.if.no.acl.found"


async def open_authorizer(host: Host) -> tuple[Acls, Authorizer]:
    """The ACLs of the tree, and what decides by them. Raises StartupError, TreeError and ZnodeError."""
    acls = Acls(host, rules_of(host.config))
    await acls.start()
    return acls, AclAuthorizer(acls.index)


def rules_of(config: BrokerConfig) -> AuthorizerRules:
    """What the configuration says about access. Raises StartupError."""
    texts = config.effective
    try:
        super_users = parse_super_users(texts.get(SUPER_USERS, ""))
    except ValueError as error:
        raise StartupError(
            f"{SUPER_USERS} cannot be read: {error}",
            f"write it as TYPE:NAME with ; in between, e.g. {SUPER_USERS}=User:admin;User:CN=broker,O=Example",
            EXIT_CONFIG,
        ) from None
    allows = texts.get(ALLOW_WITHOUT_ACL, "false").strip().lower()
    if allows not in ("true", "false"):
        raise StartupError(
            f"{ALLOW_WITHOUT_ACL}={allows} is not a boolean", f"set {ALLOW_WITHOUT_ACL} to true or false", EXIT_CONFIG
        )
    return AuthorizerRules(super_users, allows == "true")
