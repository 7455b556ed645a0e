"""`cuzk circuit porep-32g`: the sizes of a PoRep circuit; its scenario file, template and expanded matrices on demand."""

from __future__ import annotations

import argparse
import time
from typing import Any

from cuzk.cli.proving import print_json

GIB = 1 << 30


def run(args: argparse.Namespace) -> int:
    from cuzk.circuits.porep.shape import shape
    from cuzk.errors import InputError
    from cuzk.groth16.formats.files import write_text
    from cuzk.groth16.formats.matrices import write_pce
    from cuzk.groth16.formats.template import save_template
    from cuzk.groth16.template.system import TemplateSystem
    from cuzk.porep.proving import require_small
    from cuzk.porep.sizes import porep_sizes

    start = time.perf_counter()
    found = shape(args.name.lower().removeprefix("porep-")).with_challenges(args.challenges)
    if args.r1cs or args.wtns:
        raise InputError("the PoRep circuits are written as --template or --pce; a witness comes from `cuzk porep prove`")
    if args.pce:
        require_small(found)
    sizes = porep_sizes(found)
    if args.counts:
        write_text(args.counts, sizes.yaml())
    if args.template:
        save_template(sizes.template, args.template)
    if args.pce:
        write_pce(args.pce, TemplateSystem(sizes.template))
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
    out = [
        f"{d['name']}: {d['rows']:,} rows with those of {d['inputs']} inputs, {d['aux']:,} aux, domain {d['domain']:,}; "
        f"{d['challenges']} challenges a partition, {d['partitions']} partition(s)",
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
