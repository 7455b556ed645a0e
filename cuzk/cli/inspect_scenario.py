"""A scenario's answer for the circuit in a file: does its machine hold it, under its policy, in its order."""

from __future__ import annotations

from typing import Any

from cuzk.errors import InputError


def under_scenario(found: dict[str, Any], scenario_path: str) -> dict[str, Any]:
    """Simulate the scenario with the counts that `inspect` found. Raises InputError for a file without a circuit,
    ScenarioError.
    """
    from cuzk.model.circuit import Circuit
    from cuzk.model.scenario import load_scenario
    from cuzk.report.verdict import verdict_line
    from cuzk.sim import simulate

    if "circuit" not in found:
        raise InputError(f"{found['file']}: a {found['kind']} holds no circuit that a scenario could run")
    scenario = load_scenario(scenario_path)
    theirs = scenario.circuit
    ours = Circuit.model_validate(circuit_fields(found, theirs.partitions))
    differing = {
        name: {"file": getattr(ours, name), "scenario": getattr(theirs, name)}
        for name in ("domain", "aux", "inputs")
        if getattr(ours, name) != getattr(theirs, name)
    }
    document = simulate(scenario.model_copy(update={"circuit": ours})).to_json()
    return {
        "scenario": scenario_path,
        "same_circuit": not differing,
        "differs": differing,
        "verdict": document["verdict"],
        "line": verdict_line(document),
        "peaks": document["peaks"],
    }


def circuit_fields(found: dict[str, Any], partitions: int) -> dict[str, Any]:
    """The model's counts, as far as a header tells them; what it does not tell is taken at its largest."""
    counts = found["circuit"]
    inputs, aux = counts["n_public"] + 1, max(1, counts["n_aux"])
    lists = found.get("points", {}).get("counts", {})
    nonzeros = counts.get("nonzeros", {})
    rows = counts["n_constraints"] + inputs if "n_constraints" in counts else counts["domain"]
    b_points = min(lists.get("b_g1", inputs + aux), inputs + aux)
    fields: dict[str, Any] = {
        "name": found["kind"],
        "constraints": rows,
        "aux": aux,
        "inputs": inputs,
        "nnz_a": nonzeros.get("a", 0),
        "nnz_b": nonzeros.get("b", 0),
        "nnz_c": nonzeros.get("c", 0),
        "density_a_aux": min(aux, max(0, lists.get("a", inputs + aux) - inputs)),
        "density_b_input": min(inputs, b_points),
        "density_b_aux": min(aux, max(0, b_points - inputs)),
        "partitions": partitions,
        "provenance": {"*": f"the header of {found['file']}"},
    }
    if "points" in found:
        fields["srs"] = found["points"]["bytes"]
    if found.get("matrices_bytes"):
        fields["pce"] = found["matrices_bytes"]
    return fields
