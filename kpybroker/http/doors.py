"""Which HTTP requests a door lets in, before anything else is done with them. Pure: both servers call `refusal`.

What it keeps out are pages of other sites in a browser on this machine or in this network:

- **Hosts.** A page can have its own name resolved to an address of ours (DNS rebinding); then the browser takes us for
  that site. So `Host` must be a name of this server. An IP address is always let in: no page can have it resolved.
- **Origins.** A browser says which site a request is from (`Sec-Fetch-Site`, `Origin`). One from another site is
  refused, also one that only reads: it costs what it costs. A link that a person follows to a page is let in.
- **Types.** A body has a type that the door reads. HTML forms, which need no permission to be sent to another site, can
  have three types.

A program is no browser, sends none of these headers, and is let in. The size of a body is limited by `Door.body_bytes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from kpybroker.http.messages import HttpError

READING: Final = frozenset(("GET", "HEAD"))
JSON: Final = frozenset(("", "application/json", "text/json"))
"""Without a type too."""
FORM: Final = "application/x-www-form-urlencoded"
"""What curl says of `-d`, and what HTML's forms send."""
ANY_NAME: Final = "*"
LOOPBACK_NAMES: Final = frozenset(("localhost", "ip6-localhost"))
PORTS: Final = {"http": ":80", "https": ":443"}
"""What a browser leaves out of `Origin` and `Host`; some proxies add it to `Host`."""
ANYWHERE: Final = frozenset(("", "0.0.0.0", "::"))

_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+(?:%[0-9A-Za-z.~-]+)?\]|[^\s:\[\]/@?#\\]+)(?::[0-9]{0,5})?")


class Door(NamedTuple):
    """What a server lets in.

    `names`: its names, in lower case; with `*` among them any. `reads_by_any_name`: paths that anyone may read who
    reaches them, whatever the name. `types`: of bodies, in lower case without parameters.
    """

    names: frozenset[str]
    types: frozenset[str] = JSON
    body_bytes: int = 1 << 20
    reads_by_any_name: frozenset[str] = frozenset()


def names_of(host: str, machine: str, allowed: Iterable[str] = ()) -> frozenset[str]:
    """The names of a server that listens at `host`, on a machine of this name: those, and what was `allowed`."""
    bound = () if host in ANYWHERE else (host,)
    return LOOPBACK_NAMES | {_plain(name) for name in (machine, *bound, *allowed) if name}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    return host in LOOPBACK_NAMES or (_is_address(host) and ip_address(host.partition("%")[0]).is_loopback)


def refusal(door: Door, verb: str, path: str, headers: Mapping[str, str]) -> HttpError | None:
    """Why a request is not let in, if it is not. Names of headers are in lower case."""
    if not _is_own_host(door, verb, path, headers.get("host")):
        shown = ascii(headers.get("host", ""))[:100]
        return HttpError(f"this server is not known as {shown}", "use its address, or allow the name at its start", 421)
    if not _is_own_origin(verb, headers):
        return HttpError("the request is from another site", "send it from a program, or from a page of this one", 403)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body(headers) and kind not in door.types:
        known = ", ".join(sorted(filter(None, door.types)))
        return HttpError(f"a body of the type {ascii(kind)[:100]} is not read", f"send one of {known}", 415)
    size = headers.get("content-length", "")
    if size.isdecimal() and (len(size) > 18 or int(size) > door.body_bytes):
        return too_large(door)
    return None


def too_large(door: Door) -> HttpError:
    """For a body above the limit."""
    return HttpError(f"the body is larger than {door.body_bytes} bytes", "send less at once", status=413)


def has_body(headers: Mapping[str, str]) -> bool:
    """Whether a body follows."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_own_host(door: Door, verb: str, path: str, host: str | None) -> bool:
    if host is None:  # HTTP/1.0, which no browser speaks
        return True
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = _plain(found["name"])
    if ANY_NAME in door.names or name in door.names or _is_address(name):
        return True
    return verb in READING and path in door.reads_by_any_name


def _is_own_origin(verb: str, headers: Mapping[str, str]) -> bool:
    """A page of the same origin is one of ours, since its host is."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None:
        return origin is None or _is_of(origin, headers.get("host"))
    if site in ("same-origin", "none"):  # none: a person typed the address
        return True
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return is_link and verb in READING


def _is_of(origin: str, host: str | None) -> bool:
    scheme, separator, place = origin.partition("://")
    port = PORTS.get(scheme)
    if not separator or port is None or host is None:
        return False
    return place.lower().removesuffix(port) == host.lower().removesuffix(port)


def _plain(name: str) -> str:
    """A name to compare: in lower case, without the dot that ends a full one, or the brackets of an address."""
    return name.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
