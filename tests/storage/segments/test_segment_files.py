"""The names of a segment's files, and their removal."""

from __future__ import annotations

from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import write_file
from kpybroker.storage.segments.segment_files import SegmentFiles
from tests.support.storage.lossy_files import LossyFiles


def test_paths_follow_the_directory_and_the_suffix() -> None:
    files = SegmentFiles(LossyFiles(), "/a", 7, names.CLEANED_SUFFIX)
    assert files.path(names.INDEX_SUFFIX) == "/a/00000000000000000007.index.cleaned"
    files.suffix, files.directory = "", "/b"
    assert files.paths() == [f"/b/00000000000000000007{kind}" for kind in names.SEGMENT_SUFFIXES]


def test_removing_leaves_other_suffixes_and_segments(files: LossyFiles) -> None:
    kept = ["/00000000000000000007.log", "/00000000000000000008.log.cleaned"]
    for path in [*kept, "/00000000000000000007.log.cleaned", "/00000000000000000007.txnindex.cleaned"]:
        write_file(files, path, b"x", sync=False)
    SegmentFiles(files, "", 7, names.CLEANED_SUFFIX).remove()
    assert sorted(f"/{entry.name}" for entry in files.listdir("/")) == kept
