"""What a model is made of, for the package's own use, and how it is displayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from axode.errors import NotApplicable, counted, warn_renamed
from axode.mechanism.elements.wheels import warn_without_contacts

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.model.function_source import AbstractLibrary, Entry
    from axode.model.metadata import Facts
    from axode.model.model import Model
    from axode.model.named_arguments import Array, NamedArguments
    from axode.symbolic.constraints.row_choice import RowNumbers


class ModelParts:
    """The parts of a `Model`, which other modules read by the functions of this module."""

    _facts: Facts
    _library: AbstractLibrary
    _entries: dict[Any, Entry]
    _arguments: NamedArguments
    _memory: dict[Any, Any] | None = None
    _cpu: Model | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a part by the name it had when it was public."""
            if name not in _FORMER:
                message = f"'{type(self).__name__}' has no attribute '{name}'"
                raise AttributeError(message, name=name, obj=self)
            instead, read = _FORMER[name]
            warn_renamed(f"model.{name}", instead)
            return read(self)


def facts_of(model: ModelParts) -> Facts:
    """Return names, units, sizes and defaults of a model."""
    return model._facts


def require_ideal(verb: str, model: ModelParts) -> None:
    """Refuse contacts that slip and lift, joints that rub and stops, for what knows none of them.

    Raises:
        NotApplicable: naming them, with the remedy.
    """
    names = facts_of(model).contact_table.names
    if names:
        listed = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        raise NotApplicable(
            f"{verb} knows no friction, lift-off or stops, and '{facts_of(model).name}' has them: "
            f"{listed}.\n  simulate does; for the mechanism with wheels that never slip, without "
            "stops and dry friction, take mechanism.ideal().derive().compile()"
        )


def warn_once(model: ModelParts, function: str) -> None:
    """Warn, once for each function, that it leaves the forces of contacts out."""
    names = facts_of(model).contact_table.names
    if names and function not in (known := memory_of(model).setdefault("warned", set())):
        known.add(function)
        warn_without_contacts(facts_of(model).name, names, [function])


def library_of(model: ModelParts) -> AbstractLibrary:
    """Return the source of a model's functions."""
    return model._library


def defaults_of(model: ModelParts) -> dict[str, Array]:
    """Return arrays of the arguments that are left out, by name; they must not change."""
    return model._arguments.defaults


def row_numbers_of(model: ModelParts) -> RowNumbers | None:
    """Return what choices of rows and speeds are made from; None if they cannot be changed."""
    return model._library.row_numbers


def memory_of(model: ModelParts) -> dict[Any, Any]:
    """Return what problems keep of a model for the next call; it is not copied with the model."""
    if model._memory is None:
        model._memory = {}
    return model._memory


def function_tape(model: ModelParts, function: str) -> Tape:
    """Return the scalar operations of a function, or of its `_jvp` or `_vjp`."""
    from axode.model.function_products import product_tape

    return product_tape(model._library, function)


def entry_of(model: ModelParts, function: Any) -> Entry:
    """Return a function of a model with its arguments' names, compiled when it is first called."""
    entry = model._entries.get(function)
    if entry is None:
        entry = model._entries[function] = model._library.entry(function)
    return entry


def model_on_cpu(model: Model) -> Model:
    """Return the model, or if it is on a GPU its counterpart on the CPU in double precision."""
    if model.target != "cuda":
        return model
    if model._cpu is None:
        model._cpu = type(model)(model._facts, model._library.on_target("cpu"))
    return model._cpu


_FORMER: dict[str, tuple[str, Any]] = {
    "facts": ("model.signals", facts_of),
    "library": ("model.functions", library_of),
    "tape": ("model.operations", lambda model: lambda function: function_tape(model, function)),
    "on_cpu": ("equations.compile()", lambda model: lambda: model_on_cpu(model)),
}


# display ------------------------------------------------------------------------------------------


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
        from axode.printing.mathml import limited_table, notebook

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
