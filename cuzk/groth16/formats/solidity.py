"""A verifier contract over the precompiles of EIP-2537, and what it is called with.

A point of G1 is x and y of 64 bytes each, big-endian; of G2 x.c0, x.c1, y.c0, y.c1; infinity is zeros. The contract holds
beta, gamma and delta negated, so that e(A, B)·e(alpha, −beta)·e(IC(x), −gamma)·e(C, −delta) = 1 takes one call to the pairing
(0x0f), which checks that points are in their groups, behind one to the multi-scalar multiplication of G1 (0x0c).
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.errors import InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FQ_MODULUS, FR_MODULUS
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.vk import VerifyingKey

MOST_PUBLIC = 200
"""Beyond about so many public signals the contract passes the size that Ethereum allows (24,576 bytes)."""


def eip2537(be: bytes) -> bytes:
    """A *be* point as the precompiles take it: 128 or 256 bytes."""
    return b"".join(bytes(16) + be[i : i + point_bytes.FQ_BYTES] for i in range(0, len(be), point_bytes.FQ_BYTES))


def _negated(be: bytes) -> bytes:
    half = len(be) // 2
    y = point_bytes.coordinates(be[half:])
    return be[:half] + b"".join((-v % FQ_MODULUS).to_bytes(point_bytes.FQ_BYTES, "big") for v in y)


def proof_bytes(proof: Proof) -> bytes:
    """The 512 bytes that the contract takes: A, B, C."""
    return eip2537(proof.a) + eip2537(proof.b) + eip2537(proof.c)


def verifier_contract(key: VerifyingKey, unsafe: Sequence[str] = ()) -> str:
    """The source of a contract `Groth16Verifier` with `verifyProof(bytes proof, uint256[n] input)`. Raises InputError for a
    key with too many public signals; `unsafe` are warnings that it carries.
    """
    if key.n_public > MOST_PUBLIC:
        message = f"{key.n_public} public signals: a contract that holds a point for each is larger than Ethereum allows"
        raise InputError(f"{message} (at most {MOST_PUBLIC})")

    def word(be: bytes) -> str:
        return f'hex"{eip2537(be).hex()}"'

    constants = {
        "ALPHA": key.alpha_g1,
        "MINUS_BETA": _negated(key.beta_g2),
        "MINUS_GAMMA": _negated(key.gamma_g2),
        "MINUS_DELTA": _negated(key.delta_g2),
    }
    n = key.n_public
    argument = f", uint256[{n}] calldata input" if n else ""
    lines = [
        "// SPDX-License-Identifier: MIT",
        "pragma solidity ^0.8.24;",
        "",
        *(f"// WARNING: this key {reason}." for reason in unsafe),
        "/// Groth16 on BLS12-381 by the precompiles of EIP-2537.",
        "contract Groth16Verifier {",
        f"    uint256 internal constant R = 0x{FR_MODULUS:x};",
        *(f"    bytes internal constant {name} = {word(be)};" for name, be in constants.items()),
        "",
        "    /// proof: A, B, C in the encoding of EIP-2537, 512 bytes. False for anything but a valid proof.",
        f"    function verifyProof(bytes calldata proof{argument}) external view returns (bool) {{",
        "        if (proof.length != 512) return false;",
        *(["        for (uint256 i = 0; i < input.length; i++) if (input[i] >= R) return false;"] if n else []),
        f"        bytes memory terms = bytes.concat({word(key.ic[0])}, bytes32(uint256(1)));",
        *(f"        terms = bytes.concat(terms, {word(p)}, bytes32(input[{i}]));" for i, p in enumerate(key.ic[1:])),
        "        (bool ok, bytes memory x) = address(0x0c).staticcall(terms);",
        "        if (!ok || x.length != 128) return false;",
        "        bytes memory pairs = bytes.concat(proof[0:384], ALPHA, MINUS_BETA, x, MINUS_GAMMA, proof[384:], MINUS_DELTA);",
        "        (ok, x) = address(0x0f).staticcall(pairs);",
        "        return ok && x.length == 32 && uint256(bytes32(x)) == 1;",
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def calldata(proof: Proof, public: Sequence[int]) -> bytes:
    """The call of `verifyProof` by the contract's ABI: selector, then bytes behind n words."""
    signature = f"verifyProof(bytes{f',uint256[{len(public)}]' if public else ''})"
    data = proof_bytes(proof)
    words = [32 * (1 + len(public)), *public, len(data)]
    return keccak256(signature.encode())[:4] + b"".join(w.to_bytes(32, "big") for w in words) + data


_ROTATIONS = (0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14)
_MASK = (1 << 64) - 1


def _round_constants() -> list[int]:
    constants, register = [], 1
    for _ in range(24):
        value = 0
        for j in range(7):
            if register & 1:
                value |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(value)
    return constants


def keccak256(data: bytes) -> bytes:
    """Keccak-256 as Ethereum uses it: SHA3-256 but for its padding."""
    return sponge(data, padding=1)


def sponge(data: bytes, padding: int) -> bytes:
    """256 bits of the sponge over Keccak-f[1600] with a capacity of 512 bits; `padding` 6 is SHA3-256 [FIPS 202]."""
    rate = 136
    padded = data + bytes([padding]) + bytes(-(len(data) + 1) % rate)
    padded = padded[:-1] + bytes([padded[-1] | 0x80])
    lanes = [0] * 25
    for block in range(0, len(padded), rate):
        for k in range(rate // 8):
            lanes[k] ^= int.from_bytes(padded[block + 8 * k : block + 8 * k + 8], "little")
        for constant in _round_constants():
            columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
            mixed = [columns[x - 1] ^ _turned(columns[(x + 1) % 5], 1) for x in range(5)]
            lanes = [lane ^ mixed[k % 5] for k, lane in enumerate(lanes)]
            moved = [0] * 25
            for k, lane in enumerate(lanes):
                x, y = k % 5, k // 5
                moved[y + 5 * ((2 * x + 3 * y) % 5)] = _turned(lane, _ROTATIONS[k])
            lanes = [moved[k] ^ (~moved[k - k % 5 + (k + 1) % 5] & moved[k - k % 5 + (k + 2) % 5] & _MASK) for k in range(25)]
            lanes[0] ^= constant
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _turned(lane: int, bits: int) -> int:
    return ((lane << bits) | (lane >> (64 - bits))) & _MASK if bits else lane
