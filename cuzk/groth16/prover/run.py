"""One proof from start to end: the steps in order, each buffer freed after its last use, and the result verified."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cuzk.errors import ProofInvalid
from cuzk.groth16.formats.files import require_unchanged
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
    """Verify the finished proof by an independent pairing. Raises ProofInvalid, naming the first failing constraint if C
    is at hand.
    """
    verifier = verifier or Verifier(state.key.verifying_key(), f"the verifying key in {state.key.path}")
    assert state.proof is not None
    if verifier.accepts(state.proof, state.public):
        return
    raise ProofInvalid(diagnosis(state))


def diagnosis(state: ProofState) -> str:
    """Why a proof did not verify, as far as the matrices tell. Raises InputError where a file shrank meanwhile."""
    require_unchanged()
    system = state.key.system
    if not system.has_c:
        return "the proof does not verify: the witness does not satisfy the circuit (--r1cs names the constraint)"
    if not NEEDS_C[state.quotient]:
        try:
            require_satisfied(system, state.take("aux"), state.threads)
        except ProofInvalid as error:
            return str(error)
    return (
        "the proof does not verify although the witness satisfies every constraint: "
        "the key is not that of its circuit, or has bad points (cuzk inspect --deep)"
    )
