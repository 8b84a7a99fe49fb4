"""Archives of the classes that Kafka's servers load (JEP 350): a start of one is half loading and verifying them.

One for each kind of server, under `.cache/jvm/cds/` as that of the tools. The first server of its kind that is up
writes it, and those after that begin with it. It changes speed only: a JVM that cannot use its archive starts without.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat_tests.support.tools import ARCHIVES, JVM_OPTIONS, class_path_key

RECORDING = "-XX:+RecordDynamicDumpInfo"
AGENT = "-javaagent:"
"""A JVM with an agent writes no archive: it would not start if it were to."""


def archive(version: str, kind: str) -> Path:
    """Of a server of that version, whether it is there or not."""
    return ARCHIVES / f"{version}-{class_path_key(version)}-{kind}.jsa"


def server_options(version: str, kind: str, others: Sequence[str] = ()) -> list[str]:
    """Of a JVM that serves for seconds, with `tools.argument_file` as its class path, and with `others`."""
    path = archive(version, kind)
    if path.exists():
        return [*JVM_OPTIONS, f"-XX:SharedArchiveFile={path}", *others]
    has_agent = any(option.startswith(AGENT) for option in others)
    return [*JVM_OPTIONS, *([] if has_agent else [RECORDING]), *others]


def keep_classes(command: Sequence[str], pid: int, version: str, kind: str) -> None:
    """Called when a server is up: if there was no archive when it began, and is none yet, it writes it now."""
    path = archive(version, kind)
    if RECORDING not in command:
        return
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            fresh = path.with_suffix(f".{os.getpid()}")
            dump = ["jcmd", str(pid), "VM.cds", "dynamic_dump", str(fresh)]
            subprocess.run(dump, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            if fresh.exists():
                fresh.rename(path)
