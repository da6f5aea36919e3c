"""Self-tests in C: samples, the results they must give, and the errors that rounding explains.

Other compilers contract products and sums, other mathematical libraries round their functions
differently. What that can do is bounded for every sample by `rounding_bounds`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axode.codegen.tape.operations import Array
from axode.codegen.tape.rounding_bounds import RoundedSamples, round_numbers, rounding_bounds
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.c_numbers import CNumbers

SAMPLES = 3
CANDIDATES = 64
# Bounds are of first order, and the reference is rounded as well.
ACCEPTED_BOUNDS = 2.0
# Relative bound beyond which first order says nothing, and a sample is not used.
LARGEST_BOUND = 0.1


@dataclass(frozen=True)
class FunctionCheck:
    """A function, samples of its arguments, and what it must give there.

    Attributes:
        name: C name of the function.
        inputs: Arguments, each with samples along the first axis.
        outputs: Results, likewise.
        accepted: Errors that are accepted, of the shape of the results.
        statements: C statements that compute `out0`, `out1`, ... of sample `s` from `in0[s]`, ...;
            the call of the function unless given. They may count up `wrong`.
    """

    name: str
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    accepted: Sequence[Array]
    statements: tuple[str, ...] = ()


def check_tape(tape: Tape, name: str, precision: str) -> FunctionCheck:
    """Check of a tape at the best conditioned of some random samples.

    Args:
        tape: What the function computes.
        name: C name of the function.
        precision: "float64" or "float32".
    """
    if not tape.inputs:
        results = [np.repeat(x[np.newaxis], SAMPLES, 0) for x in tape.evaluate()]
        written = [_written_error(x, precision) for x in results]
        return FunctionCheck(name, [], results, written)
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=(CANDIDATES, *port.shape)) for port in tape.inputs]
    return check_samples(name, rounding_bounds(tape, drawn, precision), precision, SAMPLES, 0.0)


def check_samples(
    name: str,
    samples: RoundedSamples,
    precision: str,
    count: int,
    spread: float,
    statements: tuple[str, ...] = (),
) -> FunctionCheck:
    """Check of a function at some of given samples.

    Args:
        name: C name of the function.
        samples: Samples to choose from.
        precision: "float64" or "float32".
        count: How many are chosen.
        spread: 0 takes the best conditioned samples, 1 samples of all kinds.
        statements: See `FunctionCheck`.
    """
    relative = samples.relative(samples.bounds)
    usable = int(np.count_nonzero(relative < LARGEST_BOUND))
    last = min(max(count, int(spread * usable)), len(relative))
    chosen = np.argsort(relative, kind="stable")[np.linspace(0, last - 1, count).astype(int)]
    accepted = [
        ACCEPTED_BOUNDS * bound[chosen] + _written_error(result[chosen], precision)
        for result, bound in zip(samples.results, samples.bounds, strict=True)
    ]
    inputs, outputs = ([x[chosen] for x in side] for side in (samples.inputs, samples.results))
    return FunctionCheck(name, inputs, outputs, accepted, statements)


def _written_error(array: Array, precision: str) -> Array:
    """What writing numbers in a precision changes."""
    finite = np.where(np.isfinite(array), array, 0.0)
    return np.abs(finite - round_numbers(finite, precision))


def self_test(header: str, checks: Sequence[FunctionCheck], numbers: CNumbers) -> str:
    """Program that prints how many results of each function are wrong, and returns 0 if none.

    Args:
        header: Name of the header that declares the functions, without ending.
        checks: What is checked.
        numbers: Type of all numbers.
    """
    tests = [f"test_{k}" for k in range(len(checks))]
    return "\n".join(
        [
            f"/* Self-test of {header}: prints how many results are wrong, returns 0 if none. */",
            f'#include "{header}.h"\n',
            "#include <math.h>",
            "#include <stdio.h>\n",
            _DIFFERS.replace("REAL", numbers.type)
            .replace("HUNDRED", numbers.literal(100.0))
            .replace("MANY", numbers.literal(1e6))
            .replace("ZERO", numbers.literal(0.0)),
            *(_test(name, check, numbers) for name, check in zip(tests, checks, strict=True)),
            "int main(void)",
            "{",
            "    int wrong = 0;",
            *(f"    wrong += {name}();" for name in tests),
            "    return wrong != 0;",
            "}\n",
        ]
    )


_DIFFERS = """static int differs(REAL got, REAL expected, REAL accepted, REAL *worst)
{
    const REAL error = got > expected ? got - expected : expected - got;
    if (expected != expected || got == expected) return !(got == expected || got != got);
    if (accepted > ZERO && error > *worst * accepted) *worst = error / accepted;
    return !(error <= accepted);
}

static int report(const char *name, int wrong, REAL worst)
{
    const int part = (int)(worst < MANY ? worst * HUNDRED : MANY);
    printf("%s: %d wrong, largest error %d %% of what rounding explains\\n", name, wrong, part);
    return wrong;
}
"""


def _test(name: str, check: FunctionCheck, numbers: CNumbers) -> str:
    """A function that returns how many results are wrong."""
    count = len(check.outputs[0]) if check.outputs else 0
    tables = {
        **{f"in{k}": array for k, array in enumerate(check.inputs)},
        **{f"expected{k}": array for k, array in enumerate(check.outputs)},
        **{f"accepted{k}": array for k, array in enumerate(check.accepted)},
    }
    sizes = [array[0].size if len(array) else 0 for array in check.outputs]
    passed = [f"in{k}[s]" for k in range(len(check.inputs))]
    passed += [f"out{k}" for k in range(len(sizes))]
    call = check.statements or (f"{check.name}({', '.join(passed)});",)
    used = set(re.findall(r"\w+", " ".join(call)))
    tables = {k: v for k, v in tables.items() if not k.startswith("in") or k in used}
    lines = [
        f"static int {name}(void)",
        "{",
        *(_table(label, array, numbers) for label, array in tables.items()),
        *(f"    {numbers.type} out{k}[{max(1, size)}];" for k, size in enumerate(sizes)),
        f"    {numbers.type} worst = {numbers.literal(0.0)};",
        "    int s, i, wrong = 0;",
        f"    for (s = 0; s < {count}; ++s) {{",
        *(f"        {statement}" for statement in call),
        *(
            f"        for (i = 0; i < {size}; ++i) wrong +="
            f" differs(out{k}[i], expected{k}[s][i], accepted{k}[s][i], &worst);"
            for k, size in enumerate(sizes)
        ),
        "    }",
        "    (void)i;",
        f'    return report("{check.name}", wrong, worst);',
        "}\n",
    ]
    return "\n".join(lines)


def _table(name: str, array: Array, numbers: CNumbers) -> str:
    rows = array.reshape(len(array), -1)
    width = max(1, rows.shape[1])
    text = ",\n".join(
        "        {" + (", ".join(map(numbers.literal, row)) or numbers.literal(0.0)) + "}"
        for row in rows.tolist()
    )
    head = f"    static const {numbers.type} {name}[{len(rows)}][{width}]"
    return f"{head} = {{\n{text}\n    }};"
