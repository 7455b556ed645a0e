"""`cuzk circuit porep-32g`, `window-32g`, …: sizes of a Filecoin circuit; its scenario file, template, expanded matrices."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from cuzk.cli.proving import print_json

if TYPE_CHECKING:
    from cuzk.circuits.sizes import NamedSizes

GIB = 1 << 30


FAMILIES = ("porep", "window", "winning", "snap")
EXPANDED_ROWS = 1 << 24
"""The most rows that are written one by one."""


def is_filecoin(name: str) -> bool:
    """Whether a circuit's name is that of one of these: `porep-32g`, `window-2k`."""
    return name.lower().partition("-")[0] in FAMILIES and "-" in name and "." not in name


def sizes_of(name: str, challenges: int | None = None) -> NamedSizes:
    """The sizes of a circuit by its name. Raises InputError."""
    from cuzk.errors import InputError

    family, _, size = name.lower().partition("-")
    if family == "porep":
        from cuzk.circuits.porep.shape import shape
        from cuzk.porep.sizes import porep_sizes

        return porep_sizes(shape(size).with_challenges(challenges))
    if challenges is not None:
        raise InputError("--challenges is for the porep-… circuits")
    if family == "snap":
        from cuzk.circuits.update.shape import update_shape
        from cuzk.update.job import update_sizes

        return update_sizes(update_shape(size))
    from cuzk.circuits.post.shape import post_shape
    from cuzk.post.job import post_sizes

    return post_sizes(post_shape(family, size))


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.formats.files import write_text
    from cuzk.groth16.formats.matrices import write_pce
    from cuzk.groth16.formats.template import save_template
    from cuzk.groth16.template.system import TemplateSystem

    start = time.perf_counter()
    if args.r1cs or args.wtns:
        raise InputError(
            "Filecoin's circuits are written as --template or --pce; a witness comes from `cuzk porep witness`, `cuzk post "
            "witness`, `cuzk update witness`"
        )
    sizes = sizes_of(args.name, args.challenges)
    if args.pce and sizes.circuit.template.n_rows > EXPANDED_ROWS:
        rows = f"{sizes.circuit.template.n_rows:,} rows"
        raise InputError(f"--pce: {sizes.what}: {rows} are too many to be written one by one; use --template")
    if args.counts:
        write_text(args.counts, sizes.yaml())
    if args.template:
        save_template(sizes.circuit.template, args.template)
    if args.pce:
        write_pce(args.pce, TemplateSystem(sizes.circuit.template))
    files = {name: path for name in ("counts", "template", "pce") if (path := getattr(args, name))}
    document = {**sizes.document(), "files": files, "total_s": time.perf_counter() - start}
    if args.json:
        print_json(document)
        return 0
    print("\n".join(_lines(document)))
    print("\n".join(files.values()), end="\n" if files else "")
    return 0


def _lines(d: dict[str, Any]) -> list[str]:
    nonzeros = ", ".join(f"{k.upper()} {v:,}" for k, v in d["nonzeros"].items())
    queries = ", ".join(f"{k} {v:,}" for k, v in d["queries"].items())
    dense = d["densities"]
    of = f"a sector, {d['sectors']:,} sectors" if "sectors" in d else "a partition"
    out = [
        f"{d['name']}: {d['rows']:,} rows with those of {d['inputs']} inputs, {d['aux']:,} aux, domain {d['domain']:,}; "
        f"{d['challenges']} challenge(s) {of}, {d['partitions']} partition(s)",
        f"  nonzeros: {nonzeros}; {d['coefficients']:,} different coefficients",
        f"  densities: aux in A {dense['a_aux']:,}, inputs in B {dense['b_input']:,}, aux in B {dense['b_aux']:,}",
        f"  key: {queries}; .vk {d['vk_bytes']:,} bytes, .params {d['params_bytes']:,} bytes",
        f"  values: {d['shares']['zero_or_one']:.1%} bits, {d['shares']['ones']:.1%} ones",
        f"  matrices: CSR {d['csr_bytes'] / GIB:.2f} GiB, template {d['template_bytes'] / GIB:.2f} GiB; "
        f"witness: field {d['witness_field_bytes'] / GIB:.2f} GiB, bits {d['witness_bits_bytes'] / GIB:.2f} GiB",
        "  host memory, GiB:  matrices  witness  quotient   matvec   shared  a partition",
    ]
    for m in d["host_memory"]:
        out.append(
            f"{'':21}{m['matrices']:<10}{m['witness']:<9}{m['quotient']:<11}{m['matvec']:<8}"
            f"{m['shared_bytes'] / GIB:7.2f}{m['partition_bytes'] / GIB:13.2f}"
        )
    return out
