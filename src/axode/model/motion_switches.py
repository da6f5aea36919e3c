"""Where motions that are prescribed in time switch, and what impulses there need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axode.codegen.tape.switching import Switches, find_switches
from axode.errors import NotApplicable, UnknownName
from axode.model.model_parts import facts_of, function_tape

if TYPE_CHECKING:
    from axode.model.model import Model

MOMENTUM = "momentum_speeds"  # function that jumps of prescribed rates follow from
ENERGY = "energy"


def motion_switches(model: Model) -> tuple[Switches, ...]:
    """Collect what switches by time alone in the prescribed motions of a model."""
    names = ("state_rate", "residual") if facts_of(model).driven else ()
    found = (find_switches(function_tape(model, name), ("p",)) for name in names)
    return tuple(some for some in found if some is not None)


def require_momentum(model: Model, switches: Sequence[Switches]) -> None:
    """Check that a model whose motions switch has what exported steps need there.

    Raises:
        NotApplicable: if it was read from a file that lacks it.
    """
    missing = [name for name in (MOMENTUM, ENERGY) if not _has(model, name)] if switches else []
    if missing:
        raise NotApplicable(
            f"'{model.name}': prescribed motions switch, where speeds may jump; steps need "
            f"{' and '.join(repr(name) for name in missing)} there, and the model's file has none."
            "\n  Save it with the model: model.save(path, functions=[*model.functions, "
            f"'{MOMENTUM}'])"
        )


def _has(model: Model, name: str) -> bool:
    try:
        function_tape(model, name)
    except (NotApplicable, UnknownName):
        return False
    return True
