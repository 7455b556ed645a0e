"""`cuzk porep seal|c1|check|setup|prove|verify|inputs|witness`: a Filecoin sector from data to an accepted Proof of Replication.

seal replicates DATA (2,032 bytes for a 2 KiB sector, or 2,048 already padded) into a directory; c1 writes what phase 1 hands
over of a sector, or of a made-up one of any size; check says whether a sector satisfies its circuit, and if not which gadget
fails, or whether a C1 output is correct, and if not where not; setup makes a development key for the sector's circuit; prove
makes the proof of a C1 output, or of a sector and a seed; verify recomputes the public inputs from the statement and checks
the proof; inputs prints them; witness writes a partition's values for `cuzk run`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from cuzk.cli.porep_job import (
    FILES,
    add_c1_options,
    add_c1_parser,
    add_key_parser,
    check_file,
    note,
    prepare_key,
    prove_file,
    write_proof,
    write_sector,
)
from cuzk.cli.proving import add_allow_unsafe_key, print_json, quotient_list, terminal_progress, warn_unsafe

ZERO = "00" * 32
_STATED = {"--comm-d": "comm_d_hex", "--comm-r": "comm_r_hex", "--prover-id": "prover_id_hex", "--ticket": "ticket_hex",
           "--porep-id": "porep_id_hex", "--seed": "seed_hex"}  # fmt: skip
"""Options that stand for a key of the statement."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("porep", help="Filecoin sectors", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = parser.add_subparsers(dest="porep_verb", required=True, metavar="VERB")
    _seal_parser(verbs)
    add_c1_parser(verbs)
    check = verbs.add_parser("check", help="does a sealed sector satisfy its circuit, is a C1 output correct; no key is needed")
    check.add_argument("directory", metavar="SOURCE", help="the sealed sector's directory, or a C1 output")
    check.add_argument("--seed", metavar="HEX", help="of a sector: 32 bytes of randomness from which challenges follow")
    add_c1_options(check, proves=False)
    setup = verbs.add_parser("setup", help="a development key for a sector's circuit")
    setup.add_argument("--sector", required=True, metavar="SIZE", help="2KiB, 8MiB, 512MiB, 32GiB or 64GiB (47 GB)")
    setup.add_argument("-o", "--output", required=True, metavar="KEY", help=".params (Filecoin's layout), .ckey or .zkey")
    setup.add_argument("--quotients", type=quotient_list, metavar="LIST",
                       help=".ckey only: c-free, odd-coset, bellman, or all (default); fewer make a smaller file")  # fmt: skip
    add_key_parser(verbs)
    prove = verbs.add_parser("prove", help="prove that a sector is sealed")
    prove.add_argument("directory", metavar="SOURCE", help="a C1 output (wrapper or inner JSON, bincode), or a sealed sector")
    prove.add_argument("key", metavar="KEY", help=".params, .ckey or .zkey of the circuit, or a folder with .params")
    prove.add_argument("--seed", metavar="HEX", help="of a sector: 32 bytes of randomness from which challenges follow")
    prove.add_argument("-o", "--output", metavar="DIR", help="for proof.bin, public.json, verification_key.json, statement.json "
                       "(default: SECTOR/proof, or the C1 output's name with -proof)")  # fmt: skip
    add_c1_options(prove, proves=True)
    prove.add_argument("--quotient", choices=("bellman", "odd-coset", "c-free"), help="default: the best that the key serves")
    prove.add_argument("--threads", type=int, metavar="N", help="threads (default: all cores)")
    verify = verbs.add_parser("verify", help="check a proof against its statement")
    verify.add_argument("directory", metavar="PROOF_DIR", help="with proof.bin and statement.json")
    verify.add_argument("key", metavar="VKEY", help="verifying key, or a proving key")
    add_allow_unsafe_key(verify)
    inputs = verbs.add_parser("inputs", help="public inputs that follow from a statement")
    inputs.add_argument("statement", metavar="STATEMENT", nargs="?", help="statement.json or seal.json; options replace values")
    inputs.add_argument("--sector", metavar="SIZE", help="2KiB, 8MiB, 512MiB, 32GiB or 64GiB")
    for option, key in _STATED.items():
        inputs.add_argument(option, metavar="HEX", dest=key, help="32 bytes")
    inputs.add_argument("--sector-number", metavar="N", type=int)
    inputs.add_argument("--api-version", choices=("1.0", "1.1"), help="graph of this API version, whatever the porep id says")
    witness = verbs.add_parser("witness", help="a partition's values as .wtns, for other provers and for cuzk run, or as bits")
    source = witness.add_mutually_exclusive_group(required=True)
    source.add_argument("--sealed", metavar="DIR", help="of a sealed sector")
    source.add_argument("--synthetic", metavar="SIZE", help="of a made-up sector of any size that satisfies the circuit")
    witness.add_argument("--seed", metavar="HEX", default=ZERO, help="32 bytes of randomness from which challenges follow")
    witness.add_argument("--partition", type=int, default=0, metavar="K", help="from 0 (default)")
    witness.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help=".wtns, 32 bytes a value; or .cwit, bits for keys made from a template",
    )
    witness.add_argument("--challenges", type=int, metavar="K",
                         help="with --synthetic: another number of challenges than a partition has, for rehearsals")  # fmt: skip
    for verb in (check, setup, prove, verify, inputs, witness):
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _seal_parser(verbs: Any) -> None:
    seal = verbs.add_parser("seal", help="replicate data into a sealed sector")
    seal.add_argument("data", metavar="DATA", help="file with the sector's data")
    seal.add_argument("--sector", required=True, metavar="SIZE", help="2KiB, 8MiB or 512MiB")
    seal.add_argument("-o", "--output", required=True, metavar="DIR", help="a new directory")
    seal.add_argument("--prover-id", metavar="HEX", default=ZERO, help="32 bytes")
    seal.add_argument("--sector-number", metavar="N", type=int, default=0)
    seal.add_argument("--ticket", metavar="HEX", default=ZERO, help="32 bytes")
    seal.add_argument("--porep-id", metavar="HEX", help="32 bytes (default: the sector's registered type, API version 1.1)")
    seal.add_argument("--api-version", choices=("1.0", "1.1"), help="default: that of the porep id")
    seal.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    verbs = {"seal": _seal, "check": _check, "setup": _setup, "prove": _prove, "verify": _verify, "inputs": _inputs,
             "witness": _witness, "c1": write_sector, "key": prepare_key}  # fmt: skip
    return verbs[args.porep_verb](args)


