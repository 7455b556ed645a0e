"""Opening a key file of any kind as a ProvingKey."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuzk.errors import FormatError, InputError
from cuzk.groth16.constraints import ConstraintSystem
from cuzk.groth16.formats.files import Path, map_file
from cuzk.groth16.formats.layouts import FIXED
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.key import ProvingKey, Query
from cuzk.groth16.prover.products import Witness
from cuzk.groth16.template.system import System, TemplateSystem


def load_key(path: Path, r1cs: Path | None = None) -> ProvingKey:
    """A .zkey, .ckey, .params or arkworks key; by content, not by name. The latter two need the circuit's R1CS.

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
        for known, kind in ((b"cuzk-wit", "a witness of bits"), (b"cuzk-pce", "a .pce file"), (b"CUZKTPL1", "a template")):
            if magic == known:
                raise FormatError(path, f"this is {kind}, not a proving key", offset=0)
        return _from_unmarked(path, r1cs)
    if r1cs is not None:
        attach_r1cs(key, r1cs)
    return key


def read_any_vk(path: Path, with_ic: bool = True) -> VerifyingKey:
    """The verifying key in a file: one of its own (JSON or binary), or the public half of any proving key, which is read in
    constant time without its IC.
    """
    from cuzk.groth16.formats import arkworks
    from cuzk.groth16.formats.ckey import CkeyFile
    from cuzk.groth16.formats.layouts import key_layout
    from cuzk.groth16.formats.params import ParamsFile
    from cuzk.groth16.formats.vk import HEAD_BYTES, read_vk

    data = map_file(path)
    magic = data[:8].tobytes()
    if magic[:4] == b"zkey":
        return _from_zkey(path).verifying_key(with_ic)
    if magic == b"cuzk-key":
        return CkeyFile(path).key(check_wires=False).verifying_key(with_ic)
    if arkworks.key_layout(data) is not None:
        return arkworks.ArkworksKeyFile(path).verifying_key()
    if magic.lstrip()[:1] != b"{" and len(data) > HEAD_BYTES + 4 and key_layout(data) is None:
        n_ic = int.from_bytes(data[HEAD_BYTES : HEAD_BYTES + 4].tobytes(), "big")
        if len(data) > HEAD_BYTES + 4 + 96 * n_ic and n_ic:
            return ParamsFile(path).verifying_key(with_ic)
    return read_vk(path)


def read_r1cs_system(path: Path) -> System:
    """The system of an .r1cs file, a .pce file (ours or curio's) or a template, without merging."""
    from cuzk.groth16.formats.curio_pce import MAGIC as CURIO_MAGIC
    from cuzk.groth16.formats.curio_pce import CurioPceFile
    from cuzk.groth16.formats.matrices import PCE_MAGIC, read_pce
    from cuzk.groth16.formats.r1cs import R1csFile
    from cuzk.groth16.formats.template import MAGIC as TEMPLATE_MAGIC
    from cuzk.groth16.formats.template import load_template

    magic = map_file(path)[:8].tobytes()
    if magic == TEMPLATE_MAGIC:
        return TemplateSystem(load_template(path))
    if magic == PCE_MAGIC:
        return read_pce(path)
    if magic[:4] == CURIO_MAGIC:
        return CurioPceFile(path).constraints()
    return R1csFile(path).constraints()


