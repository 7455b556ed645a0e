"""The contents of a file, from its headers: kind, curve, counts, domain, and what it costs in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cuzk.errors import FormatError
from cuzk.groth16.formats.files import Path, map_file
from cuzk.groth16.formats.mapped import MappedFile

FR_BYTES, G1_BYTES, G2_BYTES = 32, 96, 192
KEYS = ("zkey", "ckey", "params", "arkworks key", "vk", "verification_key.json")
TRANSFORMS = {"bellman": 7, "odd-coset": 6, "c-free": 4}


def detect(path: Path) -> str:
    """The kind of a file by its content: r1cs, wtns, cwit, zkey, ptau, ckey, pce, params, vk, prf, proof, or a JSON kind."""
    data = map_file(path)
    magic = data[:8].tobytes()
    if magic[:4] in (b"r1cs", b"wtns", b"zkey", b"ptau"):
        return magic[:4].decode()
    if magic in (b"cuzk-key", b"cuzk-pce", b"cuzk-wit"):
        return {"key": "ckey", "pce": "pce", "wit": "cwit"}[magic[5:].decode()]
    if magic[:4] == b"PCE\x02":
        return "curio-pce"
    if magic.lstrip()[:1] in (b"{", b"["):
        return _detect_json(path)
    from cuzk.groth16.formats import arkworks, layouts
    from cuzk.groth16.formats.proof import bundle_layout

    if bundle_layout(data) is not None:
        return "prf"
    foreign = layouts.foreign_name(data[:64].tobytes())
    if foreign is not None:
        raise FormatError(path, f"this is {foreign}, not a file that cuzk reads", offset=0)
    if arkworks.key_layout(data) is not None:
        return "arkworks key"
    if layouts.key_layout(data) is not None:
        return "vk"
    text = layouts.of_hex(data.tobytes()) if len(data) < layouts.MOST_HEX_BYTES else None
    if layouts.proof_layout(path, text or data) is not None:
        return "proof"
    return _detect_unmarked(path, len(data))


def _detect_json(path: Path) -> str:
    from cuzk import strict_json
    from cuzk.groth16.formats import layouts
    from cuzk.groth16.formats.files import read_small

    document = strict_json.loads(path, read_small(path))
    if isinstance(document, list):
        return "public.json"
    if isinstance(document, dict) and "pi_a" in document:
        return "proof.json"
    if isinstance(document, dict) and "vk_alpha_1" in document and "ccoefs" not in document:
        return "verification_key.json"
    foreign = layouts.foreign_json(document)
    message = f"this is {foreign}" if foreign else "JSON, but neither a proof, public signals nor a verifying key"
    raise FormatError(path, message, offset=0)


def _detect_unmarked(path: Path, size: int) -> str:
    """bellman's files have no magic: their counts must agree with their size."""
    from cuzk.groth16.formats.vk import HEAD_BYTES

    if size >= HEAD_BYTES + 4:
        n_ic = int.from_bytes(map_file(path)[HEAD_BYTES : HEAD_BYTES + 4].tobytes(), "big")
        end = HEAD_BYTES + 4 + G1_BYTES * n_ic
        if n_ic and end == size:
            return "vk"
        if n_ic and end < size:
            return "params"
    raise FormatError(path, "not a file of a kind that cuzk knows (no magic, and the counts of no unmarked format fit)", offset=0)


def inspect(path: Path) -> dict[str, Any]:
    """Everything the headers tell, in constant time for any size. Raises FormatError."""
    kind = detect(path)
    readers: dict[str, Callable[[Path], dict[str, Any]]] = {
        "r1cs": _r1cs,
        "wtns": _wtns,
        "cwit": _cwit,
        "zkey": _zkey,
        "ckey": _ckey,
        "params": _params,
        "arkworks key": _arkworks,
        "ptau": _ptau,
        "pce": _pce,
        "curio-pce": _curio_pce,
        "vk": _vk,
        "verification_key.json": _vk,
        "proof": _proof,
        "proof.json": _proof,
        "public.json": _public,
        "prf": _prf,
    }
    found = {"file": os.fspath(path), "kind": kind, "size_bytes": len(map_file(path)), "curve": "bls12381"}
    found |= readers[kind](path)
    return {**found, "unsafe_key": _unsafe(path)} if kind in KEYS else found


def _unsafe(path: Path) -> list[str]:
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.safety import weaknesses

    return weaknesses(read_any_vk(path, with_ic=False))


def _circuit(
    n_wires: int, n_public: int, domain: int, n_constraints: int | None = None, nonzeros: dict[str, int] | None = None
) -> dict[str, Any]:
    circuit: dict[str, Any] = {"n_wires": n_wires, "n_public": n_public, "n_aux": n_wires - n_public - 1, "domain": domain}
    circuit["log_domain"] = domain.bit_length() - 1
    if n_constraints is not None:
        circuit["n_constraints"] = n_constraints
    if nonzeros is not None:
        circuit["nonzeros"] = nonzeros
    return circuit


def domain_for(n_constraints: int, n_public: int) -> int:
    """The least power of two ≥ constraints + public + 1, at least 2."""
    return 1 << max(1, (n_constraints + n_public).bit_length())