def _small_shape(name: str) -> Any:
    from cuzk.circuits.porep.shape import shape
    from cuzk.porep.proving import require_small

    found = shape(name)
    require_small(found)
    return found


def _seal(args: argparse.Namespace) -> int:
    from cuzk.groth16.formats.files import map_file
    from cuzk.porep.files import save_sealed
    from cuzk.porep.ids import SectorIds, hex32, porep_id
    from cuzk.porep.sealing import pad_data, seal

    start = time.perf_counter()
    shape = _small_shape(args.sector)
    registered = hex32(args.porep_id, "--porep-id") if args.porep_id else porep_id(shape, args.api_version or "1.1")
    ids = SectorIds(hex32(args.prover_id, "--prover-id"), args.sector_number, hex32(args.ticket, "--ticket"), registered)
    data = map_file(args.data)
    padded = pad_data(data, shape, args.data)
    sealed = seal(shape, ids, padded, args.api_version, note)
    save_sealed(sealed, args.output)
    total_s = time.perf_counter() - start
    document = {"sector": shape.name, "directory": args.output, "comm_d_hex": sealed.comm_d.hex(),
                "comm_r_hex": sealed.comm_r.hex(), "replica_id_hex": sealed.replica_id.hex(), "total_s": total_s}  # fmt: skip
    if args.json:
        print_json(document)
    else:
        print(f"sealed {shape.name} in {total_s:.2f} s: {args.output}")
        print(f"comm_d {sealed.comm_d.hex()}\ncomm_r {sealed.comm_r.hex()}")
    return 0


