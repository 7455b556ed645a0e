"""`cuzk post vanilla|check|setup|prove|verify|inputs|witness`: WinningPoSt and WindowPoSt, from sectors to accepted proofs.

vanilla opens the leaves that a randomness asks for in sealed or updated sectors, and writes a job: the items that a node sends
(vanilla.json) and what they prove (statement.json). check says whether they are what the statement says, and if not where the
fault lies; prove checks and proves; verify computes the public inputs from the statement; witness writes a partition's values for
`cuzk run`.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from cuzk.cli import vanilla_job
from cuzk.cli.proving import print_json

if TYPE_CHECKING:
    from cuzk.post.statement import PostStatement
    from cuzk.post.vanilla import PostVanilla, Replica

ZERO = "00" * 32
SIZES = "2KiB, 8MiB, 512MiB, 32GiB, 64GiB"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("post", help="Filecoin's proofs of spacetime", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = parser.add_subparsers(dest="post_verb", required=True, metavar="VERB")
    vanilla = verbs.add_parser("vanilla", help="open the challenged leaves of sectors: a job for prove")
    vanilla.add_argument("sectors", metavar="SECTOR", nargs="*", help="directories of sealed or updated sectors")
    vanilla.add_argument("--synthetic", metavar="SIZE", help=f"of made-up sectors of any size: {SIZES}")
    vanilla.add_argument("--count", metavar="N", type=int, default=1, help="with --synthetic: so many sectors, from number 1")
    vanilla.add_argument("-o", "--output", required=True, metavar="JOB", help="a new directory")
    _kind(vanilla)
    vanilla.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def setup(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--kind", required=True, choices=("winning", "window"))
        parser.add_argument("--sector", required=True, metavar="SIZE", help=f"{SIZES} (window: 61 GB)")

    vanilla_job.add_verbs(verbs, setup, SIZES)
    _kind(verbs.choices["witness"], needed=False)


def _kind(parser: argparse.ArgumentParser, needed: bool = True) -> None:
    parser.add_argument("--kind", required=needed, choices=("winning", "window"), help=None if needed else "with --synthetic")
    parser.add_argument("--api-version", choices=("1.0", "1.2"), help="default: winning 1.0, window 1.2")
    parser.add_argument("--randomness", metavar="HEX", default=ZERO, help="32 bytes, for the challenges (default: zeros)")


def run(args: argparse.Namespace) -> int:
    verbs = {"vanilla": _vanilla, "check": _check, "setup": _setup, "prove": _prove, "verify": _verify, "inputs": _inputs,
             "witness": _witness}  # fmt: skip
    return verbs[args.post_verb](args)


def _replica(directory: str) -> tuple[str, Replica]:
    """The sector size of a directory and what a PoSt sees of it."""
    import os

    from cuzk.porep.files import load_sealed
    from cuzk.post.vanilla import Replica
    from cuzk.update.sector import load_updated

    if os.path.exists(os.path.join(directory, "update.json")):
        updated = load_updated(directory)
        s = updated.statement
        return s.shape.size, Replica(
            updated.sector_number, s.comm_r_new, updated.comm_c, updated.comm_r_last, updated.tree_r_last
        )
    sealed = load_sealed(directory)
    return sealed.shape.name, Replica(
        sealed.ids.sector_number, sealed.comm_r, sealed.comm_c, sealed.comm_r_last, sealed.tree_r_last
    )


def _vanilla(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.porep.ids import hex32
    from cuzk.post.registered import registered_post
    from cuzk.post.statement import PostSector, PostStatement
    from cuzk.post.vanilla import PostVanilla
    from cuzk.vanilla.items import item_bytes

    start = time.perf_counter()
    if bool(args.sectors) == (args.synthetic is not None):
        raise InputError("give either directories of sectors or --synthetic SIZE")
    if args.synthetic:
        vanilla = _made_up(args)
    else:
        opened = sorted((_replica(directory) for directory in args.sectors), key=lambda pair: pair[1].number)
        sizes = sorted({size for size, _ in opened})
        if len(sizes) > 1:
            raise InputError(f"sectors of {' and '.join(sizes)}: a proof is of one size")
        replicas = [replica for _, replica in opened]
        statement = PostStatement(
            registered_post(args.kind, sizes[0], args.api_version), hex32(args.randomness, "--randomness"),
            tuple(PostSector(r.number, r.comm_r) for r in replicas),
        )  # fmt: skip
        vanilla = PostVanilla.of_replicas(replicas, statement)
    items, document = item_bytes(vanilla.items), vanilla.statement.document()
    vanilla_job.write_job(args.output, items, document)
    size, total_s = sum(map(len, items)), time.perf_counter() - start
    if args.json:
        print_json({"job": args.output, **_facts(vanilla.statement), "sectors": len(items), "bytes": size, "total_s": total_s})
    else:
        print(f"{args.output}: {vanilla.statement.registered.name}, {len(items)} sector(s), {size:,} bytes, {total_s:.1f} s")
    return 0


def _made_up(args: argparse.Namespace) -> PostVanilla:
    from cuzk.errors import InputError
    from cuzk.porep.ids import hex32
    from cuzk.post.registered import registered_post
    from cuzk.post.synthetic import synthetic_vanilla

    if args.kind is None:
        raise InputError("--synthetic needs --kind")
    count = getattr(args, "count", 1)
    if not 1 <= count <= 1 << 20:
        raise InputError(f"--count {count}: from 1 to {1 << 20}")
    registered = registered_post(args.kind, args.synthetic, args.api_version)
    return synthetic_vanilla(registered, hex32(args.randomness, "--randomness"), count)


def _facts(statement: PostStatement) -> dict[str, Any]:
    return {"registered_post": statement.registered.number, "name": statement.registered.name, "sector": statement.shape.size,
            "partitions": statement.partitions}  # fmt: skip


def _read(args: argparse.Namespace) -> PostVanilla:
    """The job of a command line, checked."""
    from cuzk.post.statement import read_statement
    from cuzk.post.vanilla import PostVanilla
    from cuzk.vanilla.items import read_raw_items

    items, statement = vanilla_job.job_paths(args)
    vanilla = PostVanilla.of_bytes(read_raw_items(items), read_statement(statement), items)
    vanilla.check()
    return vanilla


def _check(args: argparse.Namespace) -> int:
    start = time.perf_counter()
    vanilla = _read(args)
    total_s, sectors = time.perf_counter() - start, len(vanilla.items)
    if args.json:
        print_json({"correct": True, **_facts(vanilla.statement), "sectors": sectors, "total_s": total_s})
    else:
        print(f"{args.job}: correct, {vanilla.statement.registered.name}, {sectors} sector(s), {total_s:.2f} s")
    return 0


def _setup(args: argparse.Namespace) -> int:
    from cuzk.circuits.post.shape import post_shape
    from cuzk.post.job import PostCircuit

    circuit = PostCircuit(post_shape(args.kind, args.sector))
    facts = {"kind": args.kind, "sector": circuit.shape.size}
    return vanilla_job.make_key(circuit.template, circuit.what, args, facts)


def _prove(args: argparse.Namespace) -> int:
    from cuzk.post.job import PostJob

    start = time.perf_counter()
    vanilla = _read(args)
    return vanilla_job.prove(PostJob(vanilla), vanilla.statement.document(), args, start)


def _verify(args: argparse.Namespace) -> int:
    import os

    from cuzk.post.statement import read_statement

    statement = read_statement(args.statement or os.path.join(args.directory, "statement.json"))
    numbers = [s.number for s in statement.sectors]
    what = f"sector {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} sectors, {numbers[0]} to {numbers[-1]}"
    return vanilla_job.verify(statement.all_public_inputs(), f"{statement.registered.name} of {what}", args)


def _inputs(args: argparse.Namespace) -> int:
    from cuzk.post.statement import read_statement

    statement = read_statement(args.statement)
    return vanilla_job.print_inputs(statement.all_public_inputs(), _facts(statement), args.json)


def _witness(args: argparse.Namespace) -> int:
    from cuzk.post.job import PostJob

    start = time.perf_counter()
    vanilla_job.require_witness(args)
    vanilla = _made_up(args) if args.synthetic else _read(args)
    return vanilla_job.write_witness(PostJob(vanilla), args, _facts(vanilla.statement), start)