def proof_memory(domain: int, n_wires: int, rows: int | None = None) -> dict[str, Any]:
    """Bytes and transforms of one proof under each quotient: host vectors, and what lies on the device meanwhile."""
    rows = domain if rows is None else rows
    memory = {}
    for quotient, transforms in TRANSFORMS.items():
        vectors = 2 if quotient == "c-free" else 3
        memory[quotient] = {
            "transforms": transforms,
            "witness_ram_bytes": FR_BYTES * n_wires,
            "abc_ram_bytes": vectors * FR_BYTES * rows,
            "d_a_vram_bytes": FR_BYTES * domain,
            "d_bc_vram_bytes": (vectors - 1) * FR_BYTES * domain,
        }
    return memory


def residency(points_bytes: int, copied: bool) -> dict[str, Any]:
    """The places where a key's points can live, and what each costs. `copied`: the file's form must be converted on load."""
    return {
        "vram": {"ram_bytes": 0, "pinned_bytes": 0, "vram_bytes": points_bytes},
        "pinned": {"ram_bytes": points_bytes, "pinned_bytes": points_bytes, "vram_bytes": 0},
        "pageable": {"ram_bytes": points_bytes, "pinned_bytes": 0, "vram_bytes": 0},
        "mmap": None if copied else {"ram_bytes": 0, "pinned_bytes": 0, "vram_bytes": 0, "page_cache_bytes": points_bytes},
    }


def _matrices_bytes(nonzeros: int, rows: int, matrices: int) -> int:
    """CSR as cuzk holds it: u32 column and u16 or u32 coefficient id a term (the larger is counted), u64 a row."""
    return 8 * nonzeros + 8 * matrices * (rows + 1)


