"""The data set card: which files are which configuration, and the types of their columns, so that none is guessed."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from schemas.rows import TRAINING_COLUMNS, CompletionRow, PreferenceRow, Provenance
from schemas.selection import Kind

_TYPES: dict[Any, str] = {str: "string", int: "int64", float: "float64", bool: "bool"}


def columns_of(kind: Kind) -> tuple[str, ...]:
    """The columns of a kind's rows."""
    shape = PreferenceRow if kind == "preference" else CompletionRow
    return tuple(field.name for field in msgspec.structs.fields(shape))


def features_of(kind: Kind) -> list[dict[str, str]]:
    """The declared type of every column: lists of JSON for what is trained, scalars for the rest."""
    training = TRAINING_COLUMNS[kind]
    shape: type[Provenance] = PreferenceRow if kind == "preference" else CompletionRow
    scalars = {field.name: field.type for field in msgspec.structs.fields(shape) if field.name not in training}
    return [
        *({"name": name, "list": "json"} for name in training),
        *({"name": name, "dtype": _dtype(kind_of)} for name, kind_of in scalars.items()),
    ]


def render_card(build: str, files: Mapping[Kind, PurePosixPath], rows: Mapping[Kind, int]) -> str:
    """README.md with a configuration for every kind that has rows."""
    from huggingface_hub import DatasetCardData

    front = DatasetCardData(
        configs=[{"config_name": kind, "data_files": str(path)} for kind, path in files.items()],
        dataset_info=[{"config_name": kind, "features": features_of(kind)} for kind in files],
    ).to_yaml()
    table = "\n".join(f"| {kind} | {rows[kind]} | `{path}` |" for kind, path in files.items())
    return f"""---
{front}
---

# Training rows

Build `{build}`. `manifest.json` counts every decision that was looked at and every reason for a refusal.
The rows are soundly built; that a model learns from them is a separate experiment.

| kind | rows | file |
|---|---|---|
{table}
"""


def _dtype(annotation: Any) -> str:
    options = [item for item in getattr(annotation, "__args__", (annotation,)) if item is not type(None)]
    return _TYPES[options[0]]
