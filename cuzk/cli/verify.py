"""`cuzk verify VKEY PUBLIC PROOF …` or `cuzk verify BUNDLE.prf`: strict verification, several proofs at once.

Checked: number and range of public signals, coordinates, curve and subgroup of every point, the pairing equation.
Several proofs are checked by one random linear combination; if it fails the first bad proof is named. Under a key that
lets proofs be forged (a development key, no phase 2 contribution, a known delta) no proof is valid: exit 6.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuzk.cli.proving import add_allow_unsafe_key, print_json, warn_unsafe

if TYPE_CHECKING:
    from cuzk.groth16.formats.vk import VerifyingKey


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("verify", help="check proofs", description=__doc__)
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a bundle (.prf); or a verifying key (JSON, .vk, or a proving key) and one or more pairs PUBLIC PROOF. "
        "PUBLIC may be a list of lists, PROOF several proofs of 192 bytes",
    )
    add_allow_unsafe_key(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import ProofInvalid
    from cuzk.groth16.safety import unsafe_key, weaknesses

    key, count, check = _statement(args.files)
    unsafe = weaknesses(key)
    warn_unsafe(args.files[0], unsafe)
    found = {"proofs": count, "n_public": key.n_public, "development_key": key.development, "unsafe_key": unsafe}
    try:
        check()
        if unsafe and not args.allow_unsafe_key:
            raise unsafe_key(args.files[0], unsafe)
    except ProofInvalid as error:
        if args.json:
            print_json({"valid": False, "reason": str(error), **found})
            print(f"cuzk: {error}", file=sys.stderr)
            return error.exit_code
        raise
    if args.json:
        print_json({"valid": True, **found})
    else:
        print("valid" if count == 1 else f"valid: all {count} proofs")
    return 0


def _statement(files: list[str]) -> tuple[VerifyingKey, int, Callable[[], None]]:
    """The key, how many proofs there are to be, and what judges them. Raises InputError."""
    from cuzk.errors import InputError
    from cuzk.groth16.formats.proof import read_bundle, read_proofs, read_public
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.verify import Verifier, require_valid, verify_bundle

    if len(files) == 1:
        bundle = read_bundle(files[0])
        return bundle.key, len(bundle.proofs), lambda: verify_bundle(bundle, files[0])
    if len(files) % 2 == 0:
        raise InputError("give a verifying key and pairs PUBLIC PROOF, or one bundle")
    key = read_any_vk(files[0])
    publics = [public for path in files[1::2] for public in read_public(path)]

    def check() -> None:
        proofs = [proof for path in files[2::2] for proof in read_proofs(path)]
        require_valid(Verifier(key, files[0]), proofs, publics)

    return key, len(publics), check
