"""Keys for a circuit that is emitted here: their matrices come from its template."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from cuzk.circuits.sizes import VK_HEAD_BYTES, CircuitSizes
from cuzk.errors import InputError
from cuzk.groth16.formats.files import map_file, read_small
from cuzk.groth16.formats.params import ParamsFile
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.load import load_key, params_key
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.template.model import Template
from cuzk.groth16.template.system import TemplateSystem
from cuzk.porep.parameters import find_converted, require_digest


def find_params(folder: str | PathLike[str], template: Template, what: str) -> str:
    """The .params in a folder of Filecoin's key files that has the counts of the circuit `what`. A .vk of the same name
    must be the head of it. Raises InputError that says what is there."""
    candidates = sorted(path for path in Path(folder).glob("*.params") if path.is_file())
    if not candidates:
        raise InputError(f"{folder}: no .params file there")
    sizes = CircuitSizes(template)
    start = sizes.vk_bytes
    fits = []
    for path in candidates:
        with open(path, "rb") as file:
            head = file.read(start + 4)
        counts = (int.from_bytes(head[VK_HEAD_BYTES - 4 : VK_HEAD_BYTES], "big"), int.from_bytes(head[start:], "big"))
        if path.stat().st_size >= sizes.params_bytes and counts == (template.n_inputs, sizes.queries["h"]):
            fits.append((path, head[:start]))
    if not fits:
        names = ", ".join(p.name for p in candidates)
        raise InputError(f"{folder}: none of {names} is for {what} ({sizes.params_bytes:,} bytes)")
    if len(fits) > 1:
        raise InputError(f"{folder}: two or more keys fit: {', '.join(p.name for p, _ in fits)}; name one of them")
    path, head = fits[0]
    vk = path.with_suffix(".vk")
    if vk.exists() and read_small(vk) != head:
        raise InputError(f"{vk}: not the verifying key of {path.name}")
    return str(path)


def find_key(folder: str | PathLike[str], template: Template, what: str, published: str | None = None) -> str:
    """The .params of a circuit in a folder: the one with its published name, else the one whose counts fit. Raises InputError."""
    named = Path(folder) / published if published else None
    return str(named) if named is not None and named.is_file() else find_params(folder, template, what)


def load_circuit_key(
    path: str | PathLike[str], template: Template, what: str, published: str | None = None, progress: Progress = silent
) -> ProvingKey:
    """A key for a circuit, called `what`: .params (the matrices come from the circuit), a folder with such files, or .ckey,
    .zkey that hold their own. A converted key beside its .params is taken in its place; a published file must have its digest.
    `published`: the published name of the key, looked for first in a folder. Raises InputError for the key of another circuit,
    FormatError for another digest."""
    if Path(path).is_dir():
        path = find_key(path, template, what, published)
    magic = map_file(path)[:8].tobytes()
    if magic != b"cuzk-key" and magic[:4] not in (b"zkey", b"r1cs", b"wtns", b"ptau"):
        converted = find_converted(path)
        if converted is not None:
            return load_circuit_key(converted, template, what)
        require_digest(path, progress)
        found = ParamsFile(path)  # what is no key at all is said before anything costly
        if found.n_inputs != template.n_inputs:
            raise InputError(
                f"{path}: not the parameters of {what}: {found.n_inputs} inputs, the circuit has {template.n_inputs}"
            )
        return params_key(path, what, TemplateSystem(template))
    key = load_key(path)
    expected = (template.n_inputs + template.n_aux, template.n_inputs - 1, template.log2_domain)
    if (key.n_wires, key.n_public, key.log_domain) != expected:
        raise InputError(
            f"{path}: not a key of {what}: {key.n_wires:,} wires, {key.n_public} public, "
            f"domain 2^{key.log_domain}; it needs {expected[0]:,}, {expected[1]}, 2^{expected[2]}"
        )
    key.read_system = lambda: TemplateSystem(template)
    return key
