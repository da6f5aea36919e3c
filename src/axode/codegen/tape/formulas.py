"""Small tapes written as formulas in Python: what integrators do around a model.

No CasADi is needed, so that a model read from a file can be simulated too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Port, Tape


@dataclass(slots=True, unsafe_hash=True)  # thousands are made: a frozen one takes twice as long
class Formula:
    """A value of a tape under construction; arithmetic on it adds instructions."""

    builder: TapeBuilder
    number: int

    def _apply(self, kind: Kind, *others: Formula | float) -> Formula:
        numbers = [
            x.number if isinstance(x, Formula) else self.builder.constant(float(x)) for x in others
        ]
        return Formula(self.builder, self.builder.apply(kind, *numbers))

    def __add__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.ADD, self, other)

    def __radd__(self, other: float) -> Formula:
        return self._apply(Kind.ADD, other, self)

    def __sub__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.SUB, self, other)

    def __rsub__(self, other: float) -> Formula:
        return self._apply(Kind.SUB, other, self)

    def __mul__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.MUL, self, other)

    def __rmul__(self, other: float) -> Formula:
        return self._apply(Kind.MUL, other, self)

    def __truediv__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.DIV, self, other)

    def __rtruediv__(self, other: float) -> Formula:
        return self._apply(Kind.DIV, other, self)

    def __neg__(self) -> Formula:
        return self._apply(Kind.NEG, self)

    def __pow__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.POW, self, other)

    def __rpow__(self, other: float) -> Formula:
        return self._apply(Kind.POW, other, self)

    def __abs__(self) -> Formula:
        return self._apply(Kind.FABS, self)

    def __lt__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.LT, self, other)

    def __le__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.LE, self, other)

    def __gt__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.LT, other, self)

    def __ge__(self, other: Formula | float) -> Formula:
        return self._apply(Kind.LE, other, self)

    def __and__(self, other: Formula) -> Formula:
        return self._apply(Kind.AND, self, other)

    def __or__(self, other: Formula) -> Formula:
        return self._apply(Kind.OR, self, other)

    def __invert__(self) -> Formula:
        return self._apply(Kind.NOT, self)

    def equals(self, other: Formula | float) -> Formula:
        """One where equal, else zero."""
        return self._apply(Kind.EQ, self, other)

    def then(self, yes: Formula | float, no: Formula | float) -> Formula:
        """`yes` where this is not zero, else `no`; the other one may be NaN."""
        return self._apply(Kind.SELECT, self, yes, no)

    def apply(self, kind: Kind) -> Formula:
        """Apply an operation of one operand."""
        return self._apply(kind, self)

    def function(self, name: str) -> Formula:
        """A function of one variable by its usual name: sin, exp, sqrt, ..."""
        return self.apply(Kind[name.upper()])

    def floor(self) -> Formula:
        """Largest integer below."""
        return self._apply(Kind.FLOOR, self)

    def sqrt(self) -> Formula:
        """Square root."""
        return self._apply(Kind.SQRT, self)

    def like(self, value: float) -> Formula:
        """A constant of the same tape."""
        return Formula(self.builder, self.builder.constant(value))

    def is_zero(self) -> bool:
        """Return whether it is the constant zero."""
        return self.builder.value(self.number) == 0

    def least(self, other: Formula | float) -> Formula:
        """The smaller one."""
        return self._apply(Kind.FMIN, self, other)

    def most(self, other: Formula | float) -> Formula:
        """The larger one."""
        return self._apply(Kind.FMAX, self, other)


Vector = list[Formula]


def _function(kind: Kind) -> Callable[..., Formula]:
    """Return the function that adds an instruction; an operand of it is a formula."""

    def build(*operands: Formula | float) -> Formula:
        first = next(x for x in operands if isinstance(x, Formula))
        return first._apply(kind, *operands)

    return build


# The functions of formulas of a description, on values of a tape.
TAPE_FUNCTIONS = {
    name: _function(Kind[name.upper()])
    for name in (
        *("sin", "cos", "tan", "asin", "acos", "atan", "sqrt", "exp", "log", "sinh", "cosh"),
        *("tanh", "sign", "floor", "atan2", "hypot", "and", "or", "not"),
    )
} | {
    "abs": _function(Kind.FABS),
    "min": _function(Kind.FMIN),
    "max": _function(Kind.FMAX),
    "where": _function(Kind.SELECT),
}


def formula_tape(
    name: str, inputs: Mapping[str, int], outputs: Callable[..., Mapping[str, Sequence[Formula]]]
) -> Tape:
    """A tape from a Python function of vectors.

    Args:
        name: Name of the tape.
        inputs: Names and sizes of the arguments; each is handed over as a list of formulas.
        outputs: Called with the inputs by name; gives named vectors.
    """
    builder = TapeBuilder()
    arguments = {
        argument: [Formula(builder, builder.input(k, i)) for i in range(size)]
        for k, (argument, size) in enumerate(inputs.items())
    }
    made = outputs(**arguments)
    results = [formula.number for vector in made.values() for formula in vector]
    return Tape.build(
        name,
        tuple(Port(n, (size,)) for n, size in inputs.items()),
        tuple(Port(n, (len(vector),)) for n, vector in made.items()),
        builder,
        results,
    )


def select_tape(name: str, size: int) -> Tape:
    """Vectors chosen by a flag: `yes` where it is not zero, else `no`."""
    return formula_tape(
        name,
        {"flag": 1, "yes": size, "no": size},
        lambda flag, yes, no: {
            "chosen": [flag[0].then(a, b) for a, b in zip(yes, no, strict=True)]
        },
    )
