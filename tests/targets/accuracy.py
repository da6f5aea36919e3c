"""Measures the elementary functions against mpmath and writes the table in the docs.

python -m tests.targets.accuracy            # prints the table
python -m tests.targets.accuracy --write    # puts it into docs/guide/accuracy.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import mpmath as mp
import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, Kind
from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets.cpu import CompiledFunction
from tests.targets.host_kernels import evaluated

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "accuracy.md"
BEGIN, END = "<!-- table begins -->", "<!-- table ends -->"
SINGLE_BEGIN, SINGLE_END = "<!-- single begins -->", "<!-- single ends -->"


@dataclass(frozen=True)
class Range:
    """Arguments of a function: an interval an argument, log-uniform or uniform."""

    kind: Kind
    low: float
    high: float
    budget: float  # ulp that the tests allow
    spread: str = "uniform"
    second: tuple[float, float] | None = None

    @property
    def label(self) -> str:
        first = f"{_short(self.low)} ... {_short(self.high)}"
        if self.second is None:
            return first
        return f"{first}; {_short(self.second[0])} ... {_short(self.second[1])}"

    def arguments(
        self, rng: np.random.Generator, count: int, number: type = np.float64
    ) -> list[np.ndarray]:
        return [a.astype(number) for a in self._arguments(rng, count)]

    def _arguments(self, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        if self.spread == "log":
            size = np.exp(rng.uniform(math.log(self.low), math.log(self.high), count))
            first = size if self.kind in POSITIVE_ONLY else size * rng.choice((-1.0, 1.0), count)
        elif self.spread == "near pi/2":
            n = rng.integers(1, int(self.high / 1.6), count)
            first = n * (math.pi / 2)
            first += np.spacing(first) * rng.integers(-3, 4, count)
        else:
            first = rng.uniform(self.low, self.high, count)
        if self.second is None:
            return [first]
        return [first, rng.uniform(*self.second, count)]


POSITIVE_ONLY = (Kind.LOG, Kind.POW, Kind.SQRT, Kind.ACOSH, Kind.LOG1P)

RANGES = (
    Range(Kind.SIN, -math.pi, math.pi, 1.5),
    Range(Kind.SIN, -1e6, 1e6, 1.5),
    Range(Kind.SIN, 1.0, 1e6, 1.5, "near pi/2"),
    Range(Kind.SIN, 1e6, 2.0**40, 1.5, "log"),
    Range(Kind.COS, -math.pi, math.pi, 1.5),
    Range(Kind.COS, -1e6, 1e6, 1.5),
    Range(Kind.COS, 1.0, 1e6, 1.5, "near pi/2"),
    Range(Kind.COS, 1e6, 2.0**40, 1.5, "log"),
    Range(Kind.TAN, -1e6, 1e6, 4.0),
    Range(Kind.TAN, 1.0, 1e6, 4.0, "near pi/2"),
    Range(Kind.ASIN, -1.0, 1.0, 2.0),
    Range(Kind.ASIN, 1e-300, 1.0, 2.0, "log"),
    Range(Kind.ACOS, -1.0, 1.0, 2.0),
    Range(Kind.ACOS, 0.999, 1.0, 2.0),
    Range(Kind.ATAN, -10.0, 10.0, 2.0),
    Range(Kind.ATAN, 1e-300, 1e300, 2.0, "log"),
    Range(Kind.ATAN2, -10.0, 10.0, 3.0, second=(-10.0, 10.0)),
    Range(Kind.ATAN2, 1e-300, 1e300, 3.0, "log", second=(-1e-3, 1e3)),
    Range(Kind.EXP, -2.0, 2.0, 1.5),
    Range(Kind.EXP, -708.0, 709.0, 1.5),
    Range(Kind.EXPM1, -2.0, 2.0, 3.0),
    Range(Kind.EXPM1, 1e-300, 700.0, 3.0, "log"),
    Range(Kind.LOG, 0.5, 2.0, 1.5),
    Range(Kind.LOG, 1e-320, 1e308, 1.5, "log"),
    Range(Kind.LOG1P, -0.9, 2.0, 2.0),
    Range(Kind.LOG1P, 1e-300, 1e300, 2.0, "log"),
    Range(Kind.POW, 1e-3, 1e3, 2.0, "log", second=(-20.0, 20.0)),
    Range(Kind.POW, 0.9, 1.1, 2.0, second=(-3000.0, 3000.0)),
    Range(Kind.SINH, -2.0, 2.0, 4.0),
    Range(Kind.SINH, 1e-300, 710.0, 4.0, "log"),
    Range(Kind.COSH, -2.0, 2.0, 3.0),
    Range(Kind.COSH, 1e-3, 710.0, 3.0, "log"),
    Range(Kind.TANH, -3.0, 3.0, 4.0),
    Range(Kind.TANH, 1e-300, 30.0, 4.0, "log"),
    Range(Kind.ASINH, -3.0, 3.0, 4.0),
    Range(Kind.ASINH, 1e-300, 1e300, 4.0, "log"),
    Range(Kind.ACOSH, 1.0, 3.0, 4.0),
    Range(Kind.ACOSH, 1.0, 1e300, 4.0, "log"),
    Range(Kind.ATANH, -0.999, 0.999, 4.0),
    Range(Kind.ATANH, 1e-300, 0.9, 4.0, "log"),
    Range(Kind.ERF, -6.5, 6.5, 3.0),
    Range(Kind.ERF, 1e-300, 1.0, 3.0, "log"),
    Range(Kind.SQRT, 1e-300, 1e300, 0.51, "log"),
    Range(Kind.HYPOT, 1e-300, 1e300, 2.0, "log", second=(-1e3, 1e3)),
)


# In single precision; what is computed in double and rounded is told by two of its kind.
SINGLE_RANGES = (
    Range(Kind.SIN, -math.pi, math.pi, 1.5),
    Range(Kind.SIN, -(2.0**17), 2.0**17, 1.5),
    Range(Kind.SIN, 1.0, 1e5, 1.5, "near pi/2"),
    Range(Kind.COS, -math.pi, math.pi, 1.5),
    Range(Kind.COS, -(2.0**17), 2.0**17, 1.5),
    Range(Kind.COS, 1.0, 1e5, 1.5, "near pi/2"),
    Range(Kind.TAN, -1e3, 1e3, 4.0),
    Range(Kind.ASIN, -1.0, 1.0, 2.0),
    Range(Kind.ASIN, 1e-30, 1.0, 2.0, "log"),
    Range(Kind.ACOS, -1.0, 1.0, 2.0),
    Range(Kind.ATAN, -10.0, 10.0, 2.0),
    Range(Kind.ATAN, 1e-30, 1e30, 2.0, "log"),
    Range(Kind.ATAN2, -10.0, 10.0, 3.0, second=(-10.0, 10.0)),
    Range(Kind.ATAN2, 1e-30, 1e30, 3.0, "log", second=(-1e-3, 1e3)),
    Range(Kind.SQRT, 1e-30, 1e30, 0.51, "log"),
    Range(Kind.HYPOT, 1e-40, 1e38, 2.0, "log", second=(-1e3, 1e3)),
    Range(Kind.EXP, -80.0, 80.0, 0.51),
    Range(Kind.TANH, -3.0, 3.0, 0.51),
)


def _short(value: float) -> str:
    if abs(value) in (2.0**40, 2.0**17):
        return f"{'-' if value < 0 else ''}2^{math.log2(abs(value)):.0f}"
    if abs(value) == math.pi:
        return "pi" if value > 0 else "-pi"
    return f"{value:g}"


def single_operation(kind: Kind) -> CompiledFunction:
    """A function of one operation."""
    builder = TapeBuilder()
    arity = ARITY[kind]
    result = builder.apply(kind, *(builder.input(k, 0) for k in range(arity)))
    inputs = tuple(Port(name, ()) for name in "xyz"[:arity])
    tape = Tape.build(kind.label, inputs, (Port("result", ()),), builder, [result])
    return CompiledFunction(tape)


def exact(kind: Kind) -> Callable:
    """mpmath's function of a kind."""
    names = {Kind.POW: "power", Kind.LOG: "ln"}
    return getattr(mp, names.get(kind, kind.label))


