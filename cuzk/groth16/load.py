"""Opening a key file of any kind as a ProvingKey."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuzk.errors import FormatError, InputError
from cuzk.groth16.constraints import ConstraintSystem
from cuzk.groth16.formats.files import Path, map_file
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.key import ProvingKey, Query


def load_key(path: Path, r1cs: Path | None = None) -> ProvingKey:
    """A .zkey, .ckey or .params as a key; by content, not by name. `.params` need the circuit's R1CS.

    With an R1CS the key's system also has C, so that an unsatisfied constraint can be named. Raises FormatError,
    InputError.
    """
    magic = map_file(path)[:8].tobytes()
    if magic[:4] == b"zkey":
        key = _from_zkey(path)
    elif magic == b"cuzk-key":
        from cuzk.groth16.formats.ckey import CkeyFile

        key = CkeyFile(path).key()
    else:
        for known in (b"r1cs", b"wtns", b"ptau"):
            if magic[:4] == known:
                raise FormatError(path, f"this is a .{known.decode()} file, not a proving key", offset=0)
        return _from_params(path, r1cs)
    if r1cs is not None:
        attach_r1cs(key, r1cs)
    return key


def read_any_vk(path: Path) -> VerifyingKey:
    """The verifying key in a file: one of its own (JSON or binary), or the public half of any proving key."""
    from cuzk.groth16.formats.ckey import CkeyFile
    from cuzk.groth16.formats.params import ParamsFile
    from cuzk.groth16.formats.vk import HEAD_BYTES, read_vk

    data = map_file(path)
    magic = data[:8].tobytes()
    if magic[:4] == b"zkey":
        return _from_zkey(path).verifying_key()
    if magic == b"cuzk-key":
        return CkeyFile(path).key(check_wires=False).verifying_key()
    if magic.lstrip()[:1] != b"{" and len(data) > HEAD_BYTES + 4:
        n_ic = int.from_bytes(data[HEAD_BYTES : HEAD_BYTES + 4].tobytes(), "big")
        if len(data) > HEAD_BYTES + 4 + 96 * n_ic and n_ic:
            return ParamsFile(path).verifying_key()
    return read_vk(path)


def read_r1cs_system(path: Path) -> ConstraintSystem:
    """The system of an .r1cs or a .pce file (ours or curio's), without merging."""
    from cuzk.groth16.formats.curio_pce import MAGIC as CURIO_MAGIC
    from cuzk.groth16.formats.curio_pce import CurioPceFile
    from cuzk.groth16.formats.matrices import PCE_MAGIC, read_pce
    from cuzk.groth16.formats.r1cs import R1csFile

    magic = map_file(path)[:8].tobytes()
    if magic == PCE_MAGIC:
        return read_pce(path)
    if magic[:4] == CURIO_MAGIC:
        return CurioPceFile(path).constraints()
    return R1csFile(path).constraints()


def attach_r1cs(key: ProvingKey, r1cs: Path) -> None:
    """Give the key's system the matrix C of an R1CS. Raises InputError when it is the R1CS of another circuit."""
    other = read_r1cs_system(r1cs).with_input_rows()
    own = key.system
    pairs = (("wires", own.n_wires, other.n_wires), ("public signals", own.n_public, other.n_public))
    for what, mine, theirs in pairs:
        if mine != theirs:
            raise InputError(f"{r1cs}: is not the circuit of {key.path}: {theirs} {what}, the key has {mine}")
    if first_difference(own, other) is not None:
        other, own = other.merged(), own.merged()
        difference = first_difference(own, other)
        if difference is not None:
            name, row = difference
            message = f"matrix {name} differs in row {row} (counted from 0)"
            raise InputError(f"{r1cs}: is not the circuit of {key.path}: {message}")
    key.__dict__["system"] = other


def first_difference(own: ConstraintSystem, other: ConstraintSystem) -> tuple[str, int] | None:
    """The matrix ("A" or "B") and row where two systems first differ, or None; the order within a row does not matter."""
    for name, mine, theirs in (("A", own.a, other.a), ("B", own.b, other.b)):
        # Rows past the end of one are empty there.
        rows = max(mine.rows, theirs.rows)
        counts = [np.pad(np.diff(m.row_ptr).astype(np.int64), (0, rows - m.rows)) for m in (mine, theirs)]
        unequal = np.flatnonzero(counts[0] != counts[1])
        alike = int(unequal[0]) if len(unequal) else rows
        terms = int(counts[0][:alike].sum())
        keys = [(m.row_of_term()[:terms], m.col[:terms], m.coef_id[:terms]) for m in (mine, theirs)]
        if not np.array_equal(keys[0][1], keys[1][1]):
            orders = [np.lexsort((col, row)) for row, col, _ in keys]
            keys = [tuple(part[order] for part in key) for key, order in zip(keys, orders, strict=True)]
        tables = (own.table_mont, other.table_mont)
        wrong = keys[0][1] != keys[1][1]
        wrong |= (tables[0][keys[0][2]] != tables[1][keys[1][2]]).any(axis=1)
        if wrong.any():
            return name, int(keys[0][0][int(np.argmax(wrong))])
        if alike < rows:
            return name, alike
    return None


def _from_zkey(path: Path) -> ProvingKey:
    from cuzk.groth16.formats.zkey import ZkeyFile

    file = ZkeyFile(path)
    header = file.header
    return ProvingKey(
        path=path,
        kind="zkey",
        root=5,
        log_domain=header.domain.bit_length() - 1,
        n_wires=header.n_wires,
        n_public=header.n_public,
        alpha_g1=header.alpha_g1,
        beta_g1=header.beta_g1,
        beta_g2=header.beta_g2,
        gamma_g2=header.gamma_g2,
        delta_g1=header.delta_g1,
        delta_g2=header.delta_g2,
        ic=file.ic,
        a_query=Query(file.a, infinities=True),
        b_g1_query=Query(file.b_g1, infinities=True),
        b_g2_query=Query(file.b_g2, infinities=True),
        l_query=Query(file.l, first=header.n_public + 1, infinities=True),
        l_c_free_query=None,
        h_odd=file.h,
        h_monomial=None,
        read_system=file.constraints,
        development=file.development,
        place=file.place,
    )


def _from_params(path: Path, r1cs: Path | None) -> ProvingKey:
    from cuzk.groth16.formats.params import ParamsFile

    if r1cs is None:
        ParamsFile(path)  # what is no .params at all is told so
        raise InputError(f"{path}: a .params file holds no matrices; give the circuit with --r1cs")
    system = read_r1cs_system(r1cs).merged().with_input_rows()
    a_wires, b_wires = densities(system)
    return params_key(
        path,
        ParamsCircuit(str(r1cs), system.n_wires, system.n_public, system.log_domain, a_wires, b_wires, lambda: system),
    )


@dataclass(frozen=True)
class ParamsCircuit:
    """What a .params file does not say of its circuit.

    `read_system` gives the matrices, with input rows and no repeated wires in a row, when they are asked for.
    """

    name: str
    n_wires: int
    n_public: int
    log_domain: int
    a_wires: np.ndarray
    b_wires: np.ndarray
    """As `densities` gives them."""
    read_system: Callable[[], ConstraintSystem]


def params_key(path: Path, circuit: ParamsCircuit) -> ProvingKey:
    """A .params file as the key of a circuit. Raises InputError when the counts are not the circuit's."""
    from cuzk.groth16 import points
    from cuzk.groth16.formats.params import ParamsFile

    file = ParamsFile(path)
    inputs = circuit.n_public + 1
    expected = {
        "inputs": (file.n_inputs, inputs),
        "wires": (file.n_wires, circuit.n_wires),
        "rows of the domain": (file.domain, 1 << circuit.log_domain),
        "points of a": (file.lists["a"].count, len(circuit.a_wires)),
        "points of b": (file.lists["b_g1"].count, len(circuit.b_wires)),
    }
    for what, (found, wanted) in expected.items():
        if found != wanted:
            kept = what.startswith("points") and found == circuit.n_wires
            hint = "; it keeps points at infinity, as snarkjs's export for ceremonies does: no prover uses such a file"
            message = f"not the parameters of {circuit.name}: {found} {what}, the circuit has {wanted}"
            raise InputError(f"{path}: {message}{hint if kept else ''}")
    vk = file.verifying_key()
    names = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")
    fixed = {name: points.to_mont(getattr(vk, name)) for name in names}
    mont = {name: part.mont(path) for name, part in file.lists.items()}
    return ProvingKey(
        path=path,
        kind="params",
        root=7,
        log_domain=circuit.log_domain,
        n_wires=circuit.n_wires,
        n_public=circuit.n_public,
        ic=np.concatenate([points.to_mont(p) for p in vk.ic]),
        a_query=Query(mont["a"], circuit.a_wires),
        b_g1_query=Query(mont["b_g1"], circuit.b_wires),
        b_g2_query=Query(mont["b_g2"], circuit.b_wires),
        l_query=Query(mont["l"], first=inputs),
        l_c_free_query=None,
        h_odd=None,
        h_monomial=mont["h"],
        read_system=circuit.read_system,
        development=file.development,
        place=vk.place,
        **fixed,
    )


def densities(system: ConstraintSystem) -> tuple[np.ndarray, np.ndarray]:
    """The wires (u32, rising) that bellman's lists a and b hold: those in some row of A (with input rows), of B."""
    a_used = system.with_input_rows().a.used_columns(system.n_wires)
    b_used = system.b.used_columns(system.n_wires)
    return np.flatnonzero(a_used).astype(np.uint32), np.flatnonzero(b_used).astype(np.uint32)
