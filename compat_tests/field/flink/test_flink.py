"""Flink's Kafka source and its exactly-once sink, while brokers and Flink die: each click is counted once.

A checkpoint of Flink's is made in two steps. Each sink flushes its transaction and notes it in the checkpoint; when
the checkpoint is complete, each commits. A job that dies between the two is restored with producers that resume, and
commit, what the dead ones had begun. The tests let checkpoints be made when they ask for them, and at an interval.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from compat_tests.conftest import Launcher
from compat_tests.field.flink.scene import CLICKS_OF_ONE, DEADLINE_S, ENDED, Scene, scene
from compat_tests.field.flink.standalone import Job
from compat_tests.support.waiting import eventually

FLINKS = (
    ("flink-1.20.5", ("default", "default")),
    ("flink-2.2.1", ("INCREMENTING", "INCREMENTING")),
    ("flink-2.2.1", ("POOLING", "POOLING")),
    ("flink-2.2.1", ("INCREMENTING", "POOLING")),
)
"""How transactions are named before and after the savepoint."""
IDS = [f"{version}-{'-then-'.join(dict.fromkeys(name.lower() for name in naming))}" for version, naming in FLINKS]
CHECKPOINT_MS = 300
LIVES_S_MAX = 2.0
"""How long a victim lives at most after its clicks: long enough for some checkpoints."""
BROKERS_LONGEST_MS, MEDIUM_MS, SHORT_MS = 900_000, 120_000, 30_000
"""The default of transaction.max.timeout.ms; longer than a restart of all, shorter than a wait; to be waited for."""

pytestmark = pytest.mark.wide


@pytest.mark.parametrize(("version", "naming"), FLINKS, ids=IDS)
def test_each_click_is_counted_once(
    launcher: Launcher, tmp_path: Path, seed: int, version: str, naming: tuple[str, str]
) -> None:
    with scene(launcher, version, tmp_path, seed) as here:
        job = here.run(2, naming[0])
        job.is_running()
        in_a_transaction(here)
        job.checkpoint()
        here.has_committed()
        here.check_group()

        broker_killed(here, job)
        task_manager_killed(here, job)
        job = all_killed_before_the_commit(here, job, naming[0])
        savepoint = job.stop()
        here.check_numbered()
        here.check_nothing_hangs()

        written = len(here.read("numbered", "read_uncommitted"))
        committed = len(here.clicks)
        here.click()
        here.add_partition()
        here.click()
        job = here.run(3, naming[1], restore=savepoint)
        here.has_written(written + len(here.clicks) - committed)
        job.checkpoint()
        here.has_committed()
        here.check_group()
        task_manager_killed(here, job)
        here.click_and_see()
        job.stop("--drain")
        here.check_numbered()
        here.check_windows()
        here.check_nothing_hangs()
        here.check_versions(version)


def in_a_transaction(here: Scene) -> None:
    """What is written is in open transactions of the job's: listed, and read by no `read_committed` reader."""
    committed = len(here.read("numbered"))
    here.click_and_see()
    assert len(here.read("numbered")) == committed
    ongoing = [name for name, state in here.transactions().items() if state == "Ongoing"]
    assert ongoing, here.transactions()
    assert all(name.startswith("numbered-") for name in ongoing), ongoing


def broker_killed(here: Scene, job: Job) -> None:
    """The open transactions go on in the broker's next process, and are committed."""
    here.click_and_see()
    assert here.is_open("numbered")
    here.broker.kill()
    here.broker.start()
    job.checkpoint()
    here.has_committed()
    here.check_numbered()


def task_manager_killed(here: Scene, job: Job) -> None:
    """Its open transactions are aborted, and the clicks of them processed again, from the last checkpoint on."""
    here.click_and_see()
    assert here.is_open("numbered")
    written = len(here.read("numbered", "read_uncommitted"))
    here.flink.task_manager.kill()
    here.flink.start_task_manager()
    here.has_written(written + 1)
    job.checkpoint()
    here.has_committed()
    here.check_numbered()
    lost = len(here.read("numbered", "read_uncommitted")) - len(here.clicks)
    assert lost > 0, "the killed transactions left nothing"


