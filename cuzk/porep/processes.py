"""Values of partitions made in processes of their own: the one that drives GPUs computes nothing in Python meanwhile.

A child has what values need of the circuit (where its variables lie; no rows), reads a C1 output when it first hears of its
proof, and puts a partition's values into memory that both processes map. Nothing of them is copied or goes to a disk.
"""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import reduction
from multiprocessing.connection import Connection
from os import PathLike, fspath
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from cuzk.circuits.emitter import Library, Marks
from cuzk.errors import CuzkError, InputError
from cuzk.groth16.template.bits import ARRAYS, BitWitness
from cuzk.groth16.template.model import Part, Template, TemplateMatrix
from cuzk.porep.c1.model import C1, Owner
from cuzk.porep.c1.opening import c1_witness
from cuzk.porep.c1.read import read
from cuzk.porep.job import SectorFiles
from cuzk.porep.partition import PartitionMaker

_ALIGNMENT = 4096
_KEPT_SECTORS = 3
T = TypeVar("T")


class SectorProcesses(SectorFiles):
    """C1 outputs as `SectorFiles` has them, values made in `count` processes; their number bounds how many are made at once.
    Use `close` at the end; the processes end with this one in any case."""

    def __init__(self, paths: Sequence[str | PathLike[str]], count: int, owner: Owner | None = None) -> None:
        """Reads and checks every file once. Raises FormatError with the place of a fault."""
        super().__init__(paths, owner)
        self._publics: dict[int, _Begun] = {}
        self._slim = pickle.dumps(slim(self.maker))
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._children = [_Child(self._slim) for _ in range(count)]
        for child in self._children:
            self._idle.put(child)

    def witness(self, proof: int, partition: int) -> BitWitness:
        """The values of a partition, in memory that another process has filled. Raises CuzkError if that process is gone."""
        self._begun(proof)
        template = self.maker.template
        return self._ask(partition, lambda child: child.witness(self._path(proof), proof, partition, template))

    def public_inputs(self, proof: int, partition: int) -> list[int]:
        return self._begun(proof)[partition]

    def done(self, proof: int) -> None:
        with self._mutex:
            self._publics.pop(proof, None)

    def _path(self, proof: int) -> str:
        return fspath(self._paths[proof % len(self._paths)])

    def _begun(self, proof: int) -> list[list[int]]:
        """The public inputs of a proof's partitions; the first who asks has its C1 output read and checked."""
        with self._mutex:
            begun = self._publics.setdefault(proof, _Begun())
        with begun.mutex:
            if begun.publics is None:
                begun.publics = self._ask(None, lambda child: child.begin(self._path(proof), proof, self._owner))
                if len(begun.publics) != self.partitions:
                    raise InputError(f"{self._path(proof)}: another sector than when the run began")
            return begun.publics

    def _ask(self, partition: int | None, question: Callable[[_Child], T]) -> T:
        child = self._idle.get()
        try:
            return question(child)
        except (EOFError, OSError) as error:
            self._children.remove(child)
            child.end()
            child = _Child(self._slim)
            self._children.append(child)
            what = "a C1 output was read" if partition is None else f"the values of partition {partition} were made"
            raise CuzkError(f"the process in which {what} has ended") from error
        finally:
            self._idle.put(child)

    def peak_bytes(self) -> int:
        """The most that the processes have had resident, all together; pages that they share are counted in each."""
        return sum(child.peak_bytes() for child in self._children)

    def close(self) -> None:
        for child in self._children:
            child.end()


class _Begun:
    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.publics: list[list[int]] | None = None


def slim(maker: PartitionMaker) -> PartitionMaker:
    """The same circuit without its rows: what values need, a fortieth of it."""
    empty = TemplateMatrix(np.zeros(1, np.uint32), np.zeros(0, np.int32), np.zeros(0, np.uint16))

    def part(whole: Part) -> Part:
        return replace(whole, rows=0, matrices=(empty, empty, empty))

    whole = maker.template
    library = Library()
    library.blocks = {
        key: replace(block, matrices=(), marks=Marks(), n_rows=0) for key, block in maker.library.blocks.items()
    }  # fmt: skip
    made = object.__new__(PartitionMaker)
    made.shape, made.library = maker.shape, library
    made.template = Template(part(whole.prefix), part(whole.body), whole.copies, np.zeros((0, 4), np.uint64), whole.name)
    return made


class _Child:
    """The parent's end of one process."""

    def __init__(self, slim_maker: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True, name="cuzk values")
        self._process.start()
        theirs.close()
        self._pipe.send_bytes(slim_maker)

    def _answer(self, question: tuple[Any, ...]) -> Any:
        self._pipe.send(question)
        answer = self._pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def begin(self, path: str, proof: int, owner: Owner | None) -> list[list[int]]:
        """Has a C1 output read and checked; the public inputs of its partitions."""
        publics: list[list[int]] = self._answer((path, proof, None, owner))
        return publics

    def witness(self, path: str, proof: int, partition: int, template: Template) -> BitWitness:
        answer = self._answer((path, proof, partition, None))
        descriptor = reduction.recv_handle(self._pipe)
        try:
            memory = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
        raw = np.frombuffer(memory, np.uint8)
        arrays = [raw[at : at + 8 * int(np.prod(shape))].view(np.uint64).reshape(shape) for at, shape in answer]
        return BitWitness(template, *arrays)

    def peak_bytes(self) -> int:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def end(self) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """The life of a child: until the other end is closed."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        maker: PartitionMaker = pickle.loads(pipe.recv_bytes())
        sectors: dict[int, C1] = {}
        while True:
            path, proof, partition, owner = pipe.recv()
            try:
                if proof not in sectors:
                    while len(sectors) >= _KEPT_SECTORS:
                        del sectors[min(sectors)]
                    sectors[proof] = read(path)
                found = sectors[proof]
                if partition is None:
                    found.check(owner)
                    pipe.send([found.public_inputs(k) for k in range(found.partitions)])
                    continue
                made = c1_witness(maker, found, partition)
            except CuzkError as error:
                pipe.send(error)
                continue
            _send(pipe, made)


def _send(pipe: Connection, made: BitWitness) -> None:
    layout: list[tuple[int, tuple[int, ...]]] = []
    end = 0
    for name in ARRAYS:
        array = getattr(made, name)
        layout.append((end, array.shape))
        end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    descriptor = os.memfd_create("cuzk-values")
    try:
        os.ftruncate(descriptor, max(end, _ALIGNMENT))
        with mmap.mmap(descriptor, 0) as memory:
            for (at, _), name in zip(layout, ARRAYS, strict=True):
                array = np.ascontiguousarray(getattr(made, name))
                memory[at : at + array.nbytes] = array.tobytes()
        pipe.send(layout)
        reduction.send_handle(pipe, descriptor, None)
    finally:
        os.close(descriptor)
