"""pydantic's schema of records, made strict. A plain transformation of its data: nothing is imported for it.

Done on the schema, not by annotations on the records, since those are the standard library's alone. Without
it a nested value of unknown kind is tried against each member of its union, and a missing kind is guessed.
"""

from __future__ import annotations

from typing import Any, cast


def told_by_kind(schema: Any) -> Any:
    """`schema` (a pydantic core schema) with unions told by `kind`, `kind` required, unknown fields refused.

    A union of records without `kind` stays as it is. Raises TypeError for a union with one kind twice.
    """
    return _strict(schema, {d["ref"]: d for d in schema.get("definitions", ())})


def _strict(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_strict(n, definitions) for n in node]
    if not isinstance(node, dict):
        return node
    new = {key: value if key == "default" else _strict(value, definitions) for key, value in node.items()}
    match node.get("type"):
        case "union":
            tags = [_tag_of(choice, definitions) for choice in node["choices"]]
            return _told(tags, new["choices"]) if all(tags) else new
        case "dataclass-field" if node["name"] == "kind":
            new["schema"] = new["schema"].get("schema", new["schema"])  # without its default
        case "dataclass-args":
            new["extra_behavior"] = "forbid"
    return new


def _told(tags: list[str | None], choices: list[Any]) -> dict[str, Any]:
    if len(set(tags)) < len(tags):
        raise TypeError(f"one kind twice in a union: {tags}")
    return {"type": "tagged-union", "discriminator": "kind", "choices": dict(zip(tags, choices, strict=True))}


def _tag_of(choice: dict[str, Any], definitions: dict[str, Any]) -> str | None:
    """The `kind` of a member, or None when it has none."""
    choice = definitions.get(choice.get("schema_ref", ""), choice)
    if choice["type"] != "dataclass":
        return None
    kind = next((f["schema"] for f in choice["schema"]["fields"] if f["name"] == "kind"), None)
    return None if kind is None else cast(str, kind.get("schema", kind)["expected"][0])