def all_killed_before_the_commit(here: Scene, job: Job, naming: str) -> Job:
    """The checkpoint is complete, no transaction is; the next job resumes them, commits, and needs no checkpoint."""
    here.click_and_see()
    with here.gate.swallowing("numbered-"):
        checkpoint = job.checkpoint()
        eventually(lambda: here.gate.held, "a request for the end of a transaction", DEADLINE_S)
        here.flink.kill()
    assert len(here.read("numbered")) < len(here.clicks)
    here.flink.start()
    job = here.run(2, naming, restore=checkpoint)
    here.has_committed()
    here.check_numbered()
    return job


@pytest.mark.parametrize(("version", "naming"), FLINKS[:3], ids=IDS[:3])
def test_each_click_is_counted_once_whatever_dies_when(
    launcher: Launcher, tmp_path: Path, seed: int, version: str, naming: tuple[str, str]
) -> None:
    """Checkpoints at an interval, and kills at moments of no choice; twice the JobManager and all with it.

    With POOLING, connector 5.0.0 may leave a transaction open that it has begun with an id of the checkpoint that is
    then restored with less parallelism (FLINK-40626). So transactions end by themselves before the wait does.
    """
    random = Random(seed)
    with scene(launcher, version, tmp_path, seed) as here:
        job = here.run(2, naming[0], None, CHECKPOINT_MS, MEDIUM_MS)
        job.is_running()
        here.click()
        here.has_committed()
        victims = ["broker"] * 3 + ["task manager"] * 3 + ["all"] * 2
        random.shuffle(victims)
        for victim in victims:
            here.click()
            time.sleep(random.uniform(0, LIVES_S_MAX))
            here.click()
            if victim == "broker":
                here.broker.kill()
                here.broker.start()
            elif victim == "task manager":
                here.flink.task_manager.kill()
                here.flink.start_task_manager()
            else:
                here.flink.kill()
                here.flink.start()
                restore, parallelism = here.flink.newest_checkpoint(), random.choice((1, 2, 3))
                job = here.run(parallelism, naming[0], restore, CHECKPOINT_MS, MEDIUM_MS)
        here.has_committed()
        here.check_group()
        job.stop("--drain")
        here.check_numbered()
        here.check_windows()
        here.check_nothing_hangs()


@pytest.mark.parametrize("version", sorted({version for version, _ in FLINKS}))
def test_a_transaction_that_may_last_longer_than_the_broker_allows(
    launcher: Launcher, tmp_path: Path, seed: int, version: str
) -> None:
    """The job fails at once, with the broker's reason; with the broker's longest it runs."""
    with scene(launcher, version, tmp_path, seed) as here:
        here.click()
        job = here.run(1, "default", transaction_ms=BROKERS_LONGEST_MS + 1)
        assert "transaction.max.timeout.ms" in job.failure()
        job.cancel()
        job = here.run(1, "default", transaction_ms=BROKERS_LONGEST_MS)
        here.has_written(len(here.clicks))
        job.checkpoint()
        here.has_committed()
        job.stop("--drain")
        here.check_numbered()
        here.check_nothing_hangs()


@pytest.mark.parametrize("version", sorted({version for version, _ in FLINKS}))
def test_a_job_that_is_restored_after_its_transactions_ended(
    launcher: Launcher, tmp_path: Path, seed: int, version: str
) -> None:
    """What was in them is missing, and nothing else: the counts go on. So the timeout must outlast every outage."""
    with scene(launcher, version, tmp_path, seed) as here:
        job = here.run(2, "default", transaction_ms=SHORT_MS)
        here.click_and_see()
        job.checkpoint()
        here.has_committed()
        kept = len(here.clicks)
        here.click_and_see()
        with here.gate.swallowing("numbered-"):
            checkpoint = job.checkpoint()
            eventually(lambda: here.gate.held, "a request for the end of a transaction", DEADLINE_S)
            here.flink.kill()
            eventually(lambda: set(here.transactions().values()) <= ENDED, "the coordinator's abort", DEADLINE_S)
        lost = {click.name for click in here.clicks[kept:]}
        here.flink.start()
        job = here.run(2, "default", restore=checkpoint)
        written = len(here.read("numbered", "read_uncommitted"))
        here.click()
        here.has_written(written + here.partitions * CLICKS_OF_ONE)
        job.checkpoint()
        job.stop("--drain")
        here.check_numbered(missing=lost)
        here.check_nothing_hangs()
