"""A Kafka Streams application as a process of its own: it can be killed, and started again on its state directory."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat_tests.deps import jars_dir
from compat_tests.support.tools import LOG4J, compiled
from tests.support.programs.signals import freeze, thaw

JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{LOG4J}")
CLASSIC, STREAMS = "classic", "streams"
END_S = 60.0


class Application:
    """One instance of a program next to this file; its state and its log are in `directory`."""

    def __init__(self, jars: str, program: str, directory: Path, arguments: Sequence[str]) -> None:
        directory.mkdir(exist_ok=True)
        self._log = directory / "application.log"
        libraries = f"{jars_dir(jars)}/*"
        class_path = f"{libraries}:{compiled(Path(__file__).with_name(program), libraries)}"
        self._command = ["java", *JVM, "-cp", class_path, Path(program).stem, *arguments]
        self.start()

    def start(self) -> None:
        """It ends by itself with its input, and so with this process."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def said(self) -> str:
        return self._log.read_text()[-6000:]

    def freeze(self) -> None:
        """Let all of its threads stand still."""
        freeze(self._process.pid)

    def thaw(self) -> None:
        thaw(self._process.pid)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        assert self._process.poll() is None, self.said()
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self.ends() == 0, self.said()

    def ends(self) -> int:
        """Wait until it ends; how it did."""
        return self._process.wait(END_S)
