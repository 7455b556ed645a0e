"""Filecoin's parameter files: which file is whose, are its bytes the published ones, and the form in which it is used.

A folder of such files is named, or found as Filecoin's own programs find it. The BLAKE2b digest of a file is computed once
and remembered by path, size and time of change. A converted key (.ckey) beside its .params is used in its place: it is
mapped, so that a second process shares its pages.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from cuzk import strict_json
from cuzk.errors import CuzkError, FormatError, InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.convert import optimise
from cuzk.groth16.formats.ckey import CkeyArrays, CkeyFile, write_ckey
from cuzk.groth16.formats.files import read_small
from cuzk.groth16.formats.mapped import MappedArray
from cuzk.groth16.formats.params import ParamsFile, PointList
from cuzk.groth16.load import params_key
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.template.system import TemplateSystem
from cuzk.outputs import write_text
from cuzk.porep import published
from cuzk.porep.partition import PartitionMaker

VARIABLE = "FIL_PROOFS_PARAMETER_CACHE"
DEFAULT_FOLDER = "/var/tmp/filecoin-proof-parameters/"
_PREFIX = "v28-stacked-proof-of-replication-merkletree-poseidon_hasher"
_BLOCK = 1 << 24
_PIECE = 1 << 18


@dataclass(frozen=True)
class Published:
    """The published key of a sector size. Digests: the first 32 hexadecimal digits of BLAKE2b-512 of the file."""

    circuit: str
    """Circuit id, such as `porep-32g`."""
    trees: str
    identifier: str
    params_digest: str
    vk_digest: str

    def name(self, suffix: str = ".params") -> str:
        """The file's name."""
        return f"{_PREFIX}-{self.trees}-sha256_hasher-{self.identifier}{suffix}"


PUBLISHED = {
    "2KiB": Published("porep-2k", "8-0-0", "032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f",
                      "434fb1338ecfaf0f59256f30dde4968f", "dc1ade9929ade1708238f155343044ac"),
    "8MiB": Published("porep-8m", "8-0-0", "ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb",
                      "09e612e4eeb7a0eb95679a88404f960c", "b687beb9adbd9dabe265a7e3620813e4"),
    "512MiB": Published("porep-512m", "8-0-0", "6babf46ce344ae495d558e7770a585b2382d54f225af8ed0397b8be7c3fcd472",
                        "6c77597eb91ab936c1cef4cf19eba1b3", "065179da19fbe515507267677f02823e"),
    "32GiB": Published("porep-32g", "8-8-0", "82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820",
                       "6a388072a518cf46ebd661f5cc46900a", "0c7b4aac1c40fdb7eb82bc355b41addf"),
    "64GiB": Published("porep-64g", "8-8-2", "96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2",
                       "1801f8a6e1b00bceb00cc27314bb5ce3", "a89884252c04c298d0b3c81bfd884164"),
}  # fmt: skip
"""By the name of the sector size (SERVICE.md 4.4)."""


def parameter_folder(given: str | None = None) -> tuple[Path, str]:
    """The folder of parameter files, and what named it: the argument, the environment, or Filecoin's default."""
    if given:
        return Path(given), "as given"
    if named := os.environ.get(VARIABLE):
        return Path(named), VARIABLE
    return Path(DEFAULT_FOLDER), "the default of Filecoin's programs"


def cache_folder() -> Path:
    """The folder for what is remembered: digests, and keys whose own folder cannot be written."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuzk"


# ---------------------------------------------------------------------- digests


def file_digest(path: str | PathLike[str], progress: Progress = silent) -> str:
    """The first 32 hexadecimal digits of BLAKE2b-512 of a file; computed once for each state of it. Raises InputError."""
    place = os.path.realpath(path)
    try:
        status = os.stat(place)
        state = [status.st_size, status.st_mtime_ns, status.st_ino]
        remembered = _remembered()
        known = remembered.get(place)
        if isinstance(known, list) and known[:3] == state and isinstance(known[3], str):
            return str(known[3])
        hasher = hashlib.blake2b()
        done = 0
        with open(place, "rb") as file:
            while block := file.read(_BLOCK):
                hasher.update(block)
                done += len(block)
                progress(f"digest of {os.path.basename(place)}", done, status.st_size)
    except OSError as error:
        raise InputError(f"{fspath(path)}: {error.strerror or error}") from error
    digest = hasher.hexdigest()[:32]
    _remember(place, [*state, digest])
    return digest


def _remembered() -> dict[str, Any]:
    path = cache_folder() / "digests.json"
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(place: str, entry: list[Any]) -> None:
    """A digest that cannot be remembered is computed again."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        write_text(cache_folder() / "digests.json", json.dumps({**_remembered(), place: entry}, indent=1) + "\n")
    except (OSError, CuzkError):
        return


def expected_digest(path: str | PathLike[str]) -> tuple[str, str] | None:
    """The digest that a file must have, and who says so: `parameters.json` in its folder, or the published list by its name;
    None for a file that neither knows, and for a development key, whatever its name is. Raises FormatError for a
    parameters.json that is none."""
    path = Path(path)
    listed = path.parent / "parameters.json"
    if listed.is_file():
        document = strict_json.loads(listed, read_small(listed))
        entry = document.get(path.name) if isinstance(document, dict) else None
        if entry is not None:
            if not isinstance(entry, dict) or not isinstance(entry.get("digest"), str):
                raise FormatError(listed, f"{path.name}: an object with a digest is needed there")
            return entry["digest"], str(listed)
    for one in PUBLISHED.values():
        for suffix, digest in ((".params", one.params_digest), (".vk", one.vk_digest)):
            if path.name == one.name(suffix):
                return None if suffix == ".params" and _is_development(path) else (digest, "the published list")
    other = published.digests().get(path.name)
    if other is None or (path.suffix == ".params" and _is_development(path)):
        return None
    return other, "the published list"


