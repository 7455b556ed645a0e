"""Circuits: products of a template with a witness of bits, Poseidon hashes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._library import call, thread_count
from .arrays import U64Array, address, check, check_writable


def template_matvec(
    row_ptr: NDArray[np.uint32], col: NDArray[np.int32], coef_id: NDArray[np.uint16], table_mont: U64Array,
    powers: NDArray[np.int16], small_mont: U64Array, bits: U64Array, field_mask: U64Array,
    field_rank: NDArray[np.uint32], fields_mont: U64Array, out: U64Array, threads: int | None = None,
) -> None:  # fmt: skip
    """out[i] = Σ coefficient · value over row i; mont. Columns below len(small) have their value there; column
    len(small) + a is fields_mont[rank of a] where bit a of `field_mask` is set, else bit a of `bits`. Column 0 is the
    constant one. `powers`: per coefficient j + 1 where it is 2^j, -(j + 1) where it is -2^j, else 0.

    The columns and coefficient numbers must be in range: a template is checked when it is built or loaded.
    """
    rows = check(row_ptr, "row_ptr", None, np.uint32) - 1
    nonzeros = check(col, "col", None, np.int32)
    check(coef_id, "coef_id", None, np.uint16, nonzeros)
    coefficients = check(table_mont, "table_mont", 4)
    check(powers, "powers", None, np.int16, coefficients)
    small = check(small_mont, "small_mont", 4)
    words = check(bits, "bits", None)
    check(field_mask, "field_mask", None, rows=words)
    check(field_rank, "field_rank", None, np.uint32, words)
    check(fields_mont, "fields_mont", 4)
    check(out, "out", 4, rows=rows)
    check_writable(out, "out")
    call("template_matvec", address(out), address(row_ptr), rows, address(col), address(coef_id), address(table_mont),
         address(powers), small, address(small_mont), address(bits), address(field_mask), address(field_rank),
         address(fields_mont), thread_count(threads))  # fmt: skip


def first_unsatisfied(a_mont: U64Array, b_mont: U64Array, c_mont: U64Array, threads: int | None = None) -> int:
    """The first index with a · b != c, or -1."""
    n = check(a_mont, "a_mont", 4)
    check(b_mont, "b_mont", 4, rows=n)
    check(c_mont, "c_mont", 4, rows=n)
    return call("first_unsatisfied", address(a_mont), address(b_mont), address(c_mont), n, thread_count(threads))


def poseidon(
    elements_mont: U64Array, arity: int, partial_rounds: int, tables: U64Array, threads: int | None = None,
    trace: U64Array | None = None, first: int = 0, traced: int = 0,
) -> U64Array:  # fmt: skip
    """(n, 4) hashes of (n · arity, 4) elements; mont. `tables`: the domain tag, then the constants of the optimised form (keys,
    MDS, pre-sparse, then column and row of each sparse matrix). `trace` (n, 4 k): the `traced` values of each hash's circuit
    go into its row, from element `first` on; mont."""
    width = arity + 1
    if not 2 <= width <= 12:
        raise ValueError(f"arity must be from 1 to 11, not {arity}")
    n = check(elements_mont, "elements_mont", 4) // arity
    check(elements_mont, "elements_mont", 4, rows=n * arity)
    check(tables, "tables", 4, rows=1 + 8 * width + partial_rounds + 2 * width * width + partial_rounds * (2 * width - 1))
    out = np.empty((n, 4), np.uint64)
    at = step = 0
    if trace is not None:
        check(trace, "trace", trace.shape[-1], rows=n)
        check_writable(trace, "trace")
        step = trace.shape[1] // 4
        if not 0 <= first <= first + traced <= step:
            raise ValueError(f"trace: no room for {traced} values from {first} on in rows of {step}")
        at = address(trace) + 32 * first
    call("poseidon", address(out), address(elements_mont), n, arity, partial_rounds, address(tables), at, step, traced,
         thread_count(threads))  # fmt: skip
    return out


def sha256_trace(
    words: NDArray[np.uint32], variable: NDArray[np.uint32], negated: NDArray[np.uint32], round_constants: NDArray[np.uint32],
    bits: U64Array, first: int, count: int,
) -> NDArray[np.uint32]:  # fmt: skip
    """(n, 8) next states of (n, 24) words of state and block. The `count` variables of each block's circuit go into its row of
    `bits` (n, k), from bit `first` on, which must be zero there. `variable`, `negated` (24,): masks of the words' bits that
    are variables of the circuit, and of those of them that are negated."""
    n = check(words, "words", 24, np.uint32)
    for name, mask in (("variable", variable), ("negated", negated)):
        check(mask, name, None, np.uint32, 24)
    check(round_constants, "round_constants", None, np.uint32, 64)
    check(bits, "bits", bits.shape[-1], rows=n)
    check_writable(bits, "bits")
    row = bits.shape[1]
    if not 0 <= first <= first + count <= 64 * row:
        raise ValueError(f"bits: no room for {count} bits from {first} on in rows of {row} words")
    out = np.empty((n, 8), np.uint32)
    call("sha256_trace", address(out), address(words), n, address(variable), address(negated), address(round_constants),
         address(bits), row, first, count)  # fmt: skip
    return out


def sha256_compress(
    states: NDArray[np.uint32], blocks: NDArray[np.uint32], round_constants: NDArray[np.uint32], threads: int | None = None
) -> NDArray[np.uint32]:
    """(n, 8) next states of (n, 8) states and (n, 16) blocks, words as numbers; either may be one row for all."""
    n_states, n_blocks = check(states, "states", 8, np.uint32), check(blocks, "blocks", 16, np.uint32)
    n = max(n_states, n_blocks) if min(n_states, n_blocks) else 0
    if n_states not in (1, n) or n_blocks not in (1, n):
        raise ValueError(f"states and blocks: {n_states} and {n_blocks} rows do not go together")
    check(round_constants, "round_constants", None, np.uint32, 64)
    out = np.empty((n, 8), np.uint32)
    call("sha256_compress", address(out), address(states), int(n_states == n), address(blocks), int(n_blocks == n), n,
         address(round_constants), thread_count(threads))  # fmt: skip
    return out
