"""What a crash takes: everything since the last sync of a file, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.control.levers.unsynced import Unsynced, about_to_truncate, about_to_write
from tests.support.storage.lossy_files import LossyFiles

POSITIONS = st.integers(0, 12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), POSITIONS, st.binary(min_size=1, max_size=6)),
        st.tuples(st.just("append"), st.just(0), st.binary(min_size=1, max_size=6)),
        st.tuples(st.just("truncate"), POSITIONS, st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
    ),
    max_size=12,
)


@given(STEPS)
def test_a_file_is_as_it_was_synced_last(steps: list[tuple[str, int, bytes]]) -> None:
    files = LossyFiles()
    file = files.open("/file", create=True)
    file.pwrite(b"from the begin", 0)
    file.sync()
    unsynced = Unsynced("/file")
    synced = file.pread(100, 0)
    for step, position, data in steps:
        if step == "sync":
            begun = unsynced.sync_begins()
            file.sync()
            unsynced.synced(begun)
            synced = file.pread(100, 0)
        elif step == "truncate":
            unsynced.note(about_to_truncate(file, position))
            file.truncate(position)
        else:
            at = file.size() if step == "append" else position
            unsynced.note(about_to_write(file, at, at + len(data)))
            file.pwrite(data, at)
    unsynced.lose(file)
    assert file.pread(100, 0) == synced
    assert unsynced.writes == []


def test_a_write_during_a_sync_is_lost() -> None:
    file = LossyFiles().open("/file", create=True)
    unsynced = Unsynced("/file")
    for number, data in enumerate((b"before", b"during", b"later ")):
        unsynced.note(about_to_write(file, file.size(), file.size() + len(data)))
        file.pwrite(data, file.size())
        if number == 0:
            begun = unsynced.sync_begins()
    unsynced.synced(begun)
    unsynced.lose(file)
    assert file.pread(100, 0) == b"before"


def test_a_thousand_appends_are_one_entry() -> None:
    file = LossyFiles().open("/file", create=True)
    unsynced = Unsynced("/file")
    for _ in range(1000):
        unsynced.note(about_to_write(file, file.size(), file.size() + 3))
        file.pwrite(b"abc", file.size())
    assert len(unsynced.writes) == 1
    unsynced.lose(file)
    assert file.size() == 0
