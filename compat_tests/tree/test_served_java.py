"""ZooKeeper's own shell, a Java client, says the same of the served tree as of a real ZooKeeper."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.support.services import ZooKeeper, started
from compat_tests.support.tools import Tools

COMMANDS = """
create /shell hello
create /shell again
create -e /shell/e ephemeral
create -s /shell/s- sequential
create -s -e /shell/s- both
create -c /shell/c
create -t 1000 /shell/t
create /none/child
create /shell/e/child
ls /shell
ls -R /shell
ls -s /shell
get -s /shell
get /shell/none
set /shell two
set -v 7 /shell three
stat /shell
stat -w /shell/later
create /shell/later
delete /shell
delete -v 9 /shell/later
delete /shell/later
getAcl /shell
setAcl /shell auth::cdrwa
addauth digest alice:secret
setAcl -s /shell/c auth::cdrwa
getAcl -s /shell/c
setAcl /shell/c ip:10.0.0.0/8:cdrwa
get /shell/c
setAcl /shell/s-0000000001 sasl:x:r
addWatch -m PERSISTENT_RECURSIVE /shell
create /shell/watched x
set /shell/watched y
delete /shell/watched
removewatches /shell
create /shell/unwatched x
getEphemerals /shell
getAllChildrenNumber /shell
sync /shell
reconfig -add server.1=localhost:1:2
deleteall /shell
ls /shell
"""
_MASKED = (
    (re.compile(r"\b([cmp]Zxid|ephemeralOwner) = 0x[1-9a-f][0-9a-f]*"), r"\1 = *"),
    (re.compile(r"\b([cm]time) = .*"), r"\1 = *"),
    (re.compile(r"^\[zk: .*?\] \d+\] ", re.M), ""),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"\bzxid: -?\d+"), "zxid: *"),
)
_END = re.compile(r"WATCHER::\s*(WatchedEvent state:Closed type:None path:null\s*)?\Z")
"""The event of the shell's own end: its thread prints it, or a part of it, if the process lasts long enough."""
_ORDERED = re.compile(r"\[(/?[\w/-]+(?:, /?[\w/-]+)+)\]")


def said(address: str) -> list[str]:
    result = Tools("3.9.1", address).run("zookeeper-shell", stdin=COMMANDS + "quit\n", check=False)
    text = _END.sub("", result.out) + result.err
    for pattern, mask in _MASKED:
        text = pattern.sub(mask, text)
    text = _ORDERED.sub(lambda found: ",".join(sorted(found[1].split(", "))), text)
    # what happens in the client's threads is printed whenever it happens
    return sorted(line.strip() for line in text.splitlines() if line.strip() and not re.match(r"[\d-]+ [\d:,]+ ", line))


def test_the_shell_says_the_same(tree_address: str, tmp_path: Path) -> None:
    server = _Zookeeper(tmp_path)
    with started(server):
        expected = said(server.connect)
    assert len(expected) > 100
    assert "Node already exists: /shell" in expected
    assert said(tree_address) == expected


class _Zookeeper(ZooKeeper):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "zookeeper")

    def close(self) -> None:
        self.stop()
