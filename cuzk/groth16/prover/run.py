"""One proof from start to end: the steps in order, each buffer freed after its last use, and the result verified."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cuzk.errors import CuzkError, FormatError, ProofInvalid
from cuzk.groth16.consistency import Inconsistent, check_key
from cuzk.groth16.formats.files import Path, require_unchanged
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.own_thread import in_own_thread
from cuzk.groth16.prover import steps
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.products import Witness, require_satisfied
from cuzk.groth16.prover.quotient import NEEDS_C
from cuzk.groth16.prover.state import ProofState
from cuzk.groth16.verify import Verifier


@dataclass(frozen=True)
class Proved:
    """A verified proof and what making it took."""

    proof: Proof
    public: list[int]
    quotient: str
    private: bool
    step_s: dict[str, float]


def prove(
    key: ProvingKey,
    witness: Witness,
    quotient: str | None = None,
    blinding: Blinding | None = None,
    threads: int | None = None,
    verifier: Verifier | None = None,
) -> Proved:
    """Make and verify one proof. `quotient` None takes the best that the key serves; `blinding` None is fresh
    randomness.

    Raises InputError for a witness of another circuit, ProofInvalid for one that does not satisfy it.
    """
    state = ProofState(key, key.require_quotient(quotient), blinding or Blinding.random(), threads)
    step_s: dict[str, float] = {}

    def run(step: Callable[..., object], *arguments: object) -> None:
        start = time.perf_counter()
        in_own_thread(step, state, *arguments)
        step_s[step.__name__] = time.perf_counter() - start

    run(steps.witness, witness)
    run(steps.matvec)
    run(steps.upload)
    state.free("a", "b", "c")
    run(steps.ntt_h)
    state.free("d_bc")
    run(steps.msm_h)
    state.free("d_a")
    run(steps.prep_msm)
    run(steps.batch_add)
    run(steps.tail_msm)
    run(steps.b_g2_msm)
    state.free("splits")
    run(steps.epilogue)
    run(check, verifier)
    state.free("aux")
    assert state.proof is not None
    return Proved(state.proof, state.public, state.quotient, state.blinding.private, step_s)


def check(state: ProofState, verifier: Verifier | None = None) -> None:
    """Verify the finished proof by an independent pairing. Raises as `diagnosis` finds."""
    verifier = verifier or Verifier(state.key.verifying_key(), f"the verifying key in {state.key.path}")
    assert state.proof is not None
    if verifier.accepts(state.proof, state.public):
        return
    raise diagnosis(state)


def diagnosis(state: ProofState) -> CuzkError:
    """The error to raise of a proof that does not verify: it says whether the witness, the circuit or the key is at fault.

    In this order: a file that shrank; a constraint that the witness does not satisfy, if C is at hand; a point of the key that
    is none; points that do not belong together, or not to the circuit. Takes about as long as a proof.
    """
    require_unchanged()
    key, system = state.key, state.key.system
    wrong = "the proof does not verify"
    if system.has_c and not NEEDS_C[state.quotient]:
        try:
            require_satisfied(system, state.take("aux"), state.threads)
        except ProofInvalid as error:
            return error
    try:
        bad_points(key.path)
        checked = check_key(key)
    except FormatError as error:
        fault = error.message if isinstance(error, Inconsistent) else f"the key is at fault: {error.message}"
        text = f"{wrong}, and the witness is not at fault" if system.has_c else wrong
        return FormatError(error.path, f"{text}: {fault}", section=error.section, offset=error.offset)
    if not system.has_c:
        rest = "its points of L, which C alone can test, are wrong" if key.l_query is not None else "its points of L are wrong"
        return ProofInvalid(
            f"{wrong}: the witness does not satisfy the circuit (--r1cs names the constraint). The key's points agree with one "
            f"another and with the circuit's A and B; only if the witness is right, {rest}"
        )
    untested = f"; {checked.untested_wires} of its wires could not be tested so" if checked.untested_wires else ""
    return ProofInvalid(
        f"{wrong}, although the witness satisfies every constraint and the key's points agree with the circuit{untested}: "
        "a fault of this machine or of cuzk"
    )


def bad_points(path: Path) -> None:
    """Raises FormatError at the first point of a key file that is not one of its group."""
    from cuzk.groth16.deep import deep_check
    from cuzk.groth16.inspect import detect

    deep_check(path, detect(path))
