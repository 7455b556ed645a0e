"""Jobs on disk: a killed service takes them up again and has lost no partition that was finished.

SQLite holds ids, digests, states and finished proofs, which are public. What a proof is made from (paths of the replica) lies
in files of their own beside it, readable by the service's user alone, and goes when its job has ended. Neither has values of a
witness or blinding.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuzk.errors import InputError
from cuzk.service.request import Priority, ProofRequest

SCHEMA_VERSION = 1
OPEN, COMPLETED, FAILED, CANCELLED = "open", "completed", "failed", "cancelled"
_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, digest TEXT NOT NULL, kind INTEGER NOT NULL, priority INTEGER NOT NULL,
  miner TEXT NOT NULL, sector_number TEXT NOT NULL, sector_size TEXT NOT NULL, registered_proof TEXT NOT NULL,
  partition_index INTEGER NOT NULL, randomness BLOB, comm_r_old BLOB, comm_r_new BLOB, comm_d_new BLOB,
  submitted_s REAL NOT NULL, deadline_s REAL, state TEXT NOT NULL, error TEXT NOT NULL DEFAULT '',
  final INTEGER NOT NULL DEFAULT 0,
  ended_s REAL, attempts INTEGER NOT NULL DEFAULT 0, queue_ms INTEGER NOT NULL DEFAULT 0, load_ms INTEGER NOT NULL DEFAULT 0,
  synth_ms INTEGER NOT NULL DEFAULT 0, gpu_ms INTEGER NOT NULL DEFAULT 0, total_ms INTEGER NOT NULL DEFAULT 0, proof BLOB,
  begun INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS partitions (
  job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE, number INTEGER NOT NULL, proof BLOB NOT NULL,
  synth_ms INTEGER NOT NULL, gpu_ms INTEGER NOT NULL, PRIMARY KEY (job, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS jobs_state ON jobs(state);
"""


@dataclass(frozen=True)
class Ended:
    """The end of a job."""

    state: str
    proof: bytes = b""
    error: str = ""
    final: bool = False
    """The same request would end so again."""
    ended_s: float = 0.0
    """Seconds since the epoch."""
    queue_ms: int = 0
    load_ms: int = 0
    synth_ms: int = 0
    gpu_ms: int = 0
    """Sums over partitions that overlap."""
    total_ms: int = 0


@dataclass(frozen=True)
class Record:
    """A job as the journal has it."""

    request: ProofRequest
    """Without its vanilla proofs while they are on disk."""
    digest: str
    seq: int
    submitted_s: float
    deadline_at_s: float | None
    ended: Ended | None
    made: dict[int, bytes] = field(default_factory=dict)
    attempts: int = 0
    begun: int = 0
    """Times that a service has taken it in hand without coming to an orderly end."""