def _check(args: argparse.Namespace) -> int:
    if not os.path.isdir(args.directory):
        return check_file(args)
    from cuzk.porep.files import load_sealed
    from cuzk.porep.ids import hex32
    from cuzk.porep.opening import sector_challenges
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.registered import partitions_of, registered_id

    start = time.perf_counter()
    seed = hex32(args.seed or ZERO, "--seed")
    sealed = load_sealed(args.directory)
    maker = PartitionMaker(sealed.shape)
    rows = maker.template.n_constraints
    for partition in range(partitions_of(sealed.shape, registered_id(sealed.ids.porep_id).drawing)):
        maker.require_satisfied(maker.witness(sealed, sector_challenges(sealed, seed, partition)))
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"satisfied": True, "sector": sealed.shape.name, "rows": rows, "total_s": total_s})
    else:
        print(f"{args.directory}: all {rows:,} rows of the {sealed.shape.name} PoRep circuit hold, {total_s:.1f} s")
    return 0


def _setup(args: argparse.Namespace) -> int:
    from cuzk.circuits.porep.shape import shape as find_shape
    from cuzk.errors import InputError
    from cuzk.groth16.formats.files import require_writable
    from cuzk.groth16.key import QUOTIENTS
    from cuzk.groth16.safety import DEVELOPMENT
    from cuzk.groth16.setup.development import key_suffix, setup_development
    from cuzk.groth16.template.system import TemplateSystem
    from cuzk.porep.partition import PartitionMaker

    start = time.perf_counter()
    shape = find_shape(args.sector)
    suffix = key_suffix(args.output)
    if args.quotients and suffix != ".ckey":
        raise InputError(f"--quotients is for .ckey; a {suffix} serves one quotient by its format")
    require_writable(args.output)
    system = TemplateSystem(PartitionMaker(shape).template)
    setup_development(system, args.output, quotients=args.quotients or QUOTIENTS, progress=terminal_progress())
    warn_unsafe(args.output, [DEVELOPMENT])
    total_s, size = time.perf_counter() - start, os.path.getsize(args.output)
    if args.json:
        print_json({"key": args.output, "sector": shape.name, "bytes": size, "development_key": True, "total_s": total_s})
    else:
        print(f"{args.output}: {size:,} bytes, development key of the {shape.name} PoRep circuit, {total_s:.1f} s")
    return 0


def _prove(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError

    if args.threads is not None and args.threads < 1:
        raise InputError("--threads must be at least 1")
    if not os.path.isdir(args.directory):
        return prove_file(args)
    if args.device is not None:
        raise InputError("--device is for a C1 output (cuzk porep c1 writes that of a sector)")
    from cuzk.groth16.safety import weaknesses
    from cuzk.outputs import require_folder
    from cuzk.porep.files import load_sealed
    from cuzk.porep.ids import hex32
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.proving import load_porep_key, prove_sector
    from cuzk.porep.statement import Statement

    start = time.perf_counter()
    seed = hex32(args.seed or ZERO, "--seed")
    output = args.output or os.path.join(args.directory, "proof")
    paths = {name: os.path.join(output, name) for name in FILES}
    require_folder(output, *FILES)
    sealed = load_sealed(args.directory)
    maker = PartitionMaker(sealed.shape)
    key = load_porep_key(args.key, maker, terminal_progress())
    warn_unsafe(key.path, weaknesses(key.verifying_key()))
    made = prove_sector(sealed, key, maker, seed, args.threads, args.quotient, note)
    statement = Statement(sealed.shape, sealed.ids, sealed.comm_d, sealed.comm_r, seed, sealed.version)
    write_proof(output, [m.proof for m in made], [m.public for m in made], key.verifying_key().to_json(), statement.document())
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"verified": True, "development_key": key.development, "partitions": len(made),
                    "quotient": made[0].quotient, "proof_hex": [m.proof.to_bytes().hex() for m in made], "files": paths,
                    "step_s": [m.step_s for m in made], "total_s": total_s})  # fmt: skip
    else:
        print(f"{len(made)} proof(s) verified: {sealed.shape.name}, domain {key.domain}, {total_s:.1f} s")
        print("\n".join(paths.values()))
    return 0


