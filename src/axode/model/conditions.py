"""Time and parameters: what every function of a model depends on besides the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.switching import Switches, find_switches
from axode.errors import NotApplicable, UnknownName
from axode.model.model_parts import facts_of, function_tape

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]


class Options(TypedDict, total=False):
    """Keywords of every function of a model.

    Attributes:
        t: Time [s], where it is explicit.
        parameters: Values by name instead of the defaults, or all of them in order, if the
            model's are free.
        out: Array to write the result to.
        threads: Number of threads that share a batch.
    """

    t: npt.ArrayLike
    parameters: Mapping[str, npt.ArrayLike] | Array
    out: Array
    threads: int


@dataclass(frozen=True)
class Conditions:
    """Time and parameters of one state or of many.

    Attributes:
        t: Time [s], one number or one per state.
        p: Free parameters in the model's order, (size,) or (*states, size); None where the model
            has none, and for the defaults.
        gains: Gains of a law in its order, as `p`; None where there is none.
    """

    t: Any = 0.0
    p: Array | None = None
    gains: Array | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        t: Any = 0.0,
        parameters: Mapping[str, npt.ArrayLike] | Array | None = None,
    ) -> Conditions:
        """Make conditions of what a model's functions take, parameters by name or in order."""
        given = parameters is not None and len(parameters) > 0
        return cls(t, model.parameter_vector(parameters) if given else None)

    @property
    def options(self) -> Options:
        """Keywords that the functions of a model take."""
        return {"t": self.t} if self.p is None else {"t": self.t, "parameters": self.p}

    def named(self, model: Model) -> dict[str, Any]:
        """Parameters by name; empty for the defaults."""
        if self.p is None:
            return {}
        return dict(zip(model.parameters, np.moveaxis(self.p, -1, 0), strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the states that they belong to; () if they serve any."""
        own = (a.shape[:-1] for a in (self.p, self.gains) if a is not None)
        return np.broadcast_shapes(np.shape(self.t), *own)

    def spread(self, shape: tuple[int, ...]) -> Conditions:
        """Conditions for every state of a shape, along one axis."""
        t = np.broadcast_to(self.t, shape).reshape(-1)

        def flat(array: Array | None) -> Array | None:
            if array is None or array.ndim == 1:
                return array
            return np.broadcast_to(array, (*shape, array.shape[-1])).reshape(len(t), -1)

        return Conditions(t, flat(self.p), flat(self.gains))

    def at(self, places: Any) -> Conditions:
        """Select the conditions of some states; what all of them share stays shared."""
        shape = self.shape
        if not shape:
            return self

        def select(array: Array | None) -> Array | None:
            if array is None or array.ndim == 1:
                return array
            return np.array(np.broadcast_to(array, (*shape, array.shape[-1]))[places])

        shared = np.ndim(self.t) == 0
        t = self.t if shared else np.array(np.broadcast_to(self.t, shape)[places])
        return Conditions(t, select(self.p), select(self.gains))


# switches of prescribed motions -------------------------------------------------------------------


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
