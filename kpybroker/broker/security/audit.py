"""Kafka's `AclAuthorizer` as the broker's authorizer: decisions of the ACLs, and the audit log.

The log has Kafka's name, `kafka.authorizer.logger`, and its lines: what is denied at INFO, what is allowed at DEBUG,
where each is preceded by the ACL that decides. At DEBUG no decision is taken from the cache.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.log_fields import Extra, of_request
from kpybroker.core.security.acls import camel
from kpybroker.wire.api import API_INFO, ApiKey

if TYPE_CHECKING:
    from kpybroker.core.authorizer import Action, Requester
    from kpybroker.core.security.acl_authorizer import AclIndex

logger = logging.getLogger("kafka.authorizer.logger")

ANY_NAME: Final = "UNKNOWN:NONE"
"""The pattern type and name of an action on any resource of a type."""


class AclAuthorizer:
    """See `kpybroker.core.authorizer.Authorizer`."""

    def __init__(self, index: AclIndex) -> None:
        self._index = index
        self.authorize = index.authorize
        self.authorize_by_resource_type = index.authorize_by_resource_type

    @property
    def generation(self) -> int:
        """It grows with every change of an ACL."""
        return self._index.generation

    @property
    def audits_allowed(self) -> bool:
        """Whether the log is at DEBUG."""
        return logger.isEnabledFor(logging.DEBUG)

    def audit(self, request: Requester, action: Action, allowed: bool) -> None:
        """Log a decision, and at DEBUG also its reason."""
        if logger.isEnabledFor(logging.DEBUG) and action.name is not None:
            _, reason = self._index.decide(
                request.principal, request.client_host, action.operation, action.resource_type, action.name
            )
            if reason:
                logger.debug("%s", _printable(reason), extra=_fields(request))
        level = logging.DEBUG if allowed else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "%s", _AuditLine(request, action, allowed), extra=_fields(request))


class _AuditLine:
    """Formatted only where the log keeps it."""

    __slots__ = ("_action", "_allowed", "_request")

    def __init__(self, request: Requester, action: Action, allowed: bool) -> None:
        self._request, self._action, self._allowed = request, action, allowed

    def __str__(self) -> str:
        request, action = self._request, self._action
        name = ANY_NAME if action.name is None else f"LITERAL:{_printable(action.name)}"
        return (
            f"Principal = {_printable(str(request.principal))} is {'Allowed' if self._allowed else 'Denied'} "
            f"Operation = {camel(action.operation.name)} from host = {request.client_host} "
            f"on resource = {camel(action.resource_type.name)}:{name} "
            f"for request = {API_INFO[ApiKey(request.api_key)].name} with resourceRefCount = {action.references}"
        )


def _fields(request: Requester) -> Extra | None:
    """None for one that has no connection."""
    return of_request(request) if isinstance(request, RequestContext) else None


def _printable(name: str) -> str:
    """A client chooses its names; none of them begins a line of the log."""
    return name if name.isprintable() else ascii(name)[1:-1]