def _verify(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.formats.proof import read_proofs
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.safety import unsafe_key, weaknesses
    from cuzk.groth16.verify import Verifier, require_valid
    from cuzk.porep.statement import read_statement

    statement = read_statement(os.path.join(args.directory, "statement.json"))
    proofs = read_proofs(os.path.join(args.directory, "proof.bin"))
    publics = statement.public_inputs()
    if len(proofs) != len(publics):
        raise InputError(f"{args.directory}: {len(proofs)} proofs; a {statement.shape.name} sector has {len(publics)}")
    key = read_any_vk(args.key)
    require_valid(Verifier(key, args.key), proofs, publics)
    unsafe = weaknesses(key)
    warn_unsafe(args.key, unsafe)
    if unsafe and not args.allow_unsafe_key:
        raise unsafe_key(args.key, unsafe)
    if args.json:
        print_json({"valid": True, "proofs": len(proofs), "development_key": key.development, "unsafe_key": unsafe})
    else:
        which = (
            str(statement.ids.sector_number) if statement.replica_id is None else f"with replica id {statement.replica_id.hex()}"
        )
        print(f"valid: the {statement.shape.name} sector {which} is sealed")
    return 0


def _inputs(args: argparse.Namespace) -> int:
    from cuzk.porep.statement import read_statement_with

    given = {key: getattr(args, key) for key in (*_STATED.values(), "sector", "sector_number", "api_version")}
    statement = read_statement_with(args.statement, {k: v for k, v in given.items() if v is not None})
    publics = statement.public_inputs()
    if args.json:
        print_json({"sector": statement.shape.name, "partitions": [[str(v) for v in p] for p in publics]})
    else:
        print(json.dumps([[str(v) for v in p] for p in publics], indent=1))
    return 0


def _witness(args: argparse.Namespace) -> int:
    from cuzk.circuits.porep.shape import shape
    from cuzk.errors import InputError
    from cuzk.groth16.formats.cwit import write_cwit
    from cuzk.groth16.formats.files import require_writable
    from cuzk.groth16.formats.wtns import write_wtns_chunks
    from cuzk.porep.files import load_sealed
    from cuzk.porep.ids import SectorIds, hex32, porep_id
    from cuzk.porep.opening import sector_challenges
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.synthetic import SyntheticSector

    start = time.perf_counter()
    require_writable(args.output)
    suffix = os.path.splitext(args.output)[1]
    if suffix not in (".wtns", ".cwit"):
        raise InputError(f"{args.output}: the name must end in .wtns or .cwit, which says how the values are written")
    if args.sealed and args.challenges is not None:
        raise InputError("--challenges is for --synthetic; a sealed sector's partitions have their number")
    seed = hex32(args.seed, "--seed")
    found = load_sealed(args.sealed) if args.sealed else None
    wanted = found.shape if found else shape(args.synthetic).with_challenges(args.challenges)
    if not 0 <= args.partition < wanted.partitions:
        raise InputError(f"--partition {args.partition}: a {wanted.name} sector has partitions 0 to {wanted.partitions - 1}")
    ids = SectorIds(porep_id=porep_id(wanted, "1.1"))
    sector = found or SyntheticSector(wanted, ids, seed, args.partition)
    maker = PartitionMaker(wanted)
    witness = maker.witness(sector, sector_challenges(sector, seed, args.partition))
    maker.require_satisfied(witness)
    made_s = time.perf_counter() - start
    wires = maker.template.n_inputs + maker.template.n_aux
    if suffix == ".cwit":
        write_cwit(args.output, witness)
    else:
        write_wtns_chunks(args.output, wires, witness.chunks_std())
    document = {"file": args.output, "sector": wanted.name, "partition": args.partition, "wires": wires,
                "bits_bytes": witness.nbytes, "made_s": made_s, "total_s": time.perf_counter() - start}  # fmt: skip
    if args.json:
        print_json(document)
    else:
        print(f"{args.output}: {wires:,} values of partition {args.partition}, {wanted.name}; made and checked in {made_s:.1f} s")
    return 0
