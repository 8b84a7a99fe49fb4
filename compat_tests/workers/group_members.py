"""Members of groups, many in one process, of librdkafka: with the orders and the words of `GroupMembers.java`.

start NAME KEY=VALUE...   settings of a consumer, and of `ConfluentMember`
close NAME                as an application that ends
"""

from __future__ import annotations

import json
import os
import sys
import threading

from compat_tests.support.groups.logged_members import ConfluentMember
from compat_tests.support.groups.ownership import Event, Kind

_stdout = threading.Lock()


def say(event: Event) -> None:
    said: dict[str, object] = {"member": event.member, "time_ns": event.time_ns, "event": event.kind.value}
    if event.kind is Kind.RECORD:
        (said["topic"], said["partition"]), *_ = event.partitions
        said |= {"offset": event.offset, "value": event.value}
    elif event.partitions:
        said["partitions"] = event.partitions
    if event.error:
        said["error"] = event.error
    with _stdout:
        print(json.dumps(said), flush=True)


def main() -> None:
    members: dict[str, ConfluentMember] = {}
    for line in sys.stdin:
        order, name, *words = line.split()
        if order == "start":
            settings = dict(word.split("=", 1) for word in words)
            members[name] = ConfluentMember(name, say, **{key.replace(".", "_"): to for key, to in settings.items()})
        elif order == "close":
            members[name].close()
        else:
            raise ValueError(line)
    os._exit(0)  # as a crash: without closing anything


if __name__ == "__main__":
    main()
