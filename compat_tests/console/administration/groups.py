"""Groups: their offsets by partition and together, their settings, deleted; and share groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playwright.sync_api import expect

from compat_tests.console.administration.administrator import RECORDS, Administrator, Task, the_group, topic
from compat_tests.console.administration.places import Place
from compat_tests.support import quick
from compat_tests.support.waiting import eventually


def read(place: Place) -> str:
    """A group that has read both partitions of a topic of its name, and has no members."""
    name = topic(place, 2)
    for number in (0, 1):
        quick.fill(place.bootstrap, name, ["x"] * RECORDS, number)
    quick.read(place.bootstrap, [(name, 0), (name, 1)], 2 * RECORDS, name)
    return name


def committed(place: Place, name: str) -> Any:
    return quick.committed(place.bootstrap, name, [(name, 0), (name, 1)])


def reset_by_partition(who: Administrator, name: str) -> None:
    the_group(who, name)
    who.click("Edit the offset of each partition")
    expect(who.page.get_by_label("Offsets", exact=True)).to_have_value(f"{name} 0 {RECORDS}\n{name} 1 {RECORDS}")
    who.type("Offsets", f"{name} 1 2")
    who.enter("Group")
    who.do("Commit these offsets")


def move_a_group(who: Administrator, name: str) -> None:
    the_group(who, name)
    who.type("Topics and partitions", f"{name}:0")
    who.enter("Topics and partitions")
    who.do("Move the group")


def forget_offsets(who: Administrator, name: str) -> None:
    the_group(who, name)
    who.click("Delete offsets")
    who.type("Topics and partitions", f"{name}:1")
    who.enter("Group")
    who.do("Delete these offsets", name)


def delete_a_group(who: Administrator, name: str) -> None:
    the_group(who, name)
    who.click("Delete the group")
    who.do(f"Delete {name}", name)


def is_listed(place: Place, name: str) -> Any:
    return [row["group"] for row in place.cli.json("group", "list", name)]


def taken(place: Place) -> str:
    """A share group that has taken everything of a topic of its name."""
    name = topic(place)
    quick.fill(place.bootstrap, name, ["job"] * RECORDS)
    place.cli.run("config", "set", "group", name, "share.auto.offset.reset=earliest")
    place.cli.run("topic", "consume", name, "--share-group", name, "-n", str(RECORDS))
    eventually(lambda: place.cli.json("group", "list", name)[0]["state"] == "Empty", "the group is empty")
    return name


def start_of(place: Place, name: str) -> Any:
    (row,) = place.cli.json("group", "describe", name)
    return [one["start_offset"] for one in row["offsets"]]


def change_a_group(who: Administrator, name: str) -> None:
    the_group(who, name)
    who.click("Settings")
    who.type("Key", "consumer.session.timeout.ms")
    who.type("Value", "50000")
    who.enter("Value")
    who.do("Change consumer.session.timeout.ms")


def session_of(place: Place, name: str) -> Any:
    return place.cli.run("config", "get", "group", name, "consumer.session.timeout.ms").lines


def no_share_groups(who: Administrator, _: Place) -> None:
    who.click("Groups")
    option = who.page.locator("select[name=type] option[value=share]")
    expect(option).to_be_disabled()
    expect(option).to_have_text("share: its brokers do not serve ShareGroupDescribe, which Kafka 4.1 and newer have")


def no_settings(who: Administrator, place: Place) -> None:
    the_group(who, read(place))
    expect(who.page.get_by_role("button", name="Settings", exact=True)).to_be_disabled()
    reason = "its brokers know no settings of groups, which Kafka 4.0 and newer have"
    expect(who.page.locator(".actions")).to_contain_text(reason)


TASKS: Final[Mapping[str, Task]] = {
    "group-offsets": Task(read, reset_by_partition, committed),
    "group-move": Task(read, move_a_group, committed),
    "group-forget": Task(read, forget_offsets, committed),
    "group-delete": Task(read, delete_a_group, is_listed),
    "share-group": Task(taken, move_a_group, start_of, {"3.9": no_share_groups}),
    "group-setting": Task(read, change_a_group, session_of, {"3.9": no_settings}),
}