def _is_development(path: Path) -> bool:
    try:
        return ParamsFile(path).development
    except FormatError:  # damaged: its digest says so
        return False


def require_digest(path: str | PathLike[str], progress: Progress = silent) -> str | None:
    """The digest of a file that has an expected one, after both were found equal; None for other files. Raises FormatError."""
    expected = expected_digest(path)
    if expected is None:
        return None
    found = file_digest(path, progress)
    if found != expected[0]:
        raise FormatError(path, f"its BLAKE2b digest is {found}, {expected[1]} says {expected[0]}: damaged, or another file")
    return found


# ---------------------------------------------------------------------- converted keys


def find_published(folder: str | PathLike[str], maker: PartitionMaker) -> Path | None:
    """The .params in a folder that has the published name of the circuit's key."""
    one = PUBLISHED.get(maker.shape.name)
    path = None if one is None else Path(folder) / one.name()
    return path if path is not None and path.is_file() else None


def converted_names(params: str | PathLike[str]) -> list[Path]:
    """The places of the converted key of a .params: beside it, or in the cache."""
    path = Path(params)
    return [path.with_suffix(".ckey"), cache_folder() / "keys" / path.with_suffix(".ckey").name]


def find_converted(params: str | PathLike[str]) -> Path | None:
    """The converted key that was made of exactly this key, if there is one."""
    wanted: str | None = None
    for path in converted_names(params):
        if not path.is_file():
            continue
        wanted = wanted or hashlib.blake2b(ParamsFile(params).verifying_key().to_bytes(), digest_size=32).hexdigest()
        if CkeyFile(path).origin.get("verifying_key_blake2b") == wanted:
            return path
    return None


def convert_params(
    params: str | PathLike[str], maker: PartitionMaker, out: str | PathLike[str] | None = None,
    quotients: tuple[str, ...] = ("bellman",), progress: Progress = silent,
) -> Path:  # fmt: skip
    """Writes the .ckey of a .params with the circuit's template: beside it, or into the cache where that cannot be; its path.

    The bellman quotient needs the points as they are, 256 Ki of them at a time; the others need transforms over the key's
    points first (`cuzk key optimise`), with the whole key in memory. Raises InputError for the key of another circuit.
    """
    require_digest(params, progress)
    target = Path(out) if out is not None else _writable(converted_names(params))
    system = TemplateSystem(maker.template)
    name = f"the {maker.shape.name} PoRep circuit"
    if tuple(quotients) != ("bellman",):
        optimise(params_key(params, name, system), target, tuple(quotients), progress)
        return target
    file = ParamsFile(params)
    wires = {"a": system.used_wires(0), "b_g1": system.used_wires(1)}
    for what, (found, wanted) in {
        "inputs": (file.n_inputs, maker.template.n_inputs), "wires": (file.n_wires, system.n_wires),
        "rows of the domain": (file.domain, 1 << system.log_domain), "points of a": (file.lists["a"].count, len(wires["a"])),
        "points of b": (file.lists["b_g1"].count, len(wires["b_g1"])),
    }.items():  # fmt: skip
        if found != wanted:
            raise InputError(f"{fspath(params)}: not the parameters of {name}: {found} {what}, the circuit has {wanted}")
    vk = file.verifying_key()
    steps = _Steps(sum(part.count for part in file.lists.values()), progress)
    arrays = CkeyArrays(
        g1=np.concatenate([point_bytes.to_mont(p) for p in (vk.alpha_g1, vk.beta_g1, vk.delta_g1)]),  # type: ignore[arg-type]
        g2=np.concatenate([point_bytes.to_mont(p) for p in (vk.beta_g2, vk.gamma_g2, vk.delta_g2)]),
        ic=np.concatenate([point_bytes.to_mont(p) for p in vk.ic]),
        a_wires=wires["a"].astype(np.uint32), a_points=steps.array(params, file.lists["a"]),
        b_wires=wires["b_g1"].astype(np.uint32), b_g1_points=steps.array(params, file.lists["b_g1"]),
        b_g2_points=steps.array(params, file.lists["b_g2"]), l_points=steps.array(params, file.lists["l"]),
        h_monomial=steps.array(params, file.lists["h"]),
    )  # fmt: skip
    origin = {"made_by": "cuzk porep key", "from": "params", "name": Path(params).name,
              "verifying_key_blake2b": hashlib.blake2b(vk.to_bytes(), digest_size=32).hexdigest()}  # fmt: skip
    write_ckey(target, arrays, system.with_input_rows(), root=7, log_domain=system.log_domain, development=file.development,
               origin=origin)  # fmt: skip
    return target


class _Steps:
    """Lists of points on their way from one file to the other, with the progress of all."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress, self._done = total, progress, 0

    def array(self, path: str | PathLike[str], part: PointList) -> MappedArray:
        def pieces() -> Iterator[np.ndarray]:
            for first in range(0, part.count, _PIECE):
                piece = part.mont(path, slice(first, min(first + _PIECE, part.count)))
                self._done += len(piece)
                self._progress("converting the key", self._done, self._total)
                yield piece

        return MappedArray("u8", (part.count, part.raw.shape[1] // 8), pieces())


def _writable(places: list[Path]) -> Path:
    beside, cached = places
    if os.access(beside.parent, os.W_OK):
        return beside
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{beside}: its folder is not writable, and {cached.parent}: {error.strerror}") from error
    return cached
