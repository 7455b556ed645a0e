"""Section 10 of a .zkey: the hash of the circuit and what each participant of a phase 2 did, in snarkjs's format.

A contribution multiplies delta by a secret k and proves it: s and k·s in G1, and k·p in G2, where p is the point that the
transcript is hashed to: BLAKE2b-512 over the circuit's hash, all contributions before, s and k·s (points uncompressed,
big-endian).
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from cuzk import native
from cuzk.errors import InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.ceremony.randomness import Randomness, hash_to_g2
from cuzk.groth16.field import FR_MODULUS, fr_array
from cuzk.groth16.formats.container import ContainerWriter
from cuzk.groth16.formats.files import Path, atomic_write
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.progress import Progress, silent

NAME, ITERATIONS, BEACON = 1, 2, 3
"""Tags of a contribution's parameters."""
BY_PERSON, BY_BEACON = 0, 1
MOST_ITERATIONS_EXP = 40
"""Beyond this a beacon takes weeks; snarkjs allows 63."""
CHUNK = 1 << 16


@dataclass(frozen=True)
class Contribution:
    """One participant. Points *be*."""

    delta_after: bytes
    g1_s: bytes
    g1_sx: bytes
    g2_spx: bytes
    transcript: bytes
    kind: int
    name: str = ""
    iterations_exp: int = 0
    beacon: bytes = b""

    def hashed(self) -> bytes:
        """The bytes that later transcripts hash of it."""
        ours = (self.delta_after, self.g1_s, self.g1_sx, self.g2_spx)
        return b"".join(_uncompressed(p) for p in ours) + self.transcript

    def digest(self) -> bytes:
        """The hash by which a participant knows his contribution."""
        return blake2b(self.hashed(), digest_size=64).digest()

    def encode(self) -> bytes:
        """The record in the file. Raises InputError for a name that is too long."""
        name, parameters = self.name.encode(), b""
        if len(name) > 64:
            raise InputError(f"the name of a contribution takes at most 64 bytes, not {len(name)}")
        if name:
            parameters += bytes([NAME, len(name)]) + name
        if self.kind == BY_BEACON:
            parameters += bytes([ITERATIONS, self.iterations_exp, BEACON, len(self.beacon)]) + self.beacon
        mont = b"".join(point_bytes.to_mont(p).tobytes() for p in (self.delta_after, self.g1_s, self.g1_sx, self.g2_spx))
        return mont + self.transcript + struct.pack("<II", self.kind, len(parameters)) + parameters


def _uncompressed(be: bytes) -> bytes:
    """Big-endian with c1 first, as in ZCash's form, but without its flag of infinity."""
    return point_bytes.to_zcash(be) if any(be) else be


def read_contributions(file: ZkeyFile) -> tuple[bytes, list[Contribution]]:
    """The circuit's hash and the contributions of a key. Raises FormatError."""
    if 10 not in file.container:
        raise file.container.error(file.container.section(2), "the key has no section of contributions (10)")
    section = file.container.section(10)
    file.contribution_names()  # checks every length
    data = section.data.tobytes()
    (count,) = struct.unpack_from("<I", data, 64)
    found, at = [], 68
    for number in range(count):
        start, raw = at, []
        for size in (96, 96, 96, 192):
            try:
                raw.append(point_bytes.from_mont(np.frombuffer(data[at : at + size], np.uint64)))
            except point_bytes.PointError as error:
                raise file.container.error(section, f"contribution {number + 1}: {error}", at) from error
            at += size
        transcript = data[at : at + 64]
        kind, length = struct.unpack_from("<II", data, at + 64)
        at += 72
        try:
            name, iterations, beacon = _parameters(data[at : at + length])
        except ValueError as error:
            raise file.container.error(section, f"contribution {number + 1}: {error}", at) from error
        at += length
        if kind not in (BY_PERSON, BY_BEACON):
            raise file.container.error(section, f"contribution {number + 1} is of the unknown kind {kind}", start)
        found.append(Contribution(raw[0], raw[1], raw[2], raw[3], transcript, kind, name, iterations, beacon))
    if at != section.size:
        raise file.container.error(section, f"{section.size - at} bytes after the last contribution", at)
    return data[:64], found


