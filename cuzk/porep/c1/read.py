"""Reading a C1 output in any of its three forms.

JSON is read natively in one pass (base64 on the way): besides the text, which is mapped or given, there are the values,
a fifth of its size. The wrapper is what requests carry, the inner JSON what phase 1 returns, bincode what the C++ phase 1
writes (SERVICE.md 1.1 to 1.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from os import PathLike, fspath

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.circuits.porep.shape import SHAPES
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.files import map_file
from cuzk.porep.c1.bincode import read_bincode
from cuzk.porep.c1.layout import challenge_schema, layout
from cuzk.porep.c1.model import C1
from cuzk.porep.c1.schema import U64, Program, Repeated
from cuzk.porep.registered import MAX_PARTITIONS, registered_name

_IDS = ("comm_r", "comm_d", "replica_id", "seed", "ticket")
_NAME_AT, _NAME_HASHES = len(_IDS), 2
_FIXED_HASHES = _NAME_AT + _NAME_HASHES
_NAME_LENGTH, _TAG, _PARTITIONS, _NUMBER, _SIZE = range(5)
_FLAGS = 5
_INNER = (*_IDS, "registered_proof", "vanilla_proofs")
_WRAPPER = ("SectorNum", "SectorSize", "Phase1Out")
_KEYS = (*_INNER, *_WRAPPER)
_FIXED_NUMBERS = _FLAGS + len(_KEYS)
_LEAST_HASH = len("[" + ",".join("0" * 32) + "]")
_LEAST_NUMBER = len('"index":0,')


@dataclass(frozen=True)
class Limits:
    """The limits of a reader. JSON is nested as deeply as its schema, and 64 levels more inside keys that it does not know."""

    max_bytes: int = 1 << 30
    """A non-interactive 32 GiB wrapper has 650 MB."""
    max_partitions: int = MAX_PARTITIONS


@cache
def _program(max_partitions: int) -> tuple[NDArray[np.int32], bytes, int]:
    program = Program()
    options = []
    for shape in SHAPES:
        partition = Repeated(shape.challenges, challenge_schema(shape))
        listed = program.listed(partition, max_partitions, _PARTITIONS, _FIXED_HASHES, _FIXED_NUMBERS)
        options.append((f"StackedDrg{shape.name}V1", listed))
    elements = {name: (program.hash(), i, 0) for i, name in enumerate(_IDS)}
    elements["registered_proof"] = (program.string(_NAME_HASHES), _NAME_AT, _NAME_LENGTH)
    elements["vanilla_proofs"] = (program.tagged(options), 0, _TAG)
    flag = {name: _FLAGS + i for i, name in enumerate(_KEYS)}
    inner = program.record([(name, *elements[name], True, flag[name]) for name in _INNER])
    elements["Phase1Out"] = (program.base64(inner), 0, 0)
    elements["SectorNum"] = (program.number(U64), 0, _NUMBER)
    elements["SectorSize"] = (program.number(U64), 0, _SIZE)
    # keys of both forms are taken at the top, and told apart afterwards
    optional = [(name, *elements[name], False, flag[name]) for name in _KEYS]
    return program.finished(program.record(optional))


def read(
    source: bytes | bytearray | memoryview | str | PathLike[str], limits: Limits | None = None, *, name: str | None = None,
    registered: str | None = None,
) -> C1:  # fmt: skip
    """A C1 output from a file or from its bytes; the form is recognised.

    `name` stands for the file in messages where bytes are given. bincode does not say its registered type: it is taken for
    `registered`, or for version 1.1 of the size that its paths have. Raises FormatError with the place and the byte.
    """
    limits = limits or Limits()
    if isinstance(source, (bytes, bytearray, memoryview)):
        shown = name or "C1 output"
        if not len(source):
            raise FormatError(shown, "there is nothing in it")
        text = np.frombuffer(source, np.uint8)
    else:
        shown = name or fspath(source)
        text = map_file(source)
    if len(text) > limits.max_bytes:
        raise FormatError(shown, f"{len(text):,} bytes are more than the {limits.max_bytes:,} that are taken")
    head = text[:2].tobytes()
    if head[:1] in b" \t\r\n{[" and head[1:] != b"\0":
        found = _read_json(text, shown, limits)
        if registered is not None and found.registered.name != registered:
            raise FormatError(shown, f"registered_proof: it is {found.registered.name}, and {registered} was asked for")
        return found
    return read_bincode(text, shown, registered, limits.max_partitions)


def _read_json(text: NDArray[np.uint8], shown: str, limits: Limits) -> C1:
    # Pages that no value reaches are never touched: this reserves addresses, not memory.
    room = len(text) // _LEAST_HASH
    hashes = np.zeros((_FIXED_HASHES + room, 32), np.uint8)
    numbers = np.zeros(_FIXED_NUMBERS + len(text) // _LEAST_NUMBER, np.uint64)
    code, names, root = _program(limits.max_partitions)
    fault = native.json_records(text, code, root, names, hashes, numbers)
    if fault is not None:
        inner = "" if fault.inner_offset is None else f" (byte {fault.inner_offset} of the document in Phase1Out)"
        where = f"{fault.path}: " if fault.path else ""
        raise FormatError(shown, f"{where}{fault.message}{inner}", offset=fault.offset)
    there = {name: bool(numbers[_FLAGS + i]) for i, name in enumerate(_KEYS)}
    form = "wrapper" if there["Phase1Out"] else "inner"
    _require_keys(there, form, shown)
    length = int(numbers[_NAME_LENGTH])
    raw = hashes[_NAME_AT : _NAME_AT + _NAME_HASHES].tobytes()[:length]
    try:
        registered = registered_name(raw.decode("ascii", "replace"))
    except InputError as error:
        raise FormatError(shown, f"registered_proof: {error}") from error
    shape = SHAPES[int(numbers[_TAG])]
    if shape is not registered.shape:
        raise FormatError(
            shown, f"vanilla_proofs.StackedDrg{shape.name}V1: sectors of {shape.name}, but registered_proof is {registered.name}"
        )
    partitions = int(numbers[_PARTITIONS])
    if not partitions:
        raise FormatError(shown, f"vanilla_proofs.StackedDrg{shape.name}V1: no partition there")
    at, n = layout(shape), partitions * shape.challenges
    dims = (partitions, shape.challenges)
    ids = [hashes[i].tobytes() for i in range(len(_IDS))]
    values = hashes[_FIXED_HASHES : _FIXED_HASHES + n * at.hashes].reshape(*dims, at.hashes, 32)
    figures = numbers[_FIXED_NUMBERS : _FIXED_NUMBERS + n * at.numbers].reshape(*dims, at.numbers)
    named = [int(numbers[k]) if there[key] else None for key, k in (("SectorNum", _NUMBER), ("SectorSize", _SIZE))]
    comm_r, comm_d, replica_id, seed, ticket = ids
    return C1(shown, form, registered, values, figures, comm_r, comm_d, replica_id, seed, ticket, *named)


def _require_keys(there: dict[str, bool], form: str, shown: str) -> None:
    """The wrapper's own keys and none of the inner ones; of the inner document all."""
    if form == "inner":
        missing = [key for key in _INNER if not there[key]]
        if len(missing) == len(_INNER):
            raise FormatError(shown, "no C1 output: neither Phase1Out (wrapper) nor vanilla_proofs (inner document) is there")
        if missing:
            raise FormatError(shown, f"{missing[0]}: missing")
        return
    for key in ("SectorNum", "SectorSize"):
        if not there[key]:
            raise FormatError(shown, f"{key}: missing")
