"""`Administrator`, who works with the console in the browser, and `Task`, what is asked of them.

A task is done twice, each time with something of its own: in the browser, and by the command that the console showed
for it. What has become of both must be the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import ConfigResource
from playwright.sync_api import Page, expect

from compat_tests.console.administration.places import Place
from compat_tests.console.conftest import START_S
from compat_tests.support import quick
from compat_tests.support.waiting import eventually

RECORDS: Final = 5


class Administrator:
    """Someone who begins at the front page, and whose clicks are counted. What is typed is none, and Enter sends it."""

    def __init__(self, page: Page, place: Place, picture: Callable[[Page], None]) -> None:
        self.page = page
        self.place = place
        self.clicks = 0
        self.command = ""
        self.picture = picture

    def click(self, name: str, role: Any = "link", where: str = "body") -> None:
        self.clicks += 1
        self.page.locator(where).get_by_role(role, name=name, exact=True).first.click()

    def choose(self, label: str, value: str) -> None:
        self.clicks += 1
        self.page.get_by_label(label).select_option(value)

    def type(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).fill(text)

    def enter(self, label: str) -> None:
        """In this field."""
        self.page.get_by_label(label, exact=True).press("Enter")

    def find(self, name: str) -> None:
        """By the search of the list that is shown; it filters as one types."""
        self.page.get_by_role("searchbox").last.fill(name)
        expect(self.page.locator("#live tbody tr", has_text=name).first).to_be_visible()

    def previewed(self) -> None:
        """The preview is there: its command is kept, and its picture taken."""
        expect(self.page.get_by_role("heading", name="What would be done")).to_be_visible()
        self.command = self.page.locator("code.command").inner_text()
        self.picture(self.page)

    def do(self, button: str, again: str = "") -> None:
        """What the preview showed, with the name typed again."""
        self.previewed()
        if again:
            self.type(f"Type {again} again", again)
        self.click(button, "button")
        expect(self.page.get_by_role("status")).to_contain_text("Done.")


class Task(NamedTuple):
    """`make` prepares something and returns its name; `clicks` changes it in the browser; `seen` is what it is then,
    without its name; None where nothing is changed, and there is no command.
    """

    make: Callable[[Place], str]
    clicks: Callable[[Administrator, str], None]
    seen: Callable[[Place, str], Any] | None
    off: Mapping[str, Callable[[Administrator, Place], None]] = {}
    """Of clusters that cannot do it, by their kind: looks at what is off, with the reason."""


def new_name() -> str:
    return f"task-{uuid.uuid4().hex[:8]}"


def topic(place: Place, partitions: int = 1, replicas: int = 1, **config: Any) -> str:
    name = new_name()
    quick.create_topic(place.bootstrap, name, partitions, replicas, **config)
    eventually(lambda: name in place.admin.list_topics(timeout=START_S).topics, f"{name} is known")
    return name


def nothing(_: Place) -> str:
    return new_name()


def the_topic(who: Administrator, name: str) -> None:
    """Two clicks."""
    who.click("Topics")
    who.find(name)
    who.click(name, where="main")


def the_group(who: Administrator, name: str) -> None:
    """Two clicks."""
    who.click("Groups")
    who.find(name)
    who.click(name, where="main")


def setting(place: Place, kind: Any, name: str, key: str) -> str | None:
    admin, resource = place.admin, ConfigResource(kind, name)
    entry = admin.describe_configs([resource])[resource].result()[key]
    value: str | None = entry.value
    return value
