"""`cuzk porep c1` and `cuzk porep prove C1.json KEY`: the operator's job, from phase 1's output to the chain's proof."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from cuzk.cli.proving import print_json, quotient_list, terminal_progress, warn_unsafe

if TYPE_CHECKING:
    from cuzk.groth16.formats.proof import Proof
    from cuzk.porep.c1.model import C1, Owner

DEFAULT_SEED = "01" * 32
FILES = ("proof.bin", "public.json", "verification_key.json", "statement.json")


def add_c1_parser(verbs: Any) -> None:
    c1 = verbs.add_parser("c1", help="write the C1 output (vanilla proofs) of a sealed or made-up sector")
    c1.add_argument("directory", metavar="SECTOR", nargs="?", help="the sealed sector")
    c1.add_argument("--synthetic", metavar="SIZE", help="of a made-up sector of any size (2KiB … 64GiB), without sealing")
    c1.add_argument("-o", "--output", required=True, metavar="FILE")
    c1.add_argument("--form", choices=("wrapper", "inner", "bincode"), default="wrapper",
                    help="as requests carry it (default), as phase 1 returns it, or as the C++ phase 1 writes it")  # fmt: skip
    c1.add_argument("--seed", metavar="HEX", default=DEFAULT_SEED, help="32 bytes from which challenges follow (default: all 01)")
    c1.add_argument("--api-version", choices=("1.0", "1.1"), help="with --synthetic; default 1.1")
    c1.add_argument("--sector-number", metavar="N", type=int, help="with --synthetic; default 1")
    c1.add_argument("--miner", metavar="ID", type=int, help="with --synthetic: the miner's number; default 1000")
    c1.add_argument("--json", action="store_true", help="one JSON document on stdout")


def add_key_parser(verbs: Any) -> None:
    key = verbs.add_parser("key", help="check Filecoin's parameters of a sector size, and convert them once")
    key.add_argument("--sector", required=True, metavar="SIZE", help="2KiB, 8MiB, 512MiB, 32GiB or 64GiB")
    key.add_argument("--params", metavar="PATH", help="a .params, or a folder of them (default: FIL_PROOFS_PARAMETER_CACHE, or "
                     "/var/tmp/filecoin-proof-parameters/)")  # fmt: skip
    key.add_argument("-o", "--output", metavar="KEY.ckey", help="default: beside the .params, or in the cache if that cannot be")
    key.add_argument("--quotients", type=quotient_list, default=("bellman",), metavar="LIST",
                     help="what it must serve: bellman (default: nothing is computed), odd-coset, c-free, or all: by transforms "
                     "over the key's points, hours at 32GiB")  # fmt: skip
    key.add_argument("--check", action="store_true", help="only find it and check its digest")
    key.add_argument("--json", action="store_true", help="one JSON document on stdout")


def add_c1_options(parser: Any, proves: bool) -> None:
    """Options of the C1 form of `prove` and `check`."""
    group = parser.add_argument_group("for a C1 output")
    group.add_argument("--miner", metavar="ID", type=int, help="the miner: with --sector-number, the replica id is checked")
    group.add_argument("--sector-number", metavar="N", type=int)
    group.add_argument("--quick", action="store_true", help="do not hash its paths, columns and labels: counts, commitments, "
                       "challenges and parents only (a proof is verified in any case)")  # fmt: skip
    if proves:
        group.add_argument("--device", choices=("cpu", "cuda"), help="partitions side by side through this machine's pipeline "
                           "(default: one after the other on the CPU)")  # fmt: skip
    group.add_argument("--registered", metavar="NAME", help="registered proof of a bincode file (default: StackedDrg<size>V1_1)")


def write_sector(args: argparse.Namespace) -> int:
    """`cuzk porep c1`."""
    from cuzk.circuits.porep.shape import shape
    from cuzk.errors import InputError
    from cuzk.outputs import require_writable
    from cuzk.porep.c1.model import Owner
    from cuzk.porep.c1.write import sector_c1, write_c1
    from cuzk.porep.files import load_sealed
    from cuzk.porep.ids import SectorIds, hex32, porep_id
    from cuzk.porep.sealing import Sealed
    from cuzk.porep.synthetic import SyntheticSector

    start = time.perf_counter()
    if (args.directory is None) == (args.synthetic is None):
        raise InputError("give either a sealed SECTOR or --synthetic SIZE")
    if args.directory is not None and (args.api_version, args.sector_number, args.miner) != (None, None, None):
        raise InputError("--api-version, --sector-number and --miner are for --synthetic; a sealed sector has its own")
    require_writable(args.output)
    seed = hex32(args.seed, "--seed")
    sector: Sealed | SyntheticSector
    if args.directory is not None:
        sector = load_sealed(args.directory)
    else:
        wanted = shape(args.synthetic)
        number = 1 if args.sector_number is None else args.sector_number
        owner = Owner.of_miner(1000 if args.miner is None else args.miner, number)
        ids = SectorIds(owner.prover_id, number, bytes([7] * 32), porep_id(wanted, args.api_version or "1.1"))
        sector = SyntheticSector(wanted, ids, seed, None)
    c1 = sector_c1(sector, seed)
    size = write_c1(c1, args.output, args.form)
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"file": args.output, "bytes": size, "form": args.form, **described(c1), "total_s": total_s})
    else:
        print(f"{args.output}: {size:,} bytes, {c1.registered.name}, {c1.partitions} partition(s), {total_s:.1f} s")
    return 0


def prepare_key(args: argparse.Namespace) -> int:
    """`cuzk porep key`."""
    from cuzk.circuits.porep.shape import shape
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.safety import weaknesses
    from cuzk.outputs import require_writable
    from cuzk.porep.parameters import convert_params, find_published, parameter_folder, require_digest
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.proving import find_params

    start = time.perf_counter()
    maker = PartitionMaker(shape(args.sector))
    place, named_by = parameter_folder(args.params)
    params = (find_published(place, maker) or find_params(place, maker)) if place.is_dir() else place
    require_writable(args.output, inputs=(params,))
    digest = require_digest(params, terminal_progress())
    document: dict[str, Any] = {"params": str(params), "folder_by": named_by, "sector": maker.shape.name, "digest": digest}
    if not args.check:
        made = convert_params(params, maker, args.output, args.quotients, terminal_progress())
        document |= {"key": str(made), "bytes": os.path.getsize(made), "quotients": list(args.quotients)}
    warn_unsafe(str(params), weaknesses(read_any_vk(params)))
    document["total_s"] = time.perf_counter() - start
    if args.json:
        print_json(document)
        return 0
    known = f"digest {digest}, as published" if digest else "no published digest is known for it"
    print(f"{params}: {known}")
    if not args.check:
        print(f"{document['key']}: {document['bytes']:,} bytes, {document['total_s']:.1f} s")
    return 0


def described(c1: C1) -> dict[str, Any]:
    """A C1 output's description for JSON documents."""
    return {"registered_proof": c1.registered.name, "sector": c1.shape.name, "sector_bytes": c1.sector_size,
            "partitions": c1.partitions, "challenges": c1.shape.challenges}  # fmt: skip


