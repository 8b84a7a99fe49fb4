"""`Files`: the file system of a place that is a path or a URI, by Hadoop, which knows all that Spark can write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files:
    """The file system of a place, by Hadoop, which knows all that Spark can write to."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self._jvm: Any = spark._jvm
        self._system = self._path(place).getFileSystem(spark._jsc.hadoopConfiguration())

    def _path(self, place: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(place)

    def names(self, place: str) -> list[str]:
        """What is directly in a directory; nothing if there is none."""
        if not self.exists(place):
            return []
        return sorted(one.getPath().getName() for one in self._system.listStatus(self._path(place)))

    def exists(self, place: str) -> bool:
        """Whether there is such a file or directory."""
        return bool(self._system.exists(self._path(place)))

    def size(self, place: str) -> int:
        """Bytes of all files under it."""
        return int(self._system.getContentSummary(self._path(place)).getLength())

    def move(self, old: str, new: str) -> None:
        """Rename; the directories above the new name are made. Raises OSError."""
        self._system.mkdirs(self._path(new).getParent())
        if not self._system.rename(self._path(old), self._path(new)):
            raise OSError(f"{old} cannot be renamed to {new}")

    def remove(self, place: str) -> None:
        """With all that is in it; nothing if there is none."""
        self._system.delete(self._path(place), True)

    def write(self, place: str, text: str) -> None:
        """All of it or nothing, in the place of a file of that name."""
        part = f"{place}.part"
        stream = self._system.create(self._path(part), True)
        stream.write(text.encode())
        stream.close()
        if not self._system.rename(self._path(part), self._path(place)):  # not every file system replaces
            self.remove(place)
            self.move(part, place)

    def read(self, place: str) -> str:
        """A small file's text."""
        stream = self._system.open(self._path(place))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()
