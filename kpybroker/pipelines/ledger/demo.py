"""The pipeline on transfers that are aborted, and whose writers are killed: balances, and the same by a replay.

    python -m kpybroker.pipelines demo ledger [--transfers 3000]

It stops everything that it starts, and writes to a temporary directory only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import END_OF_TIME, Progress
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, save_picture
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import BARS, read_json, table
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.ledger.generator import DEADLINE_S, Written, transfers, write
from kpybroker.pipelines.ledger.picture import panels
from kpybroker.pipelines.runtime.event_time import HEARTBEAT_KEY

TOPIC = "entries"
TOPICS = ("demo-balances", "replayed-balances")
ROWS_MAX = 10
TURNS = 10
BAR_MAX = 30
KILLED = """
import os, sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "bank"})
producer.init_transactions(60)
producer.begin_transaction()
for account in ("account-0000", "account-0001"):
    entry = '{"time": "2024-03-05T08:00:00Z", "transfer": "never", "account": "%s", "amount": 1000000000}' % account
    producer.produce(sys.argv[2], entry.encode(), account)
producer.flush(60)
os.kill(os.getpid(), 9)
"""
"""A writer that dies in a transaction, with a billion for two accounts."""


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    parser = demo_parser("ledger", __doc__)
    parser.add_argument("--transfers", type=int, default=3000, help="how many are begun (default 3000)")
    options = parser.parse_args(arguments)
    check_picture(options.picture)
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        with broker(options.kpybroker, place / "broker.log") as bootstrap:
            print(f"kpybroker listens at {bootstrap}")
            turns = _write(bootstrap, options.transfers)
            job = ["--input", TOPIC, "--output", "topics:demo", "--checkpoint", str(place / "checkpoint")]
            print("\nSpark, from entries to balances:", flush=True)
            run_spark(command("ledger", bootstrap, options.jars, *job), place)
            print("\nSpark again, from offset 0, without what the first run kept:", flush=True)
            again = ["--input", TOPIC, "--output", "topics:replayed", "--run", "whole"]
            run_spark(command("ledger", bootstrap, options.jars, *again), place)
            found = [{row["account"]: row["balance"] for row in read_json(bootstrap, topic)} for topic in TOPICS]
            expected: Counter[str] = Counter()
            for turn in turns:
                expected.update(turn.balances)
            show(expected, *found)
            save_picture(options.picture, *panels(found[0], turns))
    print("The broker has stopped; its data is removed.")


def _write(bootstrap: str, count: int) -> list[Written]:
    """What each turn wrote. After each a writer is killed in a transaction."""
    from confluent_kafka import Producer

    progress = Progress("  transfers", count, sys.stdout)
    given = list(transfers(seed=1, count=count))
    turns = []
    size = -(-count // TURNS)
    for turn in range(TURNS):
        turns.append(write(bootstrap, TOPIC, "bank", given[turn * size : (turn + 1) * size], seed=turn))
        subprocess.run([sys.executable, "-c", KILLED, bootstrap, TOPIC], check=False)
        progress.at(min((turn + 1) * size, count))
    # the last transaction that was left open is ended by the next writer of that name
    write(bootstrap, TOPIC, "bank", [], seed=0)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(TOPIC, END_OF_TIME, HEARTBEAT_KEY)
    producer.flush(DEADLINE_S)
    return turns


def show(expected: Mapping[str, int], balances: Mapping[str, int], replayed: Mapping[str, int]) -> None:
    """Print the largest balances, and whether all three agree. Raises `PipelineError` where they do not."""
    largest = sorted(balances.items(), key=lambda one: -abs(one[1]))[:ROWS_MAX]
    most = max((abs(balance) for _, balance in largest), default=1) or 1
    rows = [
        (account, f"{balance / 100:,.2f}".rjust(16), BARS[-1] * round(BAR_MAX * abs(balance) / most))
        for account, balance in largest
    ]
    print(f"\n{table('The largest balances', ('account', 'balance', ''), rows)}\n")
    print(f"{len(balances)} accounts, sum of all balances: {sum(balances.values())}")
    for name, other in (("what the writers committed", expected), ("the replay", replayed)):
        if dict(other) != dict(balances):
            wrong = json.dumps(sorted(set(other.items()) ^ set(balances.items()))[:ROWS_MAX])
            raise PipelineError(
                f"The balances are not those of {name}: {wrong}.", "This is a defect: please report it."
            )
        print(f"equal to {name}: yes")