def open_witness(path: Path) -> Callable[[ProvingKey], Witness]:
    """Index a .wtns or .cwit file: what gives its values for a key. Both steps raise FormatError; the second one InputError
    unless it is a witness of the key's circuit.
    """
    from cuzk.groth16.formats.cwit import MAGIC as CWIT_MAGIC
    from cuzk.groth16.formats.cwit import CwitFile
    from cuzk.groth16.formats.layouts import foreign_name
    from cuzk.groth16.formats.wtns import WtnsFile, json_witness

    if map_file(path)[:8].tobytes() == CWIT_MAGIC:
        bits = CwitFile(path)

        def witness(key: ProvingKey) -> Witness:
            if not isinstance(key.system, TemplateSystem):
                raise InputError(
                    f"{path}: a witness of bits needs the template of its circuit; the matrices of {key.path} are rows "
                    "(write the witness as .wtns, or make the key from the template)"
                )
            return bits.witness(key.system.template, key.path)

        return witness
    head = map_file(path)[:64].tobytes()
    if head.lstrip()[:1] == b"[":
        return json_witness(path)
    kind = "a JSON object: a circuit's input? (cuzk witness makes a .wtns of it)" if head.lstrip()[:1] == b"{" else None
    kind = kind or foreign_name(head)
    if kind is not None:
        raise FormatError(path, f"this is {kind}, not a witness", offset=0)
    file = WtnsFile(path)

    def values(key: ProvingKey) -> Witness:
        file.check_fits(key.n_wires, key.path)
        file.check_values()
        return file.values

    return values


def attach_r1cs(key: ProvingKey, r1cs: Path) -> None:
    """Give the key's system the matrix C of an R1CS, or have its template in place of rows. Raises InputError when it is the
    R1CS of another circuit.
    """
    other = read_r1cs_system(r1cs).with_input_rows()
    own = key.system
    pairs = (("wires", own.n_wires, other.n_wires), ("public signals", own.n_public, other.n_public))
    for what, ours, found in pairs:
        if ours != found:
            raise InputError(f"{r1cs}: is not the circuit of {key.path}: {found} {what}, the key has {ours}")
    if isinstance(own, TemplateSystem) and isinstance(other, TemplateSystem) and own.template.is_equal(other.template):
        return
    mine, theirs = own.expanded(), other.expanded()
    if first_difference(mine, theirs) is not None:
        mine, theirs = mine.merged(), theirs.merged()
        difference = first_difference(mine, theirs)
        if difference is not None:
            name, row = difference
            message = f"matrix {name} differs in row {row} (counted from 0)"
            raise InputError(f"{r1cs}: is not the circuit of {key.path}: {message}")
        other = theirs
    if not own.has_c or isinstance(other, TemplateSystem):
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
            keys = [(row[order], col[order], coef[order]) for (row, col, coef), order in zip(keys, orders, strict=True)]
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


def _from_unmarked(path: Path, r1cs: Path | None) -> ProvingKey:
    """A key without magic: arkworks's where all its counts fit, else .params; what is neither is named where it is known."""
    from cuzk import strict_json
    from cuzk.groth16.formats.arkworks import key_layout
    from cuzk.groth16.formats.files import read_small
    from cuzk.groth16.formats.layouts import foreign_json, foreign_name
    from cuzk.groth16.formats.layouts import key_layout as vk_layout

    data = map_file(path)
    if key_layout(data) is not None:
        return _from_arkworks(path, r1cs)
    head = data[:64].tobytes()
    kind = foreign_name(head)
    if kind is None and head.lstrip()[:1] in (b"{", b"["):
        kind = foreign_json(strict_json.loads(path, read_small(path))) or "a JSON document"
    if kind is None:
        found = vk_layout(data)
        kind = None if found is None or found[0].name == "bellman" else f"a verifying key ({found[0].name})"
    if kind is not None:
        raise FormatError(path, f"this is {kind}, not a proving key", offset=0)
    return _from_params(path, r1cs)


