"""A page's commands, in the order of the page, in a fresh environment that has what the page says to install.

The page is followed as it is written: install lines, commands, and the samples that it includes. `kpybroker` is this
checkout, as the pages say while it is on no package index. Only addresses, and directories outside of the reader's
home, are the test's own. A command that serves until it is stopped is stopped once it is ready.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from compat_tests.packaging import environments
from compat_tests.packaging.pythons import ROOT
from compat_tests.support.tools import write_commands
from tests.support.network.ports import free_port

DOCS: Final = ROOT / "docs"
READY: Final = "kpybroker ready at "
RUN_S_MAX: Final = 600
STEP = re.compile(
    r"`(?:python -m )?(pip install\s[^`]+)`|^ *```\{literalinclude\} (\S+\.(?:sh|py))|^```sh\n(.*?)^```$|"
    r"^ *```console\n(.*?)^ *```$|^```text\n((?:(?:pip install|kpybroker(?! ready at)) [^\n]*\n)+)```$",
    re.MULTILINE | re.DOTALL,
)
SERVES = re.compile(r"^kpybroker (?:dev|server|console|registry)\b(?!.*(?:--help|--add-user)).*$", re.MULTILINE)
IS_READY = re.compile(r"^kpybroker (?:console |registry )?ready at ", re.MULTILINE)
RENDERED: Final = (".sh", ".py", ".properties", ".json")


class Page(NamedTuple):
    """How a page is followed, where the page alone does not say it.

    `broker`: options of `dev`, or `server` with the path of a sample and options; None is none. `without`: steps that
    are left out, each with its reason. `before`: what a reader has done before the page; `given`: before a step of it.
    `stopped`: steps for which no broker runs. `places`: words, and what stands for them here. `others`: addresses of
    further brokers, with their options. `folder`: where commands run, of the samples. `tools`: Kafka's are on the PATH.
    """

    name: str
    broker: tuple[str, ...] | None = ("--ephemeral",)
    without: Mapping[str, str] = {}
    before: tuple[str, ...] = ()
    given: Mapping[str, tuple[str, ...]] = {}
    stopped: tuple[str, ...] = ()
    places: Mapping[str, str] = {}
    others: Mapping[str, tuple[str, ...]] = {}
    folder: str = ""
    tools: bool = False


def steps(page: Page) -> list[str]:
    """Install lines, commands, and paths of samples, each once and in order; first what must have been before."""
    text = (DOCS / f"{page.name}.md").read_text(encoding="utf-8")
    found: list[str] = list(page.before)
    for install, sample, block, console, plain in STEP.findall(text):
        if sample:
            found.append(str(((DOCS / page.name).parent / sample).resolve().relative_to(DOCS)))
        found += commands([install] if install else lines_of(block or plain) + typed(console))
    return [step for step in dict.fromkeys(found) if step not in page.without]


def lines_of(block: str) -> list[str]:
    """Its lines, those that go on in the next one with it."""
    return re.sub(r"\\\n\s*", "", block).splitlines()


def typed(console: str) -> list[str]:
    """Of what a terminal shows, what was typed."""
    return [line.strip().removeprefix("$ ") for line in lines_of(console) if line.strip().startswith("$ ")]


def commands(lines: Sequence[str]) -> Iterator[str]:
    """Without comments and spaces."""
    for line in lines:
        command = " ".join(re.sub(r"\s+# .*", "", line).split())
        command = re.sub(r"^python -m (?=pip )", "", command)
        if command and not command.startswith("#"):
            yield command


class Reader:
    """Someone with an empty environment, a checkout, and a home of their own."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._home = place / "home"
        self._home.mkdir()
        (self._home / "docs").symlink_to(DOCS)
        self._python = environments.create(place / "environment", Path(sys.executable), ["pip"])
        self._places: dict[str, str] = {}
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        kept = {key: value for key, value in kept.items() if not key.startswith(("PYTEST", "KPYBROKER", "XDG_"))}
        self._environment = kept | {"HOME": str(self._home), "PATH": f"{self._python.parent}:{kept['PATH']}"}
        self._environment["PIP_CACHE_DIR"] = str(ROOT / ".cache" / "pip")

    def follow(self, page: Page) -> list[str]:
        """Do all steps of a page; what each printed. The broker runs from the first step that is no installation."""
        self._prepare(page)
        todo = steps(page)
        self._installs = installs = [step for step in todo if step.startswith("pip install")]
        printed = [self._run(self._install(step)) for step in installs]
        running = ExitStack()
        with running:
            for step in (step for step in todo if step not in installs):
                if step in page.stopped:
                    running.close()
                elif self._ready is None:
                    running.enter_context(self._brokers(page))
                for command in page.given.get(step, ()):
                    self._run(self._here(command), self._folder(page.folder))
                printed.append(self._do(step, self._folder(page.folder)))
        return printed

    def _prepare(self, page: Page) -> None:
        self._ready: dict[str, str] | None = None
        port, metrics = free_port(), free_port()
        own = {"port": port, "metrics": metrics, "home": self._home}
        self._own = {"127.0.0.1:9092": f"127.0.0.1:{port}"} | {
            theirs: ours.format(**own) for theirs, ours in page.places.items()
        }
        self._broker = [word.format(**own) for word in page.broker or ()]
        if page.tools:
            tools = self._place / "tools"
            tools.mkdir()
            for script in sorted(write_commands(tools).glob("*.sh")):
                script.with_suffix("").symlink_to(script)
            self._environment["PATH"] += f":{tools}"
        self._places = dict(self._own)

    def _install(self, step: str) -> str:
        """The step with this checkout, also where it names the package and its extras."""
        return re.sub(r"(?<= )('?)(?:kpybroker|\.)(?=\[|'|\s|$)", rf"\1{ROOT}", step)

    @contextmanager
    def _brokers(self, page: Page) -> Iterator[None]:
        with ExitStack() as stack:
            for address, options in page.others.items():
                one = stack.enter_context(self._process(["kpybroker", "dev", "--port", "0", *options]))
                self._own[address] = one["address"]
            self._ready = {}
            if page.broker is not None:
                self._ready = stack.enter_context(self._process(self._command()))
                self._environment["KPYBROKER_BOOTSTRAP_SERVERS"] = self._ready["address"]
            self._places = self._own | self._named(self._ready)
            try:
                yield
            finally:
                self._ready = None

    def _command(self) -> list[str]:
        first, *more = self._broker or [""]
        if first != "server":
            port = self._own["127.0.0.1:9092"].partition(":")[2]
            return ["kpybroker", "dev", "--port", port, *self._broker]
        sample = Path(more[0])
        return ["kpybroker", "server", str(self._folder(str(sample.parent)) / sample.name), *more[1:]]

    def _named(self, ready: Mapping[str, str]) -> dict[str, str]:
        """Where the doors of a broker are, by where the pages have them."""
        found = {"127.0.0.1:9099": ready.get("control", "").removeprefix("http://")}
        found["http://127.0.0.1:8081"] = ready.get("registry", "").rstrip("/")
        found["127.0.0.1:2181"] = ready.get("zookeeper", "")
        return {theirs: ours for theirs, ours in found.items() if ours}

    @contextmanager
    def _process(self, command: list[str]) -> Iterator[dict[str, str]]:
        """A broker; the parts of its ready line."""
        words = [str(self._python.with_name(command[0])), *command[1:]]
        folder = Path(words[2]).parent if words[1] == "server" else self._home
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=self._environment, cwd=folder) as process:
            assert process.stdout is not None
            try:
                ready = process.stdout.readline()
                assert ready.startswith(READY), ready
                address, *more = ready.removeprefix(READY).split()
                yield {"address": address} | dict(one.split("=", 1) for one in more)
            finally:
                process.terminate()

    def _folder(self, name: str) -> Path:
        """A copy of a folder of samples with this test's places in it; without a name the reader's home."""
        if not name:
            return self._home
        folder = self._place / "copies" / name
        if not folder.exists():
            shutil.copytree(DOCS / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in folder.rglob("*"):
            original = DOCS / name / file.relative_to(folder)
            if file.suffix in RENDERED and original.is_file():
                file.write_text(self._here(original.read_text(encoding="utf-8")), encoding="utf-8")
        return folder

    def _checkout(self) -> Path:
        """A copy of this one, without what is made in it."""
        place = self._place / "checkout"
        if not place.exists():
            made = shutil.ignore_patterns(".*", "build", "__pycache__", "*.egg-info")
            shutil.copytree(ROOT, place, ignore=made)
        return place

    def _do(self, step: str, home: Path) -> str:
        if step.startswith("make "):
            return self._run(step, self._checkout())
        if step.startswith(". "):
            activated = self._checkout() / Path(step.removeprefix(". ")).parent
            self._environment["PATH"] = f"{activated}:{self._environment['PATH']}"
            for install in self._installs:
                self._run(self._install(install))
            return self._run("kpybroker --version", self._checkout())
        if not step.endswith((".sh", ".py")):
            return self._serve(step, home) if SERVES.match(step) else self._run(self._here(step), home)
        file = self._folder(str(Path(step).parent)) / Path(step).name
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".sh":
            return (self._serve if SERVES.search(text) else self._run)(text, file.parent)
        return self._run(f"python {'-m pytest ' if 'def test_' in text else ''}{file.name}", file.parent)

    def _here(self, text: str) -> str:
        for theirs, ours in self._places.items():
            text = text.replace(theirs, ours)
        return text

    def _run(self, command: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command if not command.startswith("pip ") else f"python -m {command}"],
            cwd=folder or self._home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _serve(self, command: str, folder: Path) -> str:
        """Run what does not end by itself until it is ready, then stop it as Ctrl-C does."""
        here = SERVES.sub(lambda found: at_free_ports(found[0]), self._here(command))
        with subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", here],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                if IS_READY.match(line):
                    os.killpg(process.pid, signal.SIGINT)
                    break
            printed += process.stdout.read()
            process.wait(RUN_S_MAX)
        assert IS_READY.search(printed), f"{command}: never ready\n{printed}"
        assert process.returncode in (0, -signal.SIGINT, 128 + signal.SIGINT), (command, process.returncode)
        return printed


def at_free_ports(command: str) -> str:
    """The command of a server, at ports that no one has."""
    command = re.sub(r"(--control|--zookeeper-port) \d+", r"\1 0", command)
    command = re.sub(r"(--console|--registry)(?= --|$)", r"\1 0", command)
    return command if " server" in command or "--port" in command else f"{command} --port 0"
