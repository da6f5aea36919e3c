"""Representation of a model in a prompt and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from axode.errors import counted
from axode.model.model_parts import facts_of, library_of

if TYPE_CHECKING:
    from axode.model.model import Model


class ModelDisplay:
    """Short texts about a `Model`."""

    def __repr__(self) -> str:
        model = cast("Model", self)
        single = ", float32" if library_of(model).precision == "float32" else ""
        return (
            f"Model('{model.name}': {counted(len(model.coordinates), 'coordinate')}, "
            f"{counted(len(model.independent), 'speed')}, {counted(len(model.inputs), 'input')}, "
            f"{model.target}{single})"
        )

    def _repr_html_(self) -> str:
        from axode.printing.html import limited_table, notebook

        facts = facts_of(cast("Model", self))
        units = dict(zip(facts.speeds, facts.speed_units, strict=True))
        groups = (
            ("coordinate", zip(facts.coordinates, facts.coordinate_units, strict=True)),
            ("independent speed", ((name, units.get(name, "")) for name in facts.independent)),
            ("input", zip(facts.inputs, facts.input_units, strict=True)),
            ("measure", (measure[:2] for measure in facts.measures)),
        )
        rows = [(kind, name, unit) for kind, entries in groups for name, unit in entries]
        return notebook(repr(self), limited_table(("", "name", "unit"), rows))
