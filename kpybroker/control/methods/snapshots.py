"""Snapshots: the files of all brokers as they are now, and back to them.

A snapshot is taken in one time slice of the loop, so it is of one moment: what a kill of the process would leave, with
the whole tree. `restore` ends all brokers as a kill does, puts the files back, and starts the brokers again, on the
same ports. Clients reconnect; what they remember of offsets may be ahead of what there is now. The clock stays.

Only for a development broker's amount of data: copying holds the loop.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.lifecycle.open_tree import EMBEDDED_TREE_FILE
from kpybroker.control.errors import ControlError
from kpybroker.control.registry import JSON, methods
from kpybroker.coordination.database import write_database
from kpybroker.system.private_files import PRIVATE_DIRECTORY

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted
    from kpybroker.coordination.embedded import TreeRows

SNAPSHOTS_MAX = 32
BYTES_MAX = 1 << 30
_LOCK_FILE = ".lock"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """`copies` are pairs of a log directory and its copy."""

    broker_ids: tuple[int, ...]
    copies: tuple[tuple[Path, Path], ...]
    tree: tuple[Path, TreeRows]

    def put_back(self) -> None:
        """Nothing may be open."""
        for directory, copy in self.copies:
            for entry in list(directory.iterdir()):
                if entry.is_dir():
                    shutil.rmtree(entry)
                elif entry.name != _LOCK_FILE:
                    entry.unlink()
            _copy(copy, directory)
        write_database(self.tree[0], *self.tree[1])


@dataclass(slots=True)
class _Snapshots:
    """Those of this process. `directory` holds their files once there is one."""

    by_id: dict[int, _Snapshot] = field(default_factory=dict)
    latest: int = 0
    directory: Path | None = None

    def place(self, hosted: Hosted) -> Path:
        """A directory for the next one. Raises ControlError."""
        if self.directory is None:
            directory = hosted.directory.with_name(f"{hosted.directory.name}-snapshots")
            shutil.rmtree(directory, ignore_errors=True)
            try:
                directory.parent.mkdir(parents=True, exist_ok=True)
                directory.mkdir(PRIVATE_DIRECTORY)  # not one that could not be removed: it may be another user's
            except OSError as error:
                raise ControlError(f"{directory} cannot be made: {error.strerror}", "remove it", status=409) from error
            self.directory = directory
            hosted.spawn(_remove_at_the_end, directory)
        self.latest += 1
        return self.directory / str(self.latest)


async def _remove_at_the_end(directory: Path) -> None:
    try:
        await trio.sleep_forever()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def snapshot(hosted: Hosted) -> JSON:
    """Keep a copy of everything the brokers hold, to `restore` it later. Copies are removed with the process."""
    snapshots = hosted.part(_Snapshots)
    if len(snapshots.by_id) >= SNAPSHOTS_MAX:
        raise ControlError(f"there are {SNAPSHOTS_MAX} snapshots", "drop one", status=409)
    tree = hosted.tree_copy()
    if tree is None:
        raise ControlError("the tree is in ZooKeeper, which a snapshot can't hold", "use embedded coordination", 409)
    directories = [Path(one) for broker_id in hosted.ids for one in hosted.plan(broker_id).config().log_dirs]
    size = sum(path.stat().st_size for directory in directories for path in _files(directory))
    if size > BYTES_MAX:
        raise ControlError(f"the brokers hold {size} bytes", f"take snapshots of at most {BYTES_MAX}", status=409)
    place = snapshots.place(hosted)
    copies = []
    for number, directory in enumerate(directories):
        copy = place / str(number)
        _copy(directory, copy)
        copies.append((directory, copy))
    snapshots.by_id[snapshots.latest] = _Snapshot(hosted.ids, tuple(copies), tree)
    return {"id": snapshots.latest, "bytes": size}


def _files(directory: Path) -> Iterator[Path]:
    """Every file of a log directory but the lock and the tree's."""
    for path in directory.rglob("*"):
        is_kept = path.name != _LOCK_FILE and not path.name.startswith(EMBEDDED_TREE_FILE)
        if is_kept and path.is_file():
            yield path


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in _files(source):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)


async def restore(hosted: Hosted, id: int) -> JSON:
    """Go back to a snapshot. Brokers restart on their ports; those that are down stay down."""
    found = _found(hosted, id)
    if found.broker_ids != hosted.ids:
        raise ControlError(
            f"the snapshot is of brokers {list(found.broker_ids)}, now there are {list(hosted.ids)}",
            "add or remove brokers until they are the same",
            status=409,
        )
    await hosted.replace_files(found.put_back)


async def drop_snapshot(hosted: Hosted, id: int) -> JSON:
    """Remove a snapshot."""
    found = _found(hosted, id)
    del hosted.part(_Snapshots).by_id[id]
    await trio.to_thread.run_sync(shutil.rmtree, found.copies[0][1].parent)


def _found(hosted: Hosted, snapshot_id: int) -> _Snapshot:
    by_id = hosted.part(_Snapshots).by_id
    if snapshot_id not in by_id:
        known = ", ".join(map(str, by_id)) or "none yet"
        raise ControlError(f"there is no snapshot {snapshot_id}", f"snapshots: {known}", status=404)
    return by_id[snapshot_id]


METHODS = methods(snapshot, restore, drop_snapshot)