def _from_arkworks(path: Path, r1cs: Path | None) -> ProvingKey:
    from cuzk.groth16 import point_bytes
    from cuzk.groth16.formats.arkworks import ArkworksKeyFile

    file = ArkworksKeyFile(path)
    if r1cs is None:
        raise InputError(f"{path}: an arkworks key holds no matrices; give the circuit with --r1cs")
    system = read_r1cs_system(r1cs).with_input_rows()
    expected = {
        "inputs": (file.n_inputs, system.n_public + 1),
        "wires": (file.n_wires, system.n_wires),
        "rows of the domain": (file.domain, 1 << system.log_domain),
    }
    for what, (found, wanted) in expected.items():
        if found != wanted:
            raise InputError(f"{path}: not a key of {r1cs}: {found} {what}, the circuit has {wanted}")
    vk = file.verifying_key()
    fixed = {name: point_bytes.to_mont(getattr(vk, name)) for name in FIXED}
    mont = {name: file.mont(name) for name in file.lists}
    return ProvingKey(
        path=path,
        kind="arkworks",
        root=7,
        log_domain=system.log_domain,
        n_wires=system.n_wires,
        n_public=system.n_public,
        ic=np.concatenate([point_bytes.to_mont(p) for p in vk.ic]),
        a_query=Query(mont["a"], infinities=True),
        b_g1_query=Query(mont["b_g1"], infinities=True),
        b_g2_query=Query(mont["b_g2"], infinities=True),
        l_query=Query(mont["l"], first=file.n_inputs, infinities=True),
        l_c_free_query=None,
        h_odd=None,
        h_monomial=mont["h"],
        read_system=lambda: system,
        development=False,
        place=vk.place,
        alpha_g1=fixed["alpha_g1"],
        beta_g1=fixed["beta_g1"],
        beta_g2=fixed["beta_g2"],
        gamma_g2=fixed["gamma_g2"],
        delta_g1=fixed["delta_g1"],
        delta_g2=fixed["delta_g2"],
    )


def _from_params(path: Path, r1cs: Path | None) -> ProvingKey:
    from cuzk.groth16.formats.params import ParamsFile

    if r1cs is None:
        ParamsFile(path)  # what is no .params at all is told so
        raise InputError(f"{path}: a .params file holds no matrices; give the circuit with --r1cs")
    system = read_r1cs_system(r1cs).merged().with_input_rows()
    return params_key(path, str(r1cs), system)


def params_key(path: Path, name: str, system: System) -> ProvingKey:
    """A .params file as the key of a circuit, called `name`, with input rows and no wire twice in a row. Raises InputError
    when the counts are not the circuit's.
    """
    from cuzk.groth16 import point_bytes
    from cuzk.groth16.formats.params import ParamsFile

    file = ParamsFile(path)
    inputs = system.n_public + 1
    a_wires, b_wires = system.used_wires(0), system.used_wires(1)
    expected = {
        "inputs": (file.n_inputs, inputs),
        "wires": (file.n_wires, system.n_wires),
        "rows of the domain": (file.domain, 1 << system.log_domain),
        "points of a": (file.lists["a"].count, len(a_wires)),
        "points of b": (file.lists["b_g1"].count, len(b_wires)),
    }
    for what, (found, wanted) in expected.items():
        if found != wanted:
            kept = what.startswith("points") and found == system.n_wires
            hint = "; it keeps points at infinity, as snarkjs's export for ceremonies does: no prover uses such a file"
            message = f"not the parameters of {name}: {found} {what}, the circuit has {wanted}"
            raise InputError(f"{path}: {message}{hint if kept else ''}")
    vk = file.verifying_key()
    names = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")
    fixed = {name: point_bytes.to_mont(getattr(vk, name)) for name in names}
    mont = {name: part.mont(path) for name, part in file.lists.items()}
    return ProvingKey(
        path=path,
        kind="params",
        root=7,
        log_domain=system.log_domain,
        n_wires=system.n_wires,
        n_public=system.n_public,
        ic=np.concatenate([point_bytes.to_mont(p) for p in vk.ic]),
        a_query=Query(mont["a"], a_wires),
        b_g1_query=Query(mont["b_g1"], b_wires),
        b_g2_query=Query(mont["b_g2"], b_wires),
        l_query=Query(mont["l"], first=inputs),
        l_c_free_query=None,
        h_odd=None,
        h_monomial=mont["h"],
        read_system=lambda: system,
        development=file.development,
        place=vk.place,
        **fixed,
    )
