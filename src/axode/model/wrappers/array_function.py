"""A function of a model and its derivatives, with arguments in order: what wrappers call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from axode.errors import InvalidArgument, shortened
from axode.model.model_parts import facts_of
from axode.model.named_arguments import SCALARS

if TYPE_CHECKING:
    from axode.model.function_products import FunctionProducts
    from axode.model.function_source import Entry
    from axode.model.model import Model
    from axode.model.named_arguments import NamedArguments

Names = tuple[str, ...]


class ArrayFunction:
    """A function of a model: value, gradients, changes along directions and the second order.

    Args:
        model: The model.
        products: The function and its derivatives.
        named: How the model reads arguments.

    Attributes:
        name: Name of the function.
        arguments: Names of its arguments, in order; "t" and "p" are the last.
        shape: Shape of one result.
    """

    def __init__(self, model: Model, products: FunctionProducts, named: NamedArguments) -> None:
        self.model, self._products, self._named = model, products, named
        self.name, self.shape, self.size = products.name, products.shape, products.size
        self.arguments: Names = products.arguments
        self._sizes = products.sizes(self.arguments)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)}) of {self.model!r}"

    def call(self, kind: str, names: tuple[Names, ...], arrays: Sequence[Any], **o: Any) -> Any:
        """Evaluate the function or one of its derivatives.

        Args:
            kind: "value"; "jvp", the change along changes of the arguments `names[0]`, and
                "jvp_jvp", the change of that along `names[1]`; "vjp", the gradients by the
                arguments `names[0]`, one after the other, and "hvp", the change of those along
                `names[1]`; "second" has, before these, the change of the result, flat.
            names: See `kind`.
            arrays: One per argument, then weights of the result, flat, for "vjp", "hvp" and
                "second", then changes of arguments in the order of `names`.
            o: Keywords of compiled functions.
        """
        return self._entry(kind, names).call(*arrays, **o)

    def _entry(self, kind: str, names: tuple[Names, ...]) -> Entry:
        made = self._products
        match kind:
            case "value":
                return made.value()
            case "jvp":
                return made.jvp(*names)
            case "vjp":
                return made.vjp(*names)
            case "jvp_jvp":
                return made.second_change(*names)
        return made.second_order(*names, jvp=kind == "second")

    def result_shape(self, kind: str, names: tuple[Names, ...]) -> tuple[int, ...]:
        """Shape of what `call` gives, behind the batch axes."""
        if kind in ("value", "jvp", "jvp_jvp"):
            return self.shape
        return (sum(self.widths(names[0])) + (self.size if kind == "second" else 0),)

    def widths(self, of: Names) -> list[int]:
        """Lengths of gradients."""
        return [self._sizes[name] for name in of]

    def flat(self, weights: Any) -> Any:
        """Weights of the result along one axis."""
        batch = weights.shape[: weights.ndim - len(self.shape)]
        return weights.reshape((*batch, self.size))

    def ordered(
        self, given: Sequence[Any], named: Mapping[str, Any], t: Any, parameters: Any
    ) -> list[Any]:
        """What was given for each argument, None for defaults.

        Raises:
            InvalidArgument: for too many arguments, others, or one given twice, and for parameters
                that are fixed.
        """
        names = [name for name in self.arguments if name not in ("t", "p")]
        if len(given) > len(names):
            raise InvalidArgument(
                f"{self.name} takes {', '.join(names)}; got {len(given)} arguments"
            )
        for name in named:
            if name not in names[len(given) :]:
                raise InvalidArgument(
                    f"{self.name} takes {', '.join(names)}, each once, t and parameters; got "
                    f"'{name}' besides {len(given)} arguments by position"
                )
        if parameters is not None and facts_of(self.model).fixed:
            raise InvalidArgument(
                "this model's parameters are fixed; compile(parameters='free') to change them"
            )
        known = {**dict(zip(names, given, strict=False)), **named} | {"t": t, "p": parameters}
        return [known.get(name) for name in self.arguments]

    def vector(
        self,
        argument: str,
        value: Any,
        convert: Callable[[Any], Any],
        stack: Callable[[list[Any]], Any],
    ) -> Any:
        """Array of an argument in order, by name, or its default.

        Args:
            argument: Its name.
            value: What was given.
            convert: Makes an array of the library of numbers or of NumPy's arrays.
            stack: Broadcasts arrays against each other and puts them side by side.
        """
        default = self._named.defaults[argument]
        if value is None and argument == "h":
            raise InvalidArgument(f"{self.name}: h, the length of the step, is needed [s]")
        if value is None:
            return convert(default)
        if isinstance(value, Mapping):
            named = self._named.entries(argument, value)
            entries = [
                as_array(argument, named.get(k, x), convert) for k, x in enumerate(default.tolist())
            ]
            return stack(entries)
        array = as_array(argument, value, convert)
        if argument in SCALARS:
            return array[..., None]
        if not array.ndim or array.shape[-1] != default.size:
            raise InvalidArgument(
                f"{self.name}: '{argument}' has shape {tuple(array.shape)}, expected "
                f"(..., {default.size})"
            )
        return array


def as_array(name: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    """Array of a library that wraps functions.

    Raises:
        InvalidArgument: for what the library does not take for numbers.
    """
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name}: expected numbers, got {shortened(value)}; arrays are real and dense"
        ) from None
