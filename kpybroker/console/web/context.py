"""`Console`: what the pages of one process share, and how a page is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

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
from kpybroker.console.queries.connect.rest import connects_of
from kpybroker.console.queries.control import Control, metrics_addresses, parse_address
from kpybroker.console.queries.health.seen import Health
from kpybroker.console.queries.outside.metrics import CHARTS, Chart, Metrics
from kpybroker.console.queries.samples import KEYS_MAX, Samples
from kpybroker.console.web.clusters import placed, prefix_of
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
AROUND = ("/connect", "Kafka Connect")
"""Only with `--connect`."""
DEVELOPMENT = (
    "Development",
    (("/requests", "Requests"), ("/clients", "Clients"), ("/faults", "Faults"), ("/clock", "Clock")),
)
"""Only with `--control`."""


class Asked(dict[str, str]):
    """The fields of a query as a form shows them again: empty text for those that it has not."""

    def __missing__(self, name: str) -> str:
        return ""


class Process(NamedTuple):
    """What the consoles of several clusters share; `clusters` has each by its name, and is empty where there is one."""

    sessions: Sessions
    templates: Environment
    clusters: dict[str, Console]
    total: int = 1


class Console:
    """Everything of one cluster that is not of one request. Of several, `name` is its name, and `prefix` what its
    addresses begin with; both are empty where there is one, and on the pages of no cluster.
    """

    def __init__(self, options: ConsoleOptions, live: Live | None = None, process: Process | None = None) -> None:
        process = process or Process(Sessions(options.password), _templates(), {})
        self.options = options
        self.name = options.name if process.total > 1 else ""
        self.prefix = prefix_of(self.name)
        self.clusters = process.clusters
        self.live = Live(options.settings) if live is None else live
        self.sessions = process.sessions
        self.samples = Samples(keys_max=KEYS_MAX // process.total)
        self.health = Health(self.samples)
        self.control = None if options.control is None else Control(parse_address(options.control))
        self.registry = _registry(options)
        self.subjects = _subjects(options)
        self.metrics = self._metrics(options)
        self.connects = connects_of(options.connects)
        self.templates = process.templates

    def _metrics(self, options: ConsoleOptions) -> Metrics | None:
        if options.metrics:
            given = [check_address("--metrics-url", url) for url in options.metrics]
            return Metrics(lambda: given, self.samples)
        return None if self.control is None else Metrics(partial(metrics_addresses, self.control), self.samples)

    def text(self, template: str, **context: Any) -> str:
        """A template, filled; what it leads to is in this console's cluster."""
        return placed(self.templates.get_template(template).render(**context), self.prefix)

    def sign(self, session: str, text: str) -> str:
        """A signature of a text that a form of this session and cluster carries."""
        return self.sessions.sign(session, f"{self.name} {text}")

    def is_signed(self, session: str | None, text: str, signature: str | None) -> bool:
        """Whether a text was signed for this session and cluster."""
        return self.sessions.is_signed(session, f"{self.name} {text}", signature)


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
    found: Console = getattr(request.state, "console", None) or request.app.state.console
    return found


def consoles_of(options: ConsoleOptions, clusters: Sequence[ConsoleOptions]) -> Console:
    """A console of several clusters: what serves the pages of none, with those of each. `options` are the process's."""
    shared = Process(Sessions(options.password), _templates(), {}, len(clusters))
    for one in clusters:
        shared.clusters[one.name] = Console(one, process=shared)
    return Console(options._replace(name="", control=None, connects=(), metrics=(), registry=None), process=shared)


def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("kpybroker.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(shown=shown, size=size, when=when, count=grouped, hide=hide, said=said, others=others)
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
        "navigation": _navigation(console),
        "own_cluster": console.name,
        "all_clusters": _switch(console, request.url.path),
        "own_token": console.sessions.token(request.state.session),
        "look": look_of(request.cookies.get(COOKIE))._asdict(),
        "look_choices": CHOICES,
        "path": request.url.path,
        "url": console.prefix + str(request.url.replace(scheme="", netloc="")),
        "bootstrap": options.settings.bootstrap,
        "allow_changes": options.allow_changes,
        "user": request.state.user,
        "can_log_out": console.sessions.is_logged_in(request.state.session),
        "token": console.sessions.token(request.state.session, console.name),
        "notes": None,
        "asked": Asked(request.query_params),
        "needs": needed(request.url.path),
    }
    return HTMLResponse(console.text(template, **{**common, **context}), status)


def _navigation(console: Console) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    if console.clusters and not console.name:
        return ()
    (heading, pages), *others = NAVIGATION
    found = [(heading, (*pages, AROUND) if console.connects else pages), *others]
    return found if console.control is None else [*found, DEVELOPMENT]


def _switch(console: Console, path: str) -> list[tuple[str, str]]:
    """Every cluster with the page of it that is most like this one: what another has not is not led to."""
    pages = [target for _, found in NAVIGATION for target, _ in found if target != "/"]
    like = next((one for one in pages if path.startswith(one.removesuffix("s"))), "/")
    return [(name, one.prefix + like) for name, one in console.clusters.items()]


def when(timestamp_ms: int | None) -> Markup:
    """A moment in UTC, which a script says in another zone; a dash for none, and a number beyond the calendar."""
    text = moment(timestamp_ms)
    if text is None or not text.endswith("Z"):
        return escape(shown(text))
    return Markup('<time datetime="{0}">{0}</time>').format(text)


def others(asked: Mapping[str, str], *names: str) -> str:
    """The fields of a query but these, for a link that changes one of them; the list begins at its first page."""
    return "".join(
        f"&{quote(key)}={quote(text, safe='')}" for key, text in asked.items() if key not in ("page", *names)
    )


def grouped(number: int | float | None) -> str:
    """A number with thin spaces between its thousands; decimals only where they say something."""
    if number is None:
        return "-"
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return f"{number:,}".replace(",", "\u202f") if isinstance(number, int) else f"{number:,.1f}".replace(",", "\u202f")