def _parameters(data: bytes) -> tuple[str, int, bytes]:
    name, iterations, beacon, at = "", 0, b"", 0
    while at < len(data):
        if at + 2 > len(data):
            raise ValueError("its parameters end early")
        tag, value = data[at], data[at + 1]
        at += 2
        if tag in (NAME, BEACON):
            text, at = data[at : at + value], at + value
            if len(text) != value:
                raise ValueError("its parameters end early")
            if tag == NAME:
                name = text.decode("utf-8", "replace")
            else:
                beacon = text
        elif tag == ITERATIONS:
            iterations = value
        else:
            raise ValueError(f"it has a parameter of the unknown kind {tag}")
    return name, iterations, beacon


def transcript_of(circuit_hash: bytes, before: list[Contribution], g1_s: bytes, g1_sx: bytes) -> bytes:
    """The transcript that a contribution with these points must have behind those before it."""
    hashed = circuit_hash + b"".join(c.hashed() for c in before) + _uncompressed(g1_s) + _uncompressed(g1_sx)
    return blake2b(hashed, digest_size=64).digest()


def contribute(path: Path, out: Path, name: str = "", entropy: bytes = b"", progress: Progress = silent) -> Contribution:
    """Multiply delta by a secret from the operating system (and `entropy`) and write the key. Raises InputError; the secret is
    kept nowhere.
    """
    seed = blake2b(os.urandom(64) + entropy, digest_size=64).digest()
    return _apply(path, out, Randomness(seed), Contribution(b"", b"", b"", b"", b"", BY_PERSON, name), progress)


def apply_beacon(
    path: Path, out: Path, beacon: bytes, iterations_exp: int, name: str = "", progress: Progress = silent
) -> Contribution:
    """Multiply delta by what 2^iterations_exp rounds of SHA-256 make of a public value. Raises InputError."""
    if not 0 < len(beacon) < 256:
        raise InputError("a beacon is a hexadecimal value of 1 to 255 bytes")
    if not 10 <= iterations_exp <= MOST_ITERATIONS_EXP:
        raise InputError(f"the exponent of the iterations must be 10 to {MOST_ITERATIONS_EXP}")
    made = Contribution(b"", b"", b"", b"", b"", BY_BEACON, name, iterations_exp, beacon)
    return _apply(path, out, Randomness.of_beacon(beacon, iterations_exp), made, progress)


def _apply(path: Path, out: Path, randomness: Randomness, kind: Contribution, progress: Progress) -> Contribution:
    file = ZkeyFile(path)
    if file.development:
        raise InputError(f"{path}: is a development key: its secrets are known whatever is contributed (cuzk setup --ptau)")
    circuit_hash, before = read_contributions(file)
    h = file.header
    secret, g1_s = randomness.fr(), randomness.g1()
    g1_sx = _scaled(g1_s, secret)
    transcript = transcript_of(circuit_hash, before, g1_s, g1_sx)
    delta_g1, delta_g2 = point_bytes.from_mont(h.delta_g1), point_bytes.from_mont(h.delta_g2)
    made = Contribution(
        _scaled(delta_g1, secret), g1_s, g1_sx, _scaled(hash_to_g2(transcript), secret), transcript,
        kind.kind, kind.name, kind.iterations_exp, kind.beacon,
    )  # fmt: skip
    records = b"".join(c.encode() for c in [*before, made])
    inverse = pow(secret, -1, FR_MODULUS)
    with atomic_write(out) as target:
        writer = ContainerWriter(target, b"zkey")
        for number in (1, 2, 3, 4, 5, 6, 7):
            data = file.container.section(number).data
            if number == 2:  # all but the deltas, which end it
                deltas = point_bytes.to_mont(made.delta_after).tobytes(), point_bytes.to_mont(_scaled(delta_g2, secret)).tobytes()
                data = np.frombuffer(data[: -96 - 192].tobytes() + b"".join(deltas), np.uint8)
            writer.section(number, data)
        for number, what, mont in ((8, "L", file.l), (9, "H", file.h)):
            writer.begin(number)
            for first in range(0, len(mont), CHUNK):
                chunk = np.ascontiguousarray(mont[first : first + CHUNK])
                target.write(native.scale_g1(chunk, np.repeat(fr_array([inverse]), len(chunk), axis=0)).data)
                progress(what, first + len(chunk), len(mont))
            writer.end()
        writer.section(10, circuit_hash + struct.pack("<I", len(before) + 1) + records)
        writer.finish()
    return made


def _scaled(be: bytes, scalar: int) -> bytes:
    scale = native.scale_g1 if len(be) == 96 else native.scale_g2
    return point_bytes.from_mont(scale(point_bytes.to_mont(be), fr_array([scalar])))
