"""What the banner of `kpybroker dev --sasl`, `--tls` and `--acl` says: users, and what clients set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.control.development import logins
from kpybroker.control.development.logins import Login
from kpybroker.control.development.security import ADMIN, USERS, SecurityOptions

if TYPE_CHECKING:
    from kpybroker.control.development.certificates import TlsFiles

SHOWN_USER = "alice"


def client_lines(at: str, wanted: SecurityOptions, tls: TlsFiles | None) -> list[str]:
    """The lines for brokers at `at`, in place of those that try it without security."""
    login = Login(wanted, SHOWN_USER, tls)
    librdkafka = logins.librdkafka(login)
    lines = []
    if tls is not None:
        lines.append(f"  trust    {tls.authority}")
        lines.append(f"  client   {tls.client} (a certificate, for those that want one)")
    if wanted.sasl is not None:
        lines.append(f"  users    {', '.join(f'{name} ({word})' for name, word in USERS.items())}")
    python = {"bootstrap.servers": at, **librdkafka}
    lines += [
        "  clients",
        f"    kcat     kcat -L -b {at} {_options(librdkafka)}",
        f"    Python   Producer({python!r})",
        "    Java     a properties file:",
        *(f"      {key}={value}" for key, value in {"bootstrap.servers": at, **logins.java(login)}.items()),
    ]
    return [*lines, *_acl_lines(at, wanted, tls)] if wanted.acl else lines


def _acl_lines(at: str, wanted: SecurityOptions, tls: TlsFiles | None) -> list[str]:
    """The command that allows a user something."""
    login = _options(logins.librdkafka(Login(wanted, ADMIN, tls)))
    others = " and ".join(name for name in USERS if name != ADMIN)
    return [
        f"  acls     {others} may do nothing yet; {ADMIN} may do everything, such as",
        f"    allow    kpybroker acl create --allow-principal {SHOWN_USER} --topic '*' --group '*' --producer "
        f"--consumer -b {at} {login}",
    ]


def _options(settings: dict[str, str]) -> str:
    return " ".join(f"-X {key}={value}" for key, value in settings.items())
