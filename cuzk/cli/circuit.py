"""`cuzk circuit NAME --constraints N`: sizes of a built-in benchmark circuit; its .r1cs, .pce and .wtns on demand.

`cuzk circuit FILE.r1cs --pce OUT.pce`: the matrices of any circuit as a mapped file.

mimc: chains of x^5, full-width values. bits: boolean gates, 99 % zeros and ones. Any size up to 2^27, without a
compiler.

porep-, window-, winning- and snap- with 2k, 8m, 512m, 32g, 64g: Filecoin's circuits, counted as they are emitted; --counts
writes it for scenarios, --template its matrices as a part to repeat.
"""

from __future__ import annotations

import argparse
from typing import Any

from cuzk.cli.filecoin_circuit import is_filecoin
from cuzk.cli.filecoin_circuit import run as filecoin_circuit
from cuzk.cli.proving import print_json


def constraint_count(text: str) -> int:
    """An argparse type: a number, or 2^k."""
    base, _, exponent = text.partition("^")
    try:
        if not exponent:
            return int(text)
        if 0 <= int(exponent) <= 64 and 0 <= int(base) <= 1 << 32:
            count: int = int(base) ** int(exponent)
            return count
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor 2^k")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("circuit", help="built-in benchmark circuits", description=__doc__)
    parser.add_argument("name", metavar="NAME", help="mimc, bits; porep-2k … porep-64g, window-…, winning-…, snap-…")
    parser.add_argument("--constraints", type=constraint_count, metavar="N", default=1 << 16, help="exactly; 2^k works too")
    parser.add_argument("--r1cs", metavar="FILE", help="write the constraints for circom's tools and cuzk setup")
    parser.add_argument("--pce", metavar="FILE", help="write the matrices as a mapped file")
    parser.add_argument("--wtns", metavar="FILE", help="write a satisfying witness")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the witness")
    parser.add_argument("--counts", metavar="FILE", help="Filecoin's circuits: write the counts for scenarios")
    parser.add_argument("--template", metavar="FILE", help="Filecoin's circuits: write the matrices as a template")
    parser.add_argument("--challenges", type=int, metavar="K", help="porep-… only: another number in a partition, for rehearsals")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.circuits.builtin.registry import builtin
    from cuzk.errors import InputError
    from cuzk.groth16.formats.files import require_writable
    from cuzk.groth16.formats.matrices import write_pce
    from cuzk.groth16.formats.r1cs import write_r1cs
    from cuzk.groth16.formats.wtns import write_wtns_chunks
    from cuzk.groth16.inspect import domain_for, proof_memory
    from cuzk.groth16.inspect_text import size_text

    require_writable(args.r1cs, args.pce, args.wtns, args.counts, args.template, inputs=(args.name,))
    if is_filecoin(args.name):
        return filecoin_circuit(args)
    if args.counts or args.template or args.challenges is not None:
        raise InputError("--counts and --template are for Filecoin's circuits, --challenges for porep-… ones")
    if args.name.endswith((".r1cs", ".pce")):
        return _from_file(args)
    if args.seed < 0:
        raise InputError("--seed must not be negative")
    family, tiling = builtin(args.name, args.constraints)
    if args.r1cs or args.pce:
        system = tiling.system()
        if args.r1cs:
            write_r1cs(args.r1cs, system, tiling.header())
        if args.pce:
            write_pce(args.pce, system)
    if args.wtns:
        write_wtns_chunks(args.wtns, tiling.n_wires, family.witness(tiling, args.seed))
    domain = domain_for(tiling.n_constraints, 1)
    files = {name: path for name in ("r1cs", "pce", "wtns") if (path := getattr(args, name))}
    memory = proof_memory(domain, tiling.n_wires, tiling.n_constraints + 2)
    document = {
        "name": family.name,
        "summary": family.summary,
        "n_constraints": tiling.n_constraints,
        "n_wires": tiling.n_wires,
        "n_public": 1,
        "domain": domain,
        "proof": memory,
        "files": files,
    }
    if args.json:
        print_json(document)
        return 0
    print(f"{family.name}: {family.summary}")
    print(f"  {tiling.n_constraints} constraints, {tiling.n_wires} wires, 1 public, domain {domain}")
    for quotient, cost in memory.items():
        sizes = ", ".join(f"{n[:-6].replace('_', ' ')} {size_text(v)}" for n, v in cost.items() if n.endswith("_bytes"))
        print(f"  {quotient}: {cost['transforms']} transforms, {sizes}")
    for path in files.values():
        print(path)
    return 0


def _from_file(args: argparse.Namespace) -> int:
    """Write the matrices of a circuit file; report what the result takes."""
    from cuzk.errors import InputError
    from cuzk.groth16.formats.matrices import write_pce
    from cuzk.groth16.inspect import inspect
    from cuzk.groth16.inspect_text import as_text
    from cuzk.groth16.load import read_r1cs_system

    if args.r1cs or args.wtns:
        raise InputError("--r1cs and --wtns belong to the built-in circuits; a file can be written as --pce")
    if args.pce:
        write_pce(args.pce, read_r1cs_system(args.name))
    found = inspect(args.pce or args.name)
    if args.json:
        print_json(found)
    else:
        print(as_text(found))
    return 0
