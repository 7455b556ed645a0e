"""`cuzk update apply|data|vanilla|check|setup|prove|verify|inputs|witness`: SnapDeals, data into a sealed sector and its proof.

apply puts DATA into a sealed sector that held none, as a directory of its own; data reads it back from the two replicas. vanilla
opens what the proof needs and writes a job: an item a partition (vanilla.json) and what they prove (statement.json). The others
are as those of `cuzk post`.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from cuzk.cli import vanilla_job
from cuzk.cli.proving import print_json

if TYPE_CHECKING:
    from cuzk.update.vanilla import UpdateVanilla

SIZES = "1KiB to 32KiB, 8MiB, 16MiB, 512MiB, 32GiB, 64GiB"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("update", help="Filecoin's SnapDeals", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = parser.add_subparsers(dest="update_verb", required=True, metavar="VERB")
    apply = verbs.add_parser("apply", help="put data into a sealed sector")
    apply.add_argument("sealed", metavar="SECTOR", help="the sealed sector")
    apply.add_argument("data", metavar="DATA", help="file with the data, as for cuzk porep seal")
    apply.add_argument("-o", "--output", required=True, metavar="UPDATED", help="a new directory")
    data = verbs.add_parser("data", help="read the data of an updated sector back")
    data.add_argument("sealed", metavar="SECTOR", help="the sealed sector that it was made from")
    data.add_argument("updated", metavar="UPDATED")
    data.add_argument("-o", "--output", required=True, metavar="FILE", help="the padded data, as long as the sector")
    vanilla = verbs.add_parser("vanilla", help="open what the proof of an update needs: a job for prove")
    vanilla.add_argument("sealed", metavar="SECTOR", nargs="?", help="the sealed sector")
    vanilla.add_argument("updated", metavar="UPDATED", nargs="?", help="the updated one")
    vanilla.add_argument("--synthetic", metavar="SIZE", help=f"of a made-up update of any size: {SIZES}")
    vanilla.add_argument("-o", "--output", required=True, metavar="JOB", help="a new directory")
    for verb in (apply, data, vanilla):
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def setup(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--sector", required=True, metavar="SIZE", help=f"{SIZES} (36 GB)")

    vanilla_job.add_verbs(verbs, setup, SIZES)


def run(args: argparse.Namespace) -> int:
    verbs = {"apply": _apply, "data": _data, "vanilla": _vanilla, "check": _check, "setup": _setup, "prove": _prove,
             "verify": _verify, "inputs": _inputs, "witness": _witness}  # fmt: skip
    return verbs[args.update_verb](args)


def _apply(args: argparse.Namespace) -> int:
    from cuzk.groth16.formats.files import map_file
    from cuzk.porep.files import load_sealed
    from cuzk.porep.sealing import pad_data
    from cuzk.update.sector import save_updated, update_sector

    start = time.perf_counter()
    sealed = load_sealed(args.sealed)
    updated = update_sector(sealed, pad_data(map_file(args.data), sealed.shape, args.data))
    save_updated(updated, args.output)
    total_s, statement = time.perf_counter() - start, updated.statement
    if args.json:
        print_json({"directory": args.output, "sector_number": updated.sector_number, **statement.document(), "total_s": total_s})
    else:
        print(f"updated {statement.shape.size} in {total_s:.2f} s: {args.output}")
        print(f"comm_d {statement.comm_d_new.hex()}\ncomm_r {statement.comm_r_new.hex()}")
    return 0


def _data(args: argparse.Namespace) -> int:
    from cuzk.outputs import atomic_write
    from cuzk.porep.files import load_sealed
    from cuzk.update.sector import load_updated

    start = time.perf_counter()
    data = load_updated(args.updated).data(load_sealed(args.sealed))
    with atomic_write(args.output) as out:
        out.write(data.tobytes())
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"file": args.output, "bytes": data.nbytes, "total_s": total_s})
    else:
        print(f"{args.output}: {data.nbytes:,} bytes, {total_s:.2f} s")
    return 0


def _vanilla(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.porep.files import load_sealed
    from cuzk.update.sector import load_updated
    from cuzk.vanilla.items import item_bytes

    start = time.perf_counter()
    if args.synthetic and not args.sealed:
        vanilla = _made_up(args)
    elif args.sealed and args.updated and not args.synthetic:
        vanilla = load_updated(args.updated).vanilla(load_sealed(args.sealed))
    else:
        raise InputError("give either SECTOR and UPDATED, or --synthetic SIZE")
    items = item_bytes(vanilla.items)
    vanilla_job.write_job(args.output, items, vanilla.statement.document())
    size, total_s = sum(map(len, items)), time.perf_counter() - start
    if args.json:
        print_json({"job": args.output, **_facts(vanilla), "bytes": size, "total_s": total_s})
    else:
        print(f"{args.output}: {vanilla.statement.shape.size}, {len(items)} partition(s), {size:,} bytes, {total_s:.1f} s")
    return 0


def _made_up(args: argparse.Namespace) -> UpdateVanilla:
    from cuzk.circuits.update.shape import update_shape
    from cuzk.update.synthetic import synthetic_vanilla

    return synthetic_vanilla(update_shape(args.synthetic))


def _facts(vanilla: UpdateVanilla) -> dict[str, Any]:
    return {"sector": vanilla.statement.shape.size, "partitions": len(vanilla.items)}


def _read(args: argparse.Namespace) -> UpdateVanilla:
    """The job of a command line, checked."""
    from cuzk.update.statement import read_statement
    from cuzk.update.vanilla import UpdateVanilla
    from cuzk.vanilla.items import read_raw_items

    items, statement = vanilla_job.job_paths(args)
    vanilla = UpdateVanilla.of_bytes(read_raw_items(items), read_statement(statement), items)
    vanilla.check()
    return vanilla


def _check(args: argparse.Namespace) -> int:
    start = time.perf_counter()
    vanilla = _read(args)
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"correct": True, **_facts(vanilla), "total_s": total_s})
    else:
        print(f"{args.job}: correct, {vanilla.statement.shape.size}, {len(vanilla.items)} partition(s), {total_s:.2f} s")
    return 0


def _setup(args: argparse.Namespace) -> int:
    from cuzk.circuits.update.shape import update_shape
    from cuzk.update.job import UpdateCircuit

    circuit = UpdateCircuit(update_shape(args.sector))
    return vanilla_job.make_key(circuit.template, circuit.what, args, {"sector": circuit.shape.size})


def _prove(args: argparse.Namespace) -> int:
    from cuzk.update.job import UpdateJob

    start = time.perf_counter()
    vanilla = _read(args)
    return vanilla_job.prove(UpdateJob(vanilla), vanilla.statement.document(), args, start)


def _verify(args: argparse.Namespace) -> int:
    import os

    from cuzk.update.statement import read_statement

    statement = read_statement(args.statement or os.path.join(args.directory, "statement.json"))
    what = f"the {statement.shape.size} sector holds {statement.comm_d_new.hex()}"
    return vanilla_job.verify(statement.all_public_inputs(), what, args)


def _inputs(args: argparse.Namespace) -> int:
    from cuzk.update.statement import read_statement

    statement = read_statement(args.statement)
    facts = {"sector": statement.shape.size}
    return vanilla_job.print_inputs(statement.all_public_inputs(), facts, args.json)


def _witness(args: argparse.Namespace) -> int:
    from cuzk.update.job import UpdateJob

    start = time.perf_counter()
    vanilla_job.require_witness(args)
    vanilla = _made_up(args) if args.synthetic else _read(args)
    return vanilla_job.write_witness(UpdateJob(vanilla), args, _facts(vanilla), start)
