"""One proof of a key and a witness on this machine's GPU: what `cuzk prove --device cuda` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuzk.errors import CuzkError
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import Proved
from cuzk.model.scenario import Scenario

OpenGpu = Callable[[int], Any]


def prove_on_gpu(
    key: ProvingKey, witness: Any, host: Callable[[], Scenario], *, quotient: str | None = None,
    blinding: Blinding | None = None, threads: int | None = None, open_gpu: OpenGpu | None = None,
) -> Proved:  # fmt: skip
    """A verified proof. A small circuit with matrices in rows is one graph of kernels (cuzk.groth16.gpu.small); any other goes
    through the pipeline on `host()`, this machine as a scenario.

    Raises HardwareMissing without a usable GPU, InputError for a key that does not go with the witness, ProofInvalid.
    """
    import numpy as np

    from cuzk.exec.cuda import open_cuda
    from cuzk.groth16.gpu.small import LARGEST_LOG_DOMAIN, SmallProver

    blinding = blinding or Blinding.random()
    opened = (open_gpu or open_cuda)(0)
    if hasattr(key.system, "a") and key.log_domain <= LARGEST_LOG_DOMAIN and isinstance(witness, np.ndarray):
        prover = SmallProver(opened, key, quotient)
        try:
            return prover.prove(witness, blinding)
        finally:
            prover.free()
    return _through_the_pipeline(key, witness, host(), quotient, blinding, threads, lambda index: opened)


def _through_the_pipeline(key: ProvingKey, witness: Any, scenario: Scenario, quotient: str | None, blinding: Blinding,
                          threads: int | None, open_gpu: OpenGpu) -> Proved:  # fmt: skip
    from cuzk.exec.cuda import CudaProver
    from cuzk.exec.run import Proving, bind_key, run
    from cuzk.native.memory import process_resident_bytes

    def make(key: ProvingKey, assignments: Any, chosen: str, idle_bytes: int, threads: int | None, _: Any) -> CudaProver:
        return CudaProver(key, assignments, chosen, idle_bytes, threads, lambda: blinding, open_gpu=open_gpu)

    one = scenario.circuit.model_copy(update={"partitions": 1})
    scenario = scenario.model_copy(
        update={"circuit": one, "workload": scenario.workload.model_copy(update={"proofs": 1, "circuits": ()})}
    )
    if quotient is not None:
        scenario = scenario.with_policy(quotient=quotient)
    proving = Proving(str(key.path), (), None, threads)
    prepared = bind_key(scenario, key, [witness], proving, idle_bytes=process_resident_bytes(), make_device=make)
    result = run(prepared.scenario, prepared.device)
    if result.error is not None:
        raise result.error if isinstance(result.error, CuzkError) else CuzkError(f"the run failed: {result.error}")
    proof, public = prepared.device.take_proof(0)[0]
    return Proved(proof, public, prepared.measured["quotient"], blinding.private, result.document["measured"]["step_s"])
