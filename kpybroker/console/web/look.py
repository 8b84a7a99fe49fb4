"""How pages look to one browser: colours, density, side bar. A cookie keeps it, so pages are right from their first
paint, also without JavaScript. It says nothing about who reads, and no page's data depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

COOKIE: Final = "kpybroker_look"
KEPT_S: Final = 365 * 24 * 3600

CHOICES: Final = (
    ("theme", "Colours", (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))),
    ("density", "Density", (("compact", "Compact rows"), ("roomy", "Roomy rows"))),
    ("bar", "Side bar", (("wide", "Wide side bar"), ("narrow", "Narrow side bar"))),
)
"""Each with its title, its values and their titles; the first value is the default."""


class Look(NamedTuple):
    """One value of each of `CHOICES`."""

    theme: str = "system"
    density: str = "compact"
    bar: str = "wide"


def look_of(text: str | None) -> Look:
    """What a cookie says; defaults for what it does not say, or says wrongly."""
    return changed(Look(), dict(zip(Look._fields, (text or "").split("."), strict=False)))


def changed(look: Look, fields: Mapping[str, str]) -> Look:
    """The look after a form; values that there are not change nothing."""
    found = {name: fields.get(name) for name, _, values in CHOICES if fields.get(name) in dict(values)}
    return look._replace(**found)  # type: ignore[arg-type]


def cookie_of(look: Look) -> str:
    """The value of Set-Cookie. Lax: a link from elsewhere opens a page in the reader's colours too."""
    return f"{COOKIE}={'.'.join(look)}; Path=/; HttpOnly; SameSite=Lax; Max-Age={KEPT_S}"
