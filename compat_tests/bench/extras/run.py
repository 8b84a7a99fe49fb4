"""`make bench-extras`: what a request, or a start, pays for what is not there without being asked for.

    python -m compat_tests.bench.extras.run [--quick] [--rounds N] [--no-write] [--dir DIRECTORY]

Brokers share a core, one client at a time has another: each broker in turn gets requests of one record on one
connection. The least of a broker's processor times of a request counts, so that a busy machine matters little. Then
ACLs, in a process of their own (`acls`), and a schema registry: its memory and its start with no schemas and with many.
Nothing has a floor: a page that says a figure is held against this table.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import trio

from compat_tests.bench.extras import acls
from compat_tests.bench.load.clients import Run
from compat_tests.bench.load.workloads import one_record
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import PYTHON_ENV, Cores, pinned, scratch_directory, stock_broker
from compat_tests.bench.measuring.costs import come_to_rest, memory
from compat_tests.bench.measuring.report import Part, Table
from compat_tests.support.services import Broker, Service, kpybroker_executable
from compat_tests.support.tools import Tools
from tests.support.network.ports import free_port

ROUNDS = 9
SCALE, QUICK_SCALE = 1.0, 0.02
SCHEMAS, QUICK_SCHEMAS = 10_000, 200
SETTLE_S = 2.0

NOTHING = "nothing"
CONTROL = "a control channel"
FAULT = "a fault of its API for another topic"
DEBUG_LOG = "the request log at DEBUG"


@contextmanager
def running(broker: Broker) -> Iterator[Broker]:
    broker.start()
    try:
        yield broker
    finally:
        broker.service.kill()


def of_dev(directory: Path, core: tuple[int, ...], control: int) -> Broker:
    """What `kpybroker dev` starts, whose control channel is at the port."""
    broker = stock_broker("kpybroker", directory, None, core)
    options = ["--port", str(broker.port), "--data-dir", str(broker.data_dir), "--control", str(control)]
    dev = [str(kpybroker_executable()), "dev", *options, "--override", f"broker.id={broker.node_id}"]
    broker.service = Service("dev", pinned(core, dev), directory, PYTHON_ENV)
    return broker


def add_fault(control: int) -> None:
    """One that any Produce may match until its topic is known."""
    fault = {"match": {"api": "Produce", "topic": "another"}, "act": {"error": "NOT_LEADER_OR_FOLLOWER"}}
    request = Request(f"http://127.0.0.1:{control}/v1/add_fault", json.dumps(fault).encode())
    request.add_header("Content-Type", "application/json")
    urlopen(request).read()


def log_requests(broker: Broker) -> None:
    entity = ("--entity-type", "broker-loggers", "--entity-name", str(broker.node_id))
    Tools("3.9.1", broker.bootstrap).run("configs", "--alter", *entity, "--add-config", "kafka.request.logger=DEBUG")


@contextmanager
def brokers(directory: Path, core: tuple[int, ...]) -> Iterator[dict[str, Broker]]:
    """One for each extra, and one without; all run."""
    with ExitStack() as stack:
        found = {}
        for number, name in enumerate((NOTHING, CONTROL, FAULT, DEBUG_LOG)):
            place, control = directory / str(number), free_port()
            served = name in (CONTROL, FAULT)
            broker = of_dev(place, core, control) if served else stock_broker("kpybroker", place, None, core)
            found[name] = stack.enter_context(running(broker))
            if name == FAULT:
                add_fault(control)
            if name == DEBUG_LOG:
                log_requests(broker)
        yield found


def requests(directory: Path, cores: Cores, clock: command.Clock, rounds: int, scale: float) -> Table:
    """The least processor time of one request, in µs, and what the extra adds to it."""
    measured = one_record(1)
    samples: dict[str, list[float]] = {}
    with brokers(directory, cores.broker) as found:
        for number in range(1 + rounds):
            names = list(found) if number % 2 else list(reversed(found))
            for name in names:
                come_to_rest(broker.service.pid for broker in found.values())
                sample = measured(Run(found[name], cores.client, f"extras-{number}", scale))
                if number and sample.cpu is not None:
                    samples.setdefault(name, []).append(sample.cpu)
            clock.say(f"round {number}")
    least = {name: min(values) for name, values in samples.items()}
    rows = [[name, f"{took:.1f}", f"{took - least[NOTHING]:.1f}"] for name, took in least.items()]
    return Table(["one-record request with", "CPU, µs", "more, µs"], rows)


def with_acls(directory: Path) -> Table:
    losses = trio.run(acls.measure, str(directory))
    rows = [[name, f"{took['without']:.2f}", f"{took['with']:.2f}", f"{acls.lost(took):.0%}"] for name, took in losses]
    return Table([f"with {acls.ACLS:,} ACLs".replace(",", " "), "without, µs", "with, µs", "lost"], rows)


class Registry:
    """A registry of the broker, and how long it took until it was ready."""

    def __init__(self, broker: Broker, directory: Path, core: tuple[int, ...]) -> None:
        self._port = free_port()
        options = ["registry", "--bootstrap-server", broker.bootstrap, "--port", str(self._port)]
        started = pinned(core, [str(kpybroker_executable()), *options])
        self._service = Service("registry", started, directory, PYTHON_ENV)
        began_s = time.perf_counter()
        self._service.start(lambda output: "registry ready" in output)
        self.seconds = time.perf_counter() - began_s

    def held(self) -> tuple[float, float]:
        """MB (PSS) of the registry, and of the processes that read texts."""
        time.sleep(SETTLE_S)
        every = memory(self._service.pid).pss
        own = memory_alone(self._service.pid)
        return own, every - own

    def register(self, count: int) -> None:
        for number in range(count):
            schema = {"type": "record", "name": f"R{number}", "fields": [{"name": "id", "type": "long"}]}
            body = json.dumps({"schema": json.dumps(schema)}).encode()
            request = Request(f"http://127.0.0.1:{self._port}/subjects/s-{number}/versions", body)
            request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            urlopen(request).read()

    def stop(self) -> None:
        self._service.stop()


def memory_alone(pid: int) -> float:
    """MB (PSS) of one process, without its children."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def registry(directory: Path, cores: Cores, schemas: int) -> Table:
    """A start with none and with many schemas, and what is held."""
    rows = []
    with running(stock_broker("kpybroker", directory / "of-registry", None, cores.client)) as broker:
        for name, more in (("no schemas", 0), (f"{schemas:,} small schemas".replace(",", " "), schemas)):
            filling = Registry(broker, directory, cores.broker)
            filling.register(more)
            filling.stop()
            started = Registry(broker, directory, cores.broker)
            own, workers = started.held()
            rows.append([name, f"{started.seconds:.1f}", f"{own:.0f}", f"{workers:.0f}"])
            started.stop()
    (_, *none), (_, *many) = rows
    rows.append(["more", *(f"{float(after) - float(before):.4g}" for before, after in zip(none, many, strict=True))])
    return Table(["a registry with", "start, s", "MB", "MB of its workers"], rows)


def main() -> int:
    """Measure, print, and write the page of the benchmark."""
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    clock, apart, _ = command.prepare()
    with scratch_directory(options.dir) as scratch:
        scale = QUICK_SCALE if options.quick else SCALE
        tables = [
            requests(scratch, apart, clock, rounds, scale),
            with_acls(scratch),
            registry(scratch, apart, QUICK_SCHEMAS if options.quick else SCHEMAS),
        ]
    conditions = clock.conditions(rounds)
    parts: list[Part] = [conditions.sentence().replace("median (range)", "the least"), *tables]
    return command.finish(options, "bench-extras", conditions, parts, [])


if __name__ == "__main__":
    sys.exit(main())
