"""The SQLite file of the embedded tree: one row for each node, loaded once, then only written.

Rules:

* one transaction is one group of writes, with the zxid of the last of them; `synchronous=FULL` and a
  write-ahead log make it one fsync for each transaction;
* every method but `open_database` may be called in any thread, one at a time (`embedded` holds a lock);
* the file is private from its creation: it holds SCRAM keys and tokens;
* the file is locked exclusively while it is open, so a second process gets a clear error;
* no symbolic link is followed to it. If it is taken away while it is open, `keep` writes it again, from what the open
  file still holds; a file that was put in its place is left alone, and that is an error.

It does not interpret what it stores.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from kpybroker.coordination.image import Image, Node
from kpybroker.coordination.tree import CoordinationUnavailable
from kpybroker.core.tree import Acl
from kpybroker.system.files import OPEN_FLAGS, sync_directory
from kpybroker.system.private_files import PRIVATE_FILE

FORMAT_VERSION = 3
WAL = "-wal"
APPLICATION_ID = 0x6B70790A  # "kpy\n": marks this file among SQLite files

Row = tuple[str, bytes | None, int, int, int, int, int, int, int, int, int, str, int]
"""The columns of one node; the last one is the `row_sum` of the others."""

_NODE = """
CREATE TABLE node (
  path TEXT PRIMARY KEY, data BLOB, czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, ctime INTEGER NOT
  NULL, mtime INTEGER NOT NULL, version INTEGER NOT NULL, creates INTEGER NOT NULL, aversion INTEGER NOT NULL,
  ephemeral_owner INTEGER NOT NULL, pzxid INTEGER NOT NULL, acl TEXT NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID;
"""
_FIELDS = "path, data, czxid, mzxid, ctime, mtime, version, creates, aversion, ephemeral_owner, pzxid, acl"
_SCHEMA = f"""{_NODE}
CREATE TABLE latest (id INTEGER PRIMARY KEY CHECK (id = 1), zxid INTEGER NOT NULL);
INSERT INTO latest VALUES (1, 0);
"""
# Format 1 had no null data, format 2 no sums.
_FROM_OLDER = f"""
ALTER TABLE node RENAME TO old; {_NODE} INSERT INTO node SELECT {_FIELDS}, row_sum({_FIELDS}) FROM old; DROP TABLE old;
"""


def row_sum(*fields: object) -> int:
    """A checksum of a node: SQLite has none, and would return damaged data as if it were good."""
    return zlib.crc32(repr(fields).encode())


def row_of(path: str, node: Node) -> Row:
    """The row of a node, with its checksum."""
    acl = "" if node.acl == _OPEN else "\n".join(f"{a.permissions} {a.scheme} {a.identity}" for a in node.acl)
    fields = (
        path,
        node.data,
        node.czxid,
        node.mzxid,
        node.ctime,
        node.mtime,
        node.version,
        node.creates,
        node.aversion,
        node.ephemeral_owner,
        node.pzxid,
        acl,
    )
    return (*fields, row_sum(*fields))


_OPEN = (Acl(31, "world", "anyone"),)


def _node_of(row: Row) -> Node:
    path, data, czxid, mzxid, ctime, mtime, version, creates, aversion, owner, pzxid, acl, stored = row
    if stored != row_sum(*row[:-1]):
        raise ValueError(f"the checksum of the row of {path!r} does not match")
    node = Node(data, _acl_of(acl), czxid, ctime, owner)
    node.version, node.creates, node.aversion = version, creates, aversion
    # Equal numbers stay one object: most nodes were never changed.
    node.mzxid = node.czxid if mzxid == czxid else mzxid
    node.pzxid = node.czxid if pzxid == czxid else pzxid
    node.mtime = node.ctime if mtime == ctime else mtime
    return node


def _acl_of(text: str) -> tuple[Acl, ...]:
    if not text:
        return _OPEN
    parts = (line.split(" ", 2) for line in text.split("\n"))
    return tuple(Acl(int(permissions), scheme, identity) for permissions, scheme, identity in parts)


class Database:
    """An open file; see `open_database`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._identities = [_identity(path), _identity(_with_suffix(path, WAL))]

    def load(self) -> tuple[Image, int]:
        """All nodes, and the last zxid."""
        image = Image()
        # "/" sorts before every character but the lowest punctuation, so order by depth, then by path.
        rows: Iterator[Row] = self._connection.execute(
            "SELECT * FROM node ORDER BY length(path) - length(replace(path, '/', '')), path"
        )
        newest = 0
        for row in rows:
            node = _node_of(row)
            image.add(row[0], node)
            newest = max(newest, node.mzxid, node.pzxid)
        (zxid,) = self._connection.execute("SELECT zxid FROM latest").fetchone()
        if not isinstance(zxid, int) or zxid < newest:
            raise ValueError(f"the latest zxid is {zxid}, but there are changes up to {newest}")
        return image, zxid

    def check(self) -> None:
        """SQLite's own check of its pages: reading does not notice all damage to them. Raises ValueError."""
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise ValueError(" ".join(found.split()))

    def commit(self, rows: Mapping[str, Row | None], zxid: int) -> None:
        """Save `rows` (None: delete the node) and `zxid`, durable on return. Raises sqlite3.Error."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("DELETE FROM node WHERE path = ?", [(p,) for p, row in rows.items() if row is None])
            connection.executemany(
                "INSERT OR REPLACE INTO node VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                [row for row in rows.values() if row is not None],
            )
            connection.execute("UPDATE latest SET zxid = ?", (zxid,))
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    # --- its name

    @property
    def is_in_place(self) -> bool:
        """Whether the file and its write-ahead log, which SQLite makes with the first write, still have their names."""
        return all(
            known in (None, _identity(_with_suffix(self._path, suffix)))
            for known, suffix in zip(self._identities, ("", WAL), strict=True)
        )

    def keep(self) -> bool:
        """See that what was committed is in a file with a name. True: it was taken away, and has been written again.

        Raises OSError, sqlite3.Error: then what was committed last must not be acknowledged.
        """
        if self.is_in_place:
            if self._identities[1] is None:
                self._identities[1] = _identity(_with_suffix(self._path, WAL))
            return False
        if _identity(self._path) not in (None, self._identities[0]):
            raise OSError(f"{self._path} was replaced by another file while it was in use")
        again = _with_suffix(self._path, ".again")
        again.unlink(missing_ok=True)
        _create(again)
        self._connection.execute("VACUUM INTO ?", (str(again),))
        with again.open("r+b") as copy:
            os.fsync(copy.fileno())
        self._connection.close()
        _with_suffix(self._path, WAL).unlink(missing_ok=True)
        os.replace(again, self._path)
        sync_directory(str(self._path.parent))
        self._connection = _connect(self._path)
        _prepare(self._connection, self._path)
        self._identities = [_identity(self._path), _identity(_with_suffix(self._path, WAL))]
        return True

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()


def is_disk_full(error: Exception) -> bool:
    """Whether it is the one failure after which the same transaction may be tried again."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def open_database(path: Path) -> tuple[Database, Image, int]:
    """Open or create the file and load it. Raises `CoordinationUnavailable` with the cause in one line."""
    for name in (path, *(_with_suffix(path, suffix) for suffix in (WAL, "-shm", "-journal"))):
        if name.is_symlink():
            raise CoordinationUnavailable(str(path), f"{name.name} is a symbolic link, which is not followed")
    try:
        _create(path)
        connection = _connect(path)
    except (OSError, sqlite3.Error) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise CoordinationUnavailable(str(path), f"cannot be opened ({cause})") from error
    try:
        _prepare(connection, path)
        database = Database(connection, path)
        database.check()
        image, zxid = database.load()
    except (sqlite3.Error, KeyError, ValueError, TypeError) as error:
        connection.close()
        raise CoordinationUnavailable(str(path), _explain(error)) from error
    except CoordinationUnavailable:
        connection.close()
        raise
    return database, image, zxid


def _create(path: Path) -> None:
    """SQLite would create it with the umask's mode; its other files get the mode of this one.

    A file that exists is not opened here: closing it would drop the lock that this process may hold on it.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, PRIVATE_FILE))


def write_database(path: Path, rows: Mapping[str, Row | None], zxid: int) -> None:
    """Write a file that holds these nodes and nothing else, in place of one that is not open."""
    for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        name.unlink(missing_ok=True)
    database, _, _ = open_database(path)
    try:
        database.commit(rows, zxid)
    finally:
        database.close()


def peek(file: Path, path: str) -> tuple[bytes | None, int]:
    """One node's data (None if missing) and the last zxid of an existing file. Raises `CoordinationUnavailable`."""
    database, image, zxid = open_database(file)
    database.close()
    node = image.nodes.get(path)
    return None if node is None else node.data, zxid


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _explain(error: Exception) -> str:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return "is in use by another process"
    if isinstance(error, sqlite3.OperationalError):
        return f"cannot be read or written ({error})"
    return f"is damaged ({error})"


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Exclusive before the first access: the write-ahead log then needs no shared memory file.
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("PRAGMA synchronous=FULL")
    with closing(connection.execute("PRAGMA user_version")) as cursor:
        (version,) = cursor.fetchone()
    is_new = version == 0 and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if 1 <= version <= FORMAT_VERSION or is_new:
        connection.execute("PRAGMA journal_mode=WAL")
        _take_lock(connection)
        if version != FORMAT_VERSION:
            stamp = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT_VERSION};"
            connection.create_function("row_sum", -1, row_sum, deterministic=True)
            connection.executescript(f"BEGIN; {stamp} {_SCHEMA if is_new else _FROM_OLDER} COMMIT;")
    else:
        raise CoordinationUnavailable(
            str(path), f"has format version {version}, but this kpybroker reads up to {FORMAT_VERSION}"
        )


def _take_lock(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")