def _r1cs(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.r1cs import TERM_BYTES, R1csFile

    file = R1csFile(path)
    h = file.header
    nonzeros = (file.container.section(2).size - 12 * h.n_constraints) // TERM_BYTES
    domain = domain_for(h.n_constraints, h.n_public)
    circuit = _circuit(h.n_wires, h.n_public, domain, h.n_constraints, {"total": nonzeros})
    return {
        "circuit": circuit,
        "n_outputs": h.n_outputs,
        "n_public_inputs": h.n_public_inputs,
        "n_private_inputs": h.n_private_inputs,
        "n_labels": h.n_labels,
        "matrices_bytes": _matrices_bytes(nonzeros, h.n_constraints, 3),
        "proof": proof_memory(domain, h.n_wires, h.n_constraints + h.n_public + 1),
    }


def _wtns(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.wtns import WtnsFile

    file = WtnsFile(path)
    return {"n_values": file.count, "witness_ram_bytes": FR_BYTES * file.count}


def _cwit(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.cwit import CwitFile

    file = CwitFile(path)
    sizes = sum(file.mapped.nbytes(name) for name in file.mapped.names())
    return {"template": file.name, "copies": file.copies, "n_values": file.n_wires, "n_public": file.n_public,
            "witness_ram_bytes": sizes}  # fmt: skip


def _points(**counts: int) -> dict[str, Any]:
    """Counts of the point lists, and their bytes in all."""
    sizes = {name: count * (G2_BYTES if name == "b_g2" else G1_BYTES) for name, count in counts.items()}
    return {"counts": counts, "bytes": sum(sizes.values())}


def _zkey(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.zkey import ZkeyFile

    file = ZkeyFile(path)
    h = file.header
    points = _points(h=h.domain, l=len(file.l), a=h.n_wires, b_g1=h.n_wires, b_g2=h.n_wires)
    return {
        "root": 5,
        "h_form": "odd-lagrange",
        "quotients": ["odd-coset"],
        "circuit": _circuit(h.n_wires, h.n_public, h.domain, nonzeros={"a_and_b": len(file.coefficients)}),
        "points": points,
        "points_at_infinity": "kept",
        "residency": residency(points["bytes"], copied=False),
        "matrices_bytes": _matrices_bytes(len(file.coefficients), h.domain, 2),
        "proof": proof_memory(h.domain, h.n_wires),
        "contributions": file.contribution_names(),
        "development": file.development,
    }


def _ckey(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.ckey import CkeyFile

    file = CkeyFile(path)
    key, mapped = file.key(check_wires=False), file.mapped
    names = {"a_points": "a", "b_g1_points": "b_g1", "b_g2_points": "b_g2"}
    names |= {"l": "l", "l_c_free": "l_c_free", "h_odd": "h_odd", "h_monomial": "h_monomial"}
    sizes = {short: len(mapped.array(name, "u8", (-1, -1))) for name, short in names.items() if name in mapped}
    used = {
        "c-free": ("h_odd", "l_c_free", "a", "b_g1", "b_g2"),
        "odd-coset": ("h_odd", "l", "a", "b_g1", "b_g2"),
        "bellman": ("h_monomial", "l", "a", "b_g1", "b_g2"),
    }
    per_quotient = {q: _points(**{name: sizes[name] for name in used[q]}) for q in key.quotients}
    n_constraints = mapped.integer("n_constraints", 0, 2**32)
    matrices = _matrices(mapped)
    best = per_quotient[key.quotients[0]]
    return {
        "root": file.root,
        "h_form": [form for form, name in (("odd-lagrange", "h_odd"), ("monomial", "h_monomial")) if name in mapped],
        "quotients": list(key.quotients),
        "circuit": _circuit(file.n_wires, file.n_public, key.domain, n_constraints, matrices["nonzeros"]),
        "points": {"counts": sizes, "bytes": best["bytes"], "per_quotient": per_quotient},
        "points_at_infinity": "left out",
        "residency": residency(best["bytes"], copied=False),
        "matrices_form": matrices["form"],
        "matrices_bytes": matrices["bytes"],
        "proof": proof_memory(key.domain, file.n_wires, n_constraints + file.n_public + 1),
        "development": file.development,
        "origin": file.origin,
    }


def _matrices(mapped: MappedFile) -> dict[str, Any]:
    """Form, nonzeros and bytes of the matrices in a .ckey."""
    from cuzk.groth16.formats.template_arrays import template_counts

    names = [name for name in mapped.names() if name.endswith(("_row_ptr", "_col", "_coef"))]
    size = sum(mapped.nbytes(name) for name in names)
    counts = template_counts(mapped)
    if counts is None:
        nonzeros = {m: len(mapped.array(f"{m}_col", "u4", (-1,))) for m in "abc" if f"{m}_col" in mapped}
        return {"form": "rows", "nonzeros": nonzeros, "bytes": size}
    copies, nonzeros = counts
    return {"form": f"a template: a prefix and {copies} copies of one body", "nonzeros": nonzeros, "bytes": size}


def _pce(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.matrices import PCE_MAGIC

    mapped = MappedFile(path, PCE_MAGIC, "matrix file (.pce)")
    n_public = mapped.integer("n_public", 0, 2**32 - 2)
    n_wires = mapped.integer("n_wires", n_public + 1, 2**32)
    n_constraints = mapped.integer("n_constraints", 0, 2**32)
    nonzeros = {m: len(mapped.array(f"{m}_col", "u4", (-1,))) for m in "abc" if f"{m}_col" in mapped}
    domain = domain_for(n_constraints, n_public)
    return {
        "circuit": _circuit(n_wires, n_public, domain, n_constraints, nonzeros),
        "coefficients": len(mapped.array("coef_table", "u8", (-1, 4))),
        "matrices_bytes": len(map_file(path)),
        "proof": proof_memory(domain, n_wires, n_constraints + n_public + 1),
    }


def _curio_pce(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.curio_pce import CurioPceFile

    file = CurioPceFile(path)
    domain = domain_for(file.n_constraints, file.n_inputs - 1)
    return {
        "circuit": _circuit(file.n_wires, file.n_inputs - 1, domain, file.n_constraints, file.nonzeros),
        "matrices_bytes": len(map_file(path)),
        "proof": proof_memory(domain, file.n_wires, file.n_constraints),
    }


def _params(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.params import ParamsFile

    file = ParamsFile(path)
    points = _points(**{name: part.count for name, part in file.lists.items()})
    return {
        "root": 7,
        "h_form": "monomial",
        "quotients": ["bellman"],
        "circuit": _circuit(file.n_wires, file.n_inputs - 1, file.domain),
        "points": points,
        "points_at_infinity": "left out",
        "residency": residency(points["bytes"], copied=True),
        "matrices_bytes": None,
        "proof": proof_memory(file.domain, file.n_wires),
        "tail_bytes": file.tail_bytes,
        "development": file.development,
    }


def _arkworks(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.arkworks import ArkworksKeyFile

    file = ArkworksKeyFile(path)
    points = _points(**{name: len(part.raw) for name, part in file.lists.items()})
    return {
        "layout": file.layout.name,
        "root": 7,
        "h_form": "monomial",
        "quotients": ["bellman"],
        "circuit": _circuit(file.n_wires, file.n_inputs - 1, file.domain),
        "points": points,
        "points_at_infinity": "kept",
        "residency": residency(points["bytes"], copied=True),
        "matrices_bytes": None,
        "proof": proof_memory(file.domain, file.n_wires),
    }


def _ptau(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.ptau import PtauFile

    file = PtauFile(path)
    most = (1 << file.power) if file.prepared else 0
    return {
        "power": file.power,
        "ceremony_power": file.ceremony_power,
        "prepared_for_phase2": file.prepared,
        "largest_domain": most or None,
    }


def _vk(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.vk import read_vk

    key = read_vk(path)
    return {"n_public": key.n_public, "ic_points": len(key.ic), "development": key.development}


def _proof(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.proof import read_proofs

    return {"proofs": len(read_proofs(path))}


def _public(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.proof import read_public

    lists = read_public(path)
    return {"proofs": len(lists), "n_public": len(lists[0])}


def _prf(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.proof import bundle_layout

    layout = bundle_layout(map_file(path))
    assert layout is not None
    return {"layout": layout[0], "proofs": layout[1], "n_public": layout[2]}
