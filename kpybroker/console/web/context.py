"""`Console`: what the pages of one process share, and how a page is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from kpybroker.client.connect.errors import hide
from kpybroker.client.schemas.http import check_address
from kpybroker.client.schemas.registry import Registry
from kpybroker.client.schemas.subjects import Subjects
from kpybroker.client.show.cells import moment, shown, size
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.queries.control import Control, metrics_addresses, parse_address
from kpybroker.console.queries.health.seen import Health
from kpybroker.console.queries.outside.metrics import CHARTS, Chart, Metrics
from kpybroker.console.queries.samples import Samples
from kpybroker.console.web.live import Live
from kpybroker.console.web.look import CHOICES, COOKIE, look_of
from kpybroker.console.web.permissions import needed
from kpybroker.console.web.sessions import Sessions
from kpybroker.console.web.words import said

NAVIGATION = (
    (
        "",
        (
            *(("/", "Cluster"), ("/topics", "Topics"), ("/groups", "Groups"), ("/transactions", "Transactions")),
            ("/schemas", "Schemas"),
        ),
    ),
    (
        "Operation",
        (("/replication", "Replication"), ("/log-dirs", "Log directories"), ("/access", "Access"), ("/logs", "Logs")),
    ),
)
"""Groups of pages, with the heading of each."""
DEVELOPMENT = (
    "Development",
    (("/requests", "Requests"), ("/clients", "Clients"), ("/faults", "Faults"), ("/clock", "Clock")),
)
"""Only with `--control`."""


class Asked(dict[str, str]):
    """The fields of a query as a form shows them again: empty text for those that it has not."""

    def __missing__(self, name: str) -> str:
        return ""


class Console:
    """Everything that is not of one request."""

    def __init__(self, options: ConsoleOptions, live: Live | None = None) -> None:
        self.options = options
        self.live = Live(options.settings) if live is None else live
        self.sessions = Sessions(options.password)
        self.samples = Samples()
        self.health = Health(self.samples)
        self.control = None if options.control is None else Control(parse_address(options.control))
        self.registry = _registry(options)
        self.subjects = _subjects(options)
        self.metrics = self._metrics(options)
        self.templates = Environment(
            loader=PackageLoader("kpybroker.console", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters.update(shown=shown, size=size, when=when, count=grouped, hide=hide, said=said)

    def _metrics(self, options: ConsoleOptions) -> Metrics | None:
        if options.metrics:
            given = [check_address("--metrics-url", url) for url in options.metrics]
            return Metrics(lambda: given, self.samples)
        return None if self.control is None else Metrics(partial(metrics_addresses, self.control), self.samples)

    def text(self, template: str, **context: Any) -> str:
        """A template that is not a page, filled."""
        return self.templates.get_template(template).render(**context)


def _subjects(options: ConsoleOptions) -> Subjects | None:
    if options.registry is None:
        return None
    login = None if options.settings.registry is None else options.settings.registry.login
    return Subjects(check_address("--schema-registry", options.registry), login)


def _registry(options: ConsoleOptions) -> Registry | None:
    if options.registry is None:
        return None
    login = None if options.settings.registry is None else options.settings.registry.login
    return Registry(check_address("--schema-registry", options.registry), login=login)


def console_of(request: Request) -> Console:
    """The console that serves the request."""
    found: Console = request.app.state.console
    return found


async def call_control(request: Request, work: Callable[[Control], Any]) -> Any:
    """The result of calls of the control channel. Raises CommandError; HTTPException without `--control`."""
    console = console_of(request)
    if console.control is None:
        raise HTTPException(404)
    return await console.live.run(partial(work, console.control))


def charts_of(request: Request, page: str) -> Mapping[str, Chart] | None:
    """The charts of the brokers' metrics on a page; None where no metrics are known."""
    return None if console_of(request).metrics is None else CHARTS[page]


def render(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page. `title` is needed; `notes` are the items that failed."""
    console = console_of(request)
    options = console.options
    common = {
        "navigation": NAVIGATION if console.control is None else (*NAVIGATION, DEVELOPMENT),
        "look": look_of(request.cookies.get(COOKIE))._asdict(),
        "look_choices": CHOICES,
        "path": request.url.path,
        "url": str(request.url.replace(scheme="", netloc="")),
        "bootstrap": options.settings.bootstrap,
        "allow_changes": options.allow_changes,
        "user": request.state.user,
        "can_log_out": console.sessions.is_logged_in(request.state.session),
        "token": console.sessions.token(request.state.session),
        "notes": None,
        "asked": Asked(request.query_params),
        "needs": needed(request.url.path),
    }
    return HTMLResponse(console.text(template, **{**common, **context}), status)


def when(timestamp_ms: int | None) -> Markup:
    """A moment in UTC, which a script says in another zone; a dash for none, and a number beyond the calendar."""
    text = moment(timestamp_ms)
    if text is None or not text.endswith("Z"):
        return escape(shown(text))
    return Markup('<time datetime="{0}">{0}</time>').format(text)


def grouped(number: int | float | None) -> str:
    """A number with thin spaces between its thousands; decimals only where they say something."""
    if number is None:
        return "-"
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return f"{number:,}".replace(",", "\u202f") if isinstance(number, int) else f"{number:,.1f}".replace(",", "\u202f")
