"""`make suites`: the tests of other people's Go clients, whole and as they are, against a broker that was just started.

    python -m compat_tests.suites.go [--broker kafka] [--brokers 3] [--records 500000] [-- -run TestGroupETL]
    python -m compat_tests.suites.go --new-groups [-- -run 848]

franz-go's kgo: producers, fetch sessions, transactions and consumer groups under joining and leaving members, every
record counted. `go mod download` brings the module, whose archive holds its tests; nothing of it is kept here. What
stands after `--` goes to `go test`. `--broker kafka` runs the same on Kafka 3.9.1 on ZooKeeper: a test that fails there
too is no fault of ours. With `--new-groups` all features are finalized: its tests of KIP-848 are not
skipped, and its transactions are of version 2. Exits as `go test` does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compat_tests.bench.measuring.brokers import scratch_directory
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import ZooKeeper, kpybroker_executable

MODULE = "github.com/twmb/franz-go@v1.22.3"
PACKAGE = "pkg/kgo"
TIMEOUT = "10m"


def fetch(module: str) -> Path:
    """Where Go's module cache has the sources."""
    if shutil.which("go") is None:
        raise SystemExit("go is missing: install Go 1.26 or newer")
    with tempfile.TemporaryDirectory() as nowhere:  # outside of any module
        done = subprocess.run(["go", "mod", "download", "-json", module], cwd=nowhere, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    if done.returncode != 0:
        raise SystemExit(f"{module}: {found['Error']}")
    return Path(found["Dir"])


def run_kgo(cluster: Cluster, records: int, arguments: list[str]) -> int:
    environment = {
        "KGO_SEEDS": cluster.bootstrap,
        "KGO_TEST_RF": str(len(cluster.brokers)),
        "KGO_TEST_RECORDS": str(records),
        "KGO_TEST_STABLE_FETCH": "true",
        "KGO_LOG_LEVEL": "none",
    }
    command = ["go", "test", "-count", "1", "-timeout", TIMEOUT, ".", *arguments]
    return subprocess.run(command, cwd=fetch(MODULE) / PACKAGE, env={**os.environ, **environment}).returncode


def finalize_everything(cluster: Cluster) -> None:
    levels = ("group.version=1", "transaction.version=2")
    subprocess.run([str(kpybroker_executable()), "feature", "upgrade", *levels, "-b", cluster.bootstrap], check=True)


def properties(brokers: int) -> dict[str, str]:
    factor, least = str(brokers), str(min(brokers, 2))
    return {
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": least,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--broker", choices=("kpybroker", "kafka"), default="kpybroker")
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--new-groups", action="store_true", help="finalize all features; kpybroker only")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    fetch(MODULE)
    with scratch_directory(None) as directory:
        zookeeper = ZooKeeper(directory / "zookeeper")
        zookeeper.start()
        kinds = [options.broker] * options.brokers
        cluster = Cluster(directory, f"{zookeeper.connect}/suites", kinds, properties(options.brokers))
        try:
            cluster.start()
            if options.new_groups:
                finalize_everything(cluster)
            return run_kgo(cluster, options.records, options.arguments)
        finally:
            cluster.close()
            zookeeper.stop()


if __name__ == "__main__":
    sys.exit(main())
