"""What parameters no mechanism can have, as a function of a model: for files and exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from axode.codegen.tape.formulas import TAPE_FUNCTIONS, Formula, Vector, formula_tape
from axode.codegen.tape.tape import Tape
from axode.errors import NotApplicable
from axode.mechanism.elements.bodies import Inertia
from axode.mechanism.parameter_values import bounded_values, directions
from axode.mechanism.topology import formulas_in
from axode.mechanism.values.expressions import TIME, Scalar, evaluate
from axode.model.model_parts import facts_of, function_tape
from axode.numerics.tolerances import NEGLIGIBLE, POINT_SIZE, SEVEN_DIGITS, THREE_DIGITS

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.model.model import Model


FAULTS = "parameter_faults"  # function of a model: p to numbers that are one where a check fails


@dataclass(frozen=True)
class ParameterChecks:
    """Checks of parameters.

    Attributes:
        tape: p to numbers that are one where a check fails, else zero.
        texts: What each check is, as in "mass of body 'rod': must be > 0".
    """

    tape: Tape
    texts: tuple[str, ...]

    @classmethod
    def of(cls, mechanism: Mechanism, names: Sequence[str]) -> ParameterChecks:
        """Make the checks of a mechanism's parameters."""
        texts: list[str] = []

        def checks(p: Vector) -> dict[str, Vector]:
            flags: Vector = []
            for text, flag in _checks(mechanism, dict(zip(names, p, strict=True))):
                texts.append(text)
                flags.append(flag)
            return {FAULTS: flags}

        return cls(formula_tape(FAULTS, {"p": len(names)}, checks), tuple(texts))


def parameter_checks(model: Model) -> ParameterChecks | None:
    """Return the checks of a model's free parameters, if there are any; a file may lack them."""
    if not facts_of(model).parameter_checks:
        return None
    try:
        return ParameterChecks(function_tape(model, FAULTS), facts_of(model).parameter_checks)
    except NotApplicable:
        return None


def c_text(text: str) -> str:
    """A text as C writes it, other characters than those of ASCII by their bytes."""
    made = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{"".join(made)}"'


def _checks(mechanism: Mechanism, values: dict[str, Formula]) -> Iterator[tuple[str, Formula]]:
    """Each check, and one where it fails."""
    if not values:
        return
    zero = 0.0 * next(iter(values.values()))
    known = {**values, TIME: zero}

    def number(scalar: Scalar) -> Formula:
        return zero + evaluate(scalar, known, TAPE_FUNCTIONS)

    for what, strict, scalar in bounded_values(mechanism):
        if next(formulas_in(scalar), None) is not None:
            x = number(scalar)
            yield (
                f"{what}: must be {'> 0' if strict else '>= 0'}",
                ~((x > 0.0) if strict else (x >= 0.0)),
            )
    for body in mechanism.bodies:
        if next(formulas_in((body.mass, body.inertia)), None) is not None:
            mass, *entries = map(number, (body.mass, *body.inertia.entries))
            of, bad = f"of body '{body.name}'", _is_unphysical(body.inertia, entries)
            said = zero + float(body.inertia.ideal or body.inertia.unphysical)
            nothing = reduce(Formula.most, map(abs, entries)).equals(0.0)
            ideal = said | (mass.equals(0.0) & nothing)
            point = reduce(Formula.most, map(abs, entries)) <= POINT_SIZE * mass
            possible = ((mass > 0.0) & (mass < 1e300)) | (mass.equals(0.0) & ideal)
            yield f"mass {of}: must be > 0", ~possible
            if not body.inertia.unphysical:
                yield f"inertia {of}: {_MOMENTS}", bad & ~(ideal & point)
    for what, axis in directions(mechanism):
        if next(formulas_in(axis), None) is not None:
            x, y, z = map(number, axis)
            length = (x * x + y * y + z * z).sqrt()
            yield f"{what}: must have length one", ~(abs(length - 1.0) <= SEVEN_DIGITS)


_MOMENTS = "principal moments must be > 0, and none larger than the sum of the others"


def _is_unphysical(inertia: Inertia, entries: Vector) -> Formula:
    """Check the principal moments, by minors and by the largest one in closed form."""
    xx, yy, zz, xy, xz, yz = entries
    minors = [xx, yy, zz, xx * yy - xy * xy, xx * zz - xz * xz, yy * zz - yz * yz]
    minors.append(xx * minors[5] - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz))
    trace = xx + yy + zz
    mean = trace / 3.0
    off = xy * xy + xz * xz + yz * yz
    a, b, c = xx - mean, yy - mean, zz - mean
    spread = ((a * a + b * b + c * c + 2.0 * off) / 6.0).sqrt()
    deviation = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    ratio = (spread > 0.0).then(deviation / (2.0 * spread * spread * spread), 0.0)
    turn = ratio.most(-1.0).least(1.0).function("acos") / 3.0
    largest = mean + 2.0 * spread * turn.function("cos")
    allowed = largest * (-NEGLIGIBLE if inertia.ideal else 0.0)
    bad = ~(trace - largest >= largest * (1.0 - THREE_DIGITS))
    for k, minor in enumerate(minors):
        power = 1 if k < 3 else 2 if k < 6 else 3
        bound = allowed * largest ** float(power - 1) if power > 1 else allowed
        bad = bad | ~((minor >= bound) if inertia.ideal else (minor > bound))
    return bad
