"""TLS, logins and ACLs of brokers for tests: what `kpybroker dev --tls --sasl --acl` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpybroker.testing.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kpybroker.control.development.security import SecurityOptions
    from kpybroker.testing.typed.names import Sasl


class Security:
    """What was asked for. Nothing is imported for brokers without security. Raises UsageError."""

    def __init__(self, tls: bool, sasl: Sasl | None, acl: bool) -> None:
        self.wanted: SecurityOptions | None = None
        if not (tls or acl or sasl is not None):
            return
        from kpybroker.control.development.security import MECHANISMS, SecurityOptions

        if sasl is not None and sasl not in MECHANISMS:
            raise UsageError(f"sasl={sasl!r} is no way to log in", f"use one of {', '.join(MECHANISMS)}")
        self.wanted = SecurityOptions(tls, sasl, acl).complete()

    @property
    def users(self) -> Mapping[str, str]:
        """Name -> password; none without logins."""
        if self.wanted is None or self.wanted.sasl is None:
            return {}
        from kpybroker.control.development.security import USERS

        return dict(USERS)

    @property
    def admin(self) -> str | None:
        """The user who may do everything; None without logins."""
        return "admin" if self.users else None

    def settings(self, library: str, user: str | None, place: tuple[str, str | None]) -> dict[str, Any]:
        """What a client of this library sets, in its spelling; nothing without security.

        `user`: None is the first. `place`: the data directory, and the directory that goes with the brokers, if any.
        Raises UsageError.
        """
        wanted, users = self.wanted, self.users
        if not users and user is not None:
            raise UsageError(f"user={user!r}, but the broker has no logins", "give it sasl= or acl=True")
        if wanted is None:
            return {}
        from kpybroker.control.development import logins
        from kpybroker.control.development.security import OAUTHBEARER, tls_directory
        from kpybroker.testing.clients.libraries import LIBRARIES, unknown

        if users and user is not None and user not in users and wanted.mechanism != OAUTHBEARER:
            raise UsageError(f"there is no user {user!r}", f"the users are {', '.join(users)}")
        if library not in logins.BY_LIBRARY:
            raise unknown(library, LIBRARIES)
        tls = None
        if wanted.tls:
            from kpybroker.control.development.certificates import files_in

            tls = files_in(tls_directory(*place))
        return logins.BY_LIBRARY[library](logins.Login(wanted, user or next(iter(users), ""), tls))