def read_job(args: argparse.Namespace) -> tuple[C1, Owner | None]:
    """The C1 output of a command line, and whose it must be."""
    from cuzk.errors import InputError
    from cuzk.porep.c1 import read
    from cuzk.porep.c1.model import Owner

    if (args.miner is None) != (args.sector_number is None):
        raise InputError("--miner and --sector-number go together: the replica id follows from both")
    owner = None if args.miner is None else Owner.of_miner(args.miner, args.sector_number)
    return read(args.directory, registered=args.registered), owner


def check_file(args: argparse.Namespace) -> int:
    """`cuzk porep check C1.json`."""
    start = time.perf_counter()
    c1, owner = read_job(args)
    c1.check(owner, full=not args.quick)
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"correct": True, "form": c1.form, **described(c1), "total_s": total_s})
    else:
        print(f"{args.directory}: correct, {c1.registered.name}, {c1.partitions} partition(s), {total_s:.2f} s")
    return 0


def prove_file(args: argparse.Namespace) -> int:
    """`cuzk porep prove C1.json KEY`."""
    from cuzk import api
    from cuzk.errors import InputError
    from cuzk.outputs import require_folder

    start = time.perf_counter()
    if args.device is not None and args.quotient is not None:
        raise InputError("--quotient is for the prover without --device; the pipeline takes the best that the key serves")
    if args.seed is not None:
        raise InputError("--seed is for a sealed sector; a C1 output has its own")
    output = args.output or f"{os.path.splitext(args.directory)[0]}-proof"
    paths = {name: os.path.join(output, name) for name in FILES}
    require_folder(output, *FILES, inputs=(args.directory, args.key))
    c1, owner = read_job(args)
    require_folder(output, *file_names(c1.partitions), inputs=(args.directory, args.key))
    c1.check(owner, full=not args.quick, threads=args.threads)
    checked_s = time.perf_counter() - start
    key = api.load_key(args.key, sector=c1.shape.name, progress=terminal_progress())
    warn_unsafe(key.proving_key.path, key.weaknesses)
    made = api.prove(key, c1, checked=True, device=args.device, threads=args.threads, quotient=args.quotient, progress=note)
    statement = {**c1.statement().document(), "registered_proof": c1.registered.name}
    write_proof(output, made.proofs, made.publics, key.verifying_key.to_json(), statement)
    total_s = time.perf_counter() - start
    if made.note:
        print(f"cuzk: {args.directory}: {made.note}", file=sys.stderr)
    again = sum(made.attempts) - len(made.attempts)
    if args.json:
        print_json({"verified": True, "development_key": key.proving_key.development, **described(c1), "quotient": made.quotient,
                    "proof_hex": [p.to_bytes().hex() for p in made.proofs], "files": paths, "attempts": made.attempts,
                    "proved_again": again, "aggregated": False, "step_s": made.step_s, "checked_s": checked_s,
                    "total_s": total_s})  # fmt: skip
    else:
        more = f", {again} proved again" if again else ""
        print(
            f"{len(made.proofs)} proof(s) verified: {c1.registered.name}, domain {key.proving_key.domain}{more}, {total_s:.1f} s"
        )
        print("\n".join(paths.values()))
    return 0


def file_names(partitions: int) -> list[str]:
    """The files of a proof: `FILES`, and for each partition what snarkjs reads."""
    return [*FILES, *(f"{what}-{k:02d}.json" for k in range(partitions) for what in ("proof", "public"))]


def write_proof(output: str, proofs: list[Proof], publics: list[list[int]], vk_json: str, statement: dict[str, Any]) -> None:
    """The files of a proof, all or none; their directory is made if absent."""
    from cuzk.groth16.formats.proof import proof_json, public_json
    from cuzk.outputs import file_set

    with file_set(output, *file_names(len(proofs))) as stage:
        (stage / "public.json").write_text(json.dumps([[str(v) for v in public] for public in publics], indent=1) + "\n")
        (stage / "verification_key.json").write_text(vk_json)
        (stage / "statement.json").write_text(json.dumps(statement, indent=2) + "\n")
        for k, (proof, public) in enumerate(zip(proofs, publics, strict=True)):
            (stage / f"proof-{k:02d}.json").write_text(proof_json(proof))
            (stage / f"public-{k:02d}.json").write_text(public_json(public))
        (stage / "proof.bin").write_bytes(b"".join(proof.to_bytes() for proof in proofs))


def note(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