def worst_error(
    test: Range,
    count: int,
    seed: int = 0,
    *,
    single: bool = False,
    compute: Callable[[Kind, list[np.ndarray]], np.ndarray] | None = None,
) -> float:
    """Largest error in units in the last place of the exact result, of the CPU or of `compute`."""
    number = np.float32 if single else np.float64
    arguments = test.arguments(np.random.default_rng(seed), count, number)
    compute = compute or (in_single if single else in_double)
    computed = compute(test.kind, arguments)
    worst = 0.0
    smallest = float(np.finfo(number).smallest_normal)
    with mp.workdps(50):
        function = exact(test.kind)
        for result, *numbers in zip(computed.tolist(), *(a.tolist() for a in arguments)):  # noqa: B905
            truth = function(*(mp.mpf(x) for x in numbers))
            rounded = abs(number(float(truth)))
            if not np.isfinite(rounded) or rounded < smallest:
                continue
            error = float(abs(mp.mpf(result) - truth) / float(np.spacing(rounded)))
            worst = max(worst, error if error == error else math.inf)
    return worst


def in_double(kind: Kind, arguments: list[np.ndarray]) -> np.ndarray:
    """An operation in double precision, by the CPU."""
    return np.asarray(single_operation(kind)(*arguments))


def elementwise(kind: Kind, count: int) -> Tape:
    """An operation on each of many numbers."""
    builder, places = TapeBuilder(), range(ARITY[kind])
    results = [builder.apply(kind, *(builder.input(k, i) for k in places)) for i in range(count)]
    inputs = tuple(Port("xyz"[k], (count,)) for k in places)
    return Tape.build(kind.label, inputs, (Port("result", (count,)),), builder, results)


def in_single(kind: Kind, arguments: list[np.ndarray]) -> np.ndarray:
    """An operation in single precision, by the kernel a GPU gets."""
    tape = single_operation(kind).tape
    vectors = [replace(port, shape=(1,)) for port in tape.inputs]
    tape = replace(tape, inputs=tuple(vectors), outputs=(Port("result", (1,)),))
    columns = [a[:, np.newaxis] for a in arguments]
    return evaluated(tape, *columns, precision="float32")[:, 0]


def table(count: int, ranges: tuple[Range, ...] = RANGES) -> str:
    """Markdown table of all measurements."""
    lines = ["| function | arguments | sampling | max error, ulp |", "|---|---|---|---|"]
    for test in ranges:
        spread = "near multiples of pi/2" if test.spread == "near pi/2" else test.spread
        error = worst_error(test, count, single=ranges is SINGLE_RANGES)
        lines.append(f"| {test.kind.label} | {test.label} | {spread} | {error:.2f} |")
    return "\n".join(lines)


def main() -> None:
    for ranges, begin, end in ((RANGES, BEGIN, END), (SINGLE_RANGES, SINGLE_BEGIN, SINGLE_END)):
        text = table(20_000, ranges)
        if "--write" in sys.argv:
            page = PAGE.read_text()
            head, rest = page.split(begin)
            tail = rest.split(end)[1]
            PAGE.write_text(f"{head}{begin}\n{text}\n{end}{tail}")
        else:
            print(text)


if __name__ == "__main__":
    main()
