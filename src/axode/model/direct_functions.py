"""Functions of a model as C functions: the default path of single states, and prepared calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.direct_call import direct_call
from axode.errors import InvalidArgument, NotApplicable, shortened
from axode.model.conditions import Conditions
from axode.model.model_parts import defaults_of, entry_of, facts_of
from axode.model.named_arguments import batch_shape

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]
PLAIN = (  # methods of a model that do no more than to evaluate the function of their name
    *("forward_dynamics", "inverse_dynamics", "mass_matrix", "coriolis", "bias"),
    *("potential_force", "dissipative_force", "input_force", "joint_speeds", "rates"),
    *("accelerations", "multipliers", "motor_powers", "contact_forces", "energy", "residual"),
    *("residual_jacobian", "speed_map", "measures", "measures_jacobian", "poses", "twists"),
    "tangent_map",
)


def _does_more(model: Model, name: Any) -> bool:
    """Return whether the method of this name does more than to evaluate the function."""
    return (name == "inverse_dynamics" and model.is_underactuated) or (
        name == "contact_forces" and bool(facts_of(model).unknown_forces)
    )


def use_directly(model: Model, name: Any) -> None:
    """Put a C function in place of a method of a model, once its function has been called.

    The method stays what is called for batches, keywords, values by name and all else that is not
    plain.
    """
    own = vars(model)
    if name not in PLAIN or name in own or _does_more(model, name):
        return
    function = entry_of(model, name).call
    if isinstance(function, CompiledFunction):
        method = getattr(model, name)
        code = method.__func__.__code__
        arguments = code.co_varnames[1 : code.co_argcount]
        plain = inspect.signature(method)
        plain = plain.replace(
            parameters=[p.replace(annotation=p.empty) for p in plain.parameters.values()],
            return_annotation=plain.empty,
        )
        text = f"{name}{plain}\n--\n\n{inspect.getdoc(method)}"  # as builtin functions have it
        own[name] = direct_call(function, arguments, defaults_of(model), method, text=text)


def table_call(model: Model, name: str) -> tuple[list[str], Callable[..., Array]]:
    """Return what a table of derivatives takes, and a function of that which evaluates it."""
    entry = entry_of(model, name)
    takes = [argument for argument in entry.arguments if argument not in ("t", "p")]

    def call(*arrays: Any) -> Array:
        return model.evaluate(name, dict(zip(takes, arrays, strict=True)))

    if not isinstance(entry.call, CompiledFunction):
        return takes, call
    return takes, direct_call(entry.call, takes, defaults_of(model), call)


def _makes(batch: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether arrays of some batches, if any are given, are together one of a shape."""
    try:
        return not shapes or np.broadcast_shapes(*shapes) == batch
    except ValueError:
        return False


def prepare_call(
    model: Model,
    function: str,
    batch: int | Sequence[int],
    out: Array | None,
    conditions: Conditions,
) -> Callable[..., Array]:
    """Prepare calls of a function; see `Model.prepare`."""
    shape = batch_shape(batch)
    entry, options = entry_of(model, function), conditions.options
    names = [name for name in entry.arguments if name not in ("t", "p")]

    def call(*arrays: Any) -> Array:
        if len(arrays) > len(names):
            raise InvalidArgument(f"{function} takes {', '.join(names)}; got {len(arrays)}")
        shapes = [np.shape(array) for array in arrays]
        if not _makes(shape, [one[:-1] for one in shapes if one]):
            raise InvalidArgument(
                f"{function}: prepared with batch={shape}, got arrays of shapes "
                f"{', '.join(map(str, shapes))}"
            )
        if _does_more(model, function):
            made[...] = getattr(model, function)(*arrays, **options)
        else:
            given = dict(zip(names, arrays, strict=False))
            model.evaluate(function, given, {**options, "out": made})
        return made

    call.__name__ = function
    if not isinstance(entry.call, CompiledFunction):
        raise NotApplicable("prepare: for functions of models that are compiled for the CPU")
    size = (*shape, *entry.call.tape.outputs[0].shape)
    try:
        made = np.zeros(size) if out is None else out
    except (MemoryError, ValueError):
        raise InvalidArgument(f"batch: {shape} needs more memory than there is") from None
    plain = type(made) is np.ndarray and made.shape == size and made.dtype == np.float64
    if not plain or not (made.flags.carray and made.flags.aligned):
        raise InvalidArgument(
            f"out: a writable C-contiguous array of float64 of shape {size} is needed, got "
            f"{shortened(made)}"
        )
    if _does_more(model, function):
        return call
    known = defaults_of(model) | {"t": np.full(1, float(conditions.t))}
    known |= {} if conditions.p is None else {"p": np.array(conditions.p, dtype=float)}
    return direct_call(entry.call, names, known, call, batch=shape, out=made)
