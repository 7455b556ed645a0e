"""Setup and proofs of a sector's circuit with the project's own prover."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from cuzk.circuits.porep.shape import Shape
from cuzk.errors import InputError
from cuzk.groth16.formats.files import map_file, read_small
from cuzk.groth16.formats.params import ParamsFile
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.load import load_key, params_key
from cuzk.groth16.progress import Progress as Report
from cuzk.groth16.progress import silent
from cuzk.groth16.prover.run import Proved, prove
from cuzk.groth16.template.system import TemplateSystem
from cuzk.groth16.verify import Verifier
from cuzk.porep.opening import sector_challenges
from cuzk.porep.parameters import find_converted, find_published, require_digest
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.registered import partitions_of, registered_id
from cuzk.porep.sealing import Progress, Sealed
from cuzk.porep.sizes import VK_HEAD_BYTES, PorepSizes


def require_small(shape: Shape) -> None:
    if shape.layers > 2:
        raise InputError(
            f"{shape.name}: too large to be sealed here, or its 130 million rows expanded; this is for 2KiB, 8MiB and 512MiB "
            "sectors (a synthetic witness and a key of the template are made at any size)"
        )


def find_params(folder: str | PathLike[str], maker: PartitionMaker) -> str:
    """The .params in a folder of Filecoin's key files that has the counts of the sector's circuit. A .vk of the same name
    must be the head of it. Raises InputError that says what is there."""
    candidates = sorted(path for path in Path(folder).glob("*.params") if path.is_file())
    if not candidates:
        raise InputError(f"{folder}: no .params file there")
    sizes = PorepSizes(maker.shape, maker.template, 0.0, 0)
    start = sizes.vk_bytes
    fits = []
    for path in candidates:
        with open(path, "rb") as file:
            head = file.read(start + 4)
        counts = (int.from_bytes(head[VK_HEAD_BYTES - 4 : VK_HEAD_BYTES], "big"), int.from_bytes(head[start:], "big"))
        if path.stat().st_size >= sizes.params_bytes and counts == (maker.template.n_inputs, sizes.queries["h"]):
            fits.append((path, head[:start]))
    if not fits:
        names = ", ".join(p.name for p in candidates)
        raise InputError(f"{folder}: none of {names} is for the {maker.shape.name} PoRep circuit ({sizes.params_bytes:,} bytes)")
    if len(fits) > 1:
        raise InputError(f"{folder}: two or more keys fit: {', '.join(p.name for p, _ in fits)}; name one of them")
    path, head = fits[0]
    vk = path.with_suffix(".vk")
    if vk.exists() and read_small(vk) != head:
        raise InputError(f"{vk}: not the verifying key of {path.name}")
    return str(path)


def load_porep_key(path: str | PathLike[str], maker: PartitionMaker, progress: Report = silent) -> ProvingKey:
    """A key for a sector's circuit: .params (the matrices come from the circuit), a folder with such files, or .ckey,
    .zkey that hold their own. A converted key beside its .params is taken in its place; a published file must have its digest.
    Raises InputError for the key of another circuit, FormatError for another digest."""
    if Path(path).is_dir():
        path = find_published(path, maker) or find_params(path, maker)
    magic = map_file(path)[:8].tobytes()
    template = maker.template
    if magic != b"cuzk-key" and magic[:4] not in (b"zkey", b"r1cs", b"wtns", b"ptau"):
        converted = find_converted(path)
        if converted is not None:
            return load_porep_key(converted, maker)
        require_digest(path, progress)
        found = ParamsFile(path)  # what is no key at all is said before the matrices are expanded
        if found.n_inputs != template.n_inputs:
            raise InputError(
                f"{path}: not the parameters of the {maker.shape.name} PoRep circuit: {found.n_inputs} inputs, the "
                f"circuit has {template.n_inputs}"
            )
        return params_key(path, f"the {maker.shape.name} PoRep circuit", TemplateSystem(template))
    key = load_key(path)
    expected = (template.n_inputs + template.n_aux, template.n_inputs - 1, template.log2_domain)
    if (key.n_wires, key.n_public, key.log_domain) != expected:
        raise InputError(
            f"{path}: not a key of the {maker.shape.name} PoRep circuit: {key.n_wires:,} wires, {key.n_public} public, "
            f"domain 2^{key.log_domain}; it needs {expected[0]:,}, {expected[1]}, 2^{expected[2]}"
        )
    key.read_system = lambda: TemplateSystem(template)
    return key


def prove_sector(
    sealed: Sealed, key: ProvingKey, maker: PartitionMaker, seed: bytes, threads: int | None = None,
    quotient: str | None = None, progress: Progress = lambda _: None,
) -> list[Proved]:  # fmt: skip
    """One verified proof for each partition. Raises ProofInvalid that names the gadget where the sector does not satisfy
    the circuit, before anything costly."""
    verifier = Verifier(key.verifying_key(), f"the verifying key in {key.path}")
    made = []
    for partition in range(partitions_of(maker.shape, registered_id(sealed.ids.porep_id).drawing)):
        progress(f"witness of partition {partition}")
        nodes = sector_challenges(sealed, seed, partition)
        witness = maker.witness(sealed, nodes)
        maker.require_satisfied(witness)
        progress(f"proof of partition {partition}")
        made.append(prove(key, witness, quotient, None, threads, verifier))
    return made
