"""The JSON Schema of scenario files, for editors; `schemas/scenario.schema.json` holds it."""

from __future__ import annotations

from typing import Any

from cuzk.model.files import PARTS
from cuzk.model.scenario import Scenario

EXTENDS = {
    "description": "File or files that this one is laid over, relative to it or in the library; later ones win.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
}
_MODELS = {"machine": "Machine", "circuit": "Circuit", "calibration": "Calibration"}


def scenario_schema(pipeline: dict[str, Any] | None = None) -> dict[str, Any]:
    """The schema of a scenario file. `pipeline`: the schema of an inline pipeline, which this package does not know.

    Nothing is required in it, for any key may come from a file that is extended: what is missing is found on loading.
    """
    schema = Scenario.model_json_schema(mode="validation")
    definitions = schema.setdefault("$defs", {})
    if pipeline is not None:
        definitions |= pipeline.pop("$defs", {})
        definitions["Pipeline"] = pipeline
    schema = _relaxed(schema)
    definitions = schema["$defs"]
    properties = {"extends": EXTENDS} | schema["properties"]
    for kind, model in _MODELS.items():
        definitions[model]["properties"]["extends"] = EXTENDS
        properties[kind] = _part(definitions, model, f"the {kind}, or the file that holds it")
    _short_provenance(definitions)
    definitions["MixEntry"]["properties"]["circuit"] = _part(definitions, "Circuit", "a circuit, or its file")
    inline = {"$ref": "#/$defs/Pipeline"} if pipeline is not None else {"type": "object"}
    properties["pipeline"] = {
        "description": "a preset's name, a file, or the pipeline itself",
        "anyOf": [{"type": "string"}, inline],
    }
    assert set(PARTS) <= properties.keys()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cuzk scenario",
        "description": "One file: machine, circuit, pipeline, policy, workload, calibration and what must come out.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": dict(sorted(definitions.items())),
    }


def _short_provenance(definitions: dict[str, Any]) -> None:
    """`provenance` may be one origin for all figures, and an origin one line of text."""
    text = {"type": "string", "description": "source: note", "pattern": "^(document|fit|measured|derived|assumed)"}
    full = definitions.pop("Origin")
    definitions["FullOrigin"] = full
    definitions["Origin"] = {"anyOf": [text, {"$ref": "#/$defs/FullOrigin"}]}
    for model in definitions.values():
        field = model.get("properties", {}).get("provenance", {})
        if field.get("additionalProperties") == {"$ref": "#/$defs/Origin"}:
            model["properties"]["provenance"] = {"anyOf": [{"$ref": "#/$defs/Origin"}, field]}


def _part(definitions: dict[str, Any], model: str, what: str) -> dict[str, Any]:
    assert model in definitions
    return {"description": what, "anyOf": [{"type": "string"}, {"$ref": f"#/$defs/{model}"}]}


def _relaxed(node: Any) -> Any:
    """`node` without what loading decides: required keys, defaults (shown in the docs) and generated titles."""
    if isinstance(node, list):
        return [_relaxed(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key in ("required", "default", "title"):
            continue
        if key in ("properties", "$defs"):
            kept[key] = {name: _relaxed(child) for name, child in value.items()}
        else:
            kept[key] = _relaxed(value)
    return kept