class Journal:
    """The state directory of one service. Methods may be called from any thread; each is one transaction."""

    def __init__(self, directory: str | os.PathLike[str], *, keep: int = 10_000) -> None:
        """`keep`: finished jobs that are remembered. Raises InputError: not writable, in use by another service, of another
        version, or no journal at all."""
        self.directory, self._keep = Path(directory), keep
        self._mutex = threading.Lock()
        self._files = threading.Lock()
        """Held while an input comes or goes with its job."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.inputs = self.directory / "inputs"
            self.inputs.mkdir(exist_ok=True, mode=0o700)
            self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(f"{self.directory}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise InputError(f"{self.directory}: another service uses it (--state DIR gives this one its own)") from None
        path = self.directory / "journal.sqlite"
        try:
            self._db = self._open(path)
        except sqlite3.Error as error:
            os.close(self._lock)
            raise InputError(f"{path}: {error}") from error
        except InputError:
            os.close(self._lock)
            raise

    def _open(self, path: Path) -> sqlite3.Connection:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                raise InputError(f"{path}: a journal of version {version}, this is {SCHEMA_VERSION}")
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA foreign_keys=ON")
            db.executescript(_TABLES)
            db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        with self._mutex:
            self._db.close()
            os.close(self._lock)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise
            try:
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------------ jobs

    def accept(self, request: ProofRequest, digest: str, seq: int, submitted_s: float, deadline_at_s: float | None) -> None:
        """On disk when it returns. An ended job of the same id and content keeps the partitions that it has; one of other
        content is replaced. Raises OSError, sqlite3.Error; then nothing is there."""
        path = self._input_path(digest)
        fresh = not path.exists()
        if fresh:
            _write_items(path, request.vanilla)
        row = (
            *(request.request_id, seq, digest, request.kind, int(request.priority)),
            *(str(request.miner), str(request.sector_number), str(request.sector_size), str(request.registered_proof)),
            *(request.partition_index, request.randomness, request.comm_r_old, request.comm_r_new, request.comm_d_new),
            *(submitted_s, deadline_at_s, OPEN),
        )
        try:
            with self._transaction() as db:
                old = db.execute("SELECT digest FROM jobs WHERE id=?", (request.request_id,)).fetchone()
                if old is not None and old[0] == digest:
                    db.execute("UPDATE jobs SET state=?, seq=?, priority=?, submitted_s=?, deadline_s=?, error='', final=0, "
                               "begun=0, ended_s=NULL, attempts=attempts+1 WHERE id=?",
                               (OPEN, seq, int(request.priority), submitted_s, deadline_at_s, request.request_id))  # fmt: skip
                    return
                db.execute("DELETE FROM jobs WHERE id=?", (request.request_id,))
                db.execute("INSERT INTO jobs (id, seq, digest, kind, priority, miner, sector_number, sector_size, "
                           "registered_proof, partition_index, randomness, comm_r_old, comm_r_new, comm_d_new, submitted_s, "
                           f"deadline_s, state) VALUES ({','.join('?' * len(row))})", row)  # fmt: skip
        except BaseException:
            if fresh:
                path.unlink(missing_ok=True)
            raise

    def made(self, job: str, number: int, proof: bytes, synth_ms: int, gpu_ms: int) -> None:
        """A partition is finished; a second one of the same number changes nothing."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO partitions SELECT id, ?, ?, ?, ? FROM jobs WHERE id=?",
                       (number, proof, synth_ms, gpu_ms, job))  # fmt: skip

    def begin(self, job: str) -> None:
        """Somebody takes it in hand."""
        with self._transaction() as db:
            db.execute("UPDATE jobs SET begun=begun+1 WHERE id=?", (job,))

    def orderly(self) -> None:
        """The service ends of its own will: what is open was not the end of it."""
        with self._transaction() as db:
            db.execute("UPDATE jobs SET begun=0 WHERE state=?", (OPEN,))

    def forget_partitions(self, job: str, numbers: list[int]) -> None:
        """They did not hold after all."""
        with self._transaction() as db:
            db.executemany("DELETE FROM partitions WHERE job=? AND number=?", [(job, number) for number in numbers])

    def ended(self, job: str, digest: str, end: Ended, keep_input: bool = False) -> None:
        """The job's input goes, unless `keep_input` or another open job has the same."""
        with self._files:
            self._ended(job, digest, end, keep_input)

    def _ended(self, job: str, digest: str, end: Ended, keep_input: bool) -> None:
        with self._transaction() as db:
            db.execute("UPDATE jobs SET state=?, error=?, final=?, ended_s=?, queue_ms=?, load_ms=?, synth_ms=?, gpu_ms=?, "
                       "total_ms=?, proof=? WHERE id=?",
                       (end.state, end.error, end.final, end.ended_s, end.queue_ms, end.load_ms, end.synth_ms, end.gpu_ms,
                        end.total_ms, end.proof, job))  # fmt: skip
            if end.state == COMPLETED:
                db.execute("DELETE FROM partitions WHERE job=?", (job,))
            shared = db.execute("SELECT 1 FROM jobs WHERE digest=? AND state=?", (digest, OPEN)).fetchone()
            db.execute("DELETE FROM jobs WHERE state<>? AND id NOT IN (SELECT id FROM jobs WHERE state<>? ORDER BY ended_s DESC "
                       "LIMIT ?)", (OPEN, OPEN, self._keep))  # fmt: skip
        if shared is None and not keep_input:
            self._input_path(digest).unlink(missing_ok=True)

    def find(self, job: str) -> Record | None:
        with self._mutex:
            found = self._select("WHERE id=?", (job,))
        return found[0] if found else None

    def open_jobs(self) -> list[Record]:
        """Those that have not ended, in the order of their coming."""
        with self._mutex:
            return self._select("WHERE state=? ORDER BY seq", (OPEN,))

    def recent(self, count: int) -> list[Record]:
        """Ended jobs, latest first."""
        with self._mutex:
            return self._select("WHERE state<>? ORDER BY ended_s DESC LIMIT ?", (OPEN, count))

    def last_seq(self) -> int:
        with self._mutex:
            return int(self._db.execute("SELECT COALESCE(MAX(seq), 0) FROM jobs").fetchone()[0])

    def counts(self) -> dict[tuple[int, str], int]:
        """(kind, state) -> jobs that are remembered."""
        with self._mutex:
            rows = self._db.execute("SELECT kind, state, COUNT(*) FROM jobs GROUP BY kind, state").fetchall()
        return {(int(kind), str(state)): int(n) for kind, state, n in rows}

    def request_with_input(self, record: Record) -> ProofRequest:
        """The request whole again. Raises InputError if its input is gone or damaged."""
        path = self._input_path(record.digest)
        try:
            request = replace(record.request, vanilla=_read_items(path))
        except (OSError, ValueError, struct.error) as error:
            raise InputError(f"the input of job {record.request.request_id} cannot be read again: {error}") from error
        if request.digest() != record.digest:
            raise InputError(f"the input of job {record.request.request_id} is damaged on disk")
        return request

    def sweep_inputs(self, keep: int) -> None:
        """Remove inputs of no open job but the `keep` latest, which are there for diagnosis."""
        wanted = {record.digest for record in self.open_jobs()}
        with contextlib.suppress(OSError):
            for part in self.inputs.glob("*.part"):
                part.unlink(missing_ok=True)
            others = [path for path in self.inputs.glob("*.in") if path.stem not in wanted]
            for path in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[keep:]:
                path.unlink(missing_ok=True)

    def _input_path(self, digest: str) -> Path:
        return self.inputs / f"{digest}.in"

    def _select(self, where: str, values: tuple[Any, ...]) -> list[Record]:
        columns = ("id, seq, digest, kind, priority, miner, sector_number, sector_size, registered_proof, partition_index, "
                   "randomness, comm_r_old, comm_r_new, comm_d_new, submitted_s, deadline_s, state, error, final, ended_s, "
                   "attempts, queue_ms, load_ms, synth_ms, gpu_ms, total_ms, proof, begun")  # fmt: skip
        out = []
        for row in self._db.execute(f"SELECT {columns} FROM jobs {where}", values).fetchall():
            job = row[0]
            made = dict(self._db.execute("SELECT number, proof FROM partitions WHERE job=?", (job,)).fetchall())
            request = ProofRequest(
                job, row[3], miner=int(row[5]), sector_number=int(row[6]), sector_size=int(row[7]), registered_proof=int(row[8]),
                partition_index=row[9], randomness=row[10], comm_r_old=row[11], comm_r_new=row[12], comm_d_new=row[13],
                priority=Priority(row[4]),
            )  # fmt: skip
            end = None
            if row[16] != OPEN:
                end = Ended(row[16], row[26] or b"", row[17], bool(row[18]), row[19] or 0.0, *row[21:26])
            out.append(Record(request, row[2], row[1], row[14], row[15], end, made, row[20], row[27]))
        return out


def now_s() -> float:
    return time.time()


def _write_items(path: Path, items: tuple[bytes, ...]) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(struct.pack("<I", len(items)))
            for item in items:
                file.write(struct.pack("<Q", len(item)))
                file.write(item)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _read_items(path: Path) -> tuple[bytes, ...]:
    with open(path, "rb") as file:
        (count,) = struct.unpack("<I", file.read(4))
        left = path.stat().st_size
        items = []
        for _ in range(count):
            (size,) = struct.unpack("<Q", file.read(8))
            if size > left:
                raise ValueError("cut short")
            items.append(file.read(size))
        return tuple(items)
