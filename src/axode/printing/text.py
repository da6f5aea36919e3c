"""Short equations as text, with the model's own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axode.errors import UnknownName
from axode.printing.latex import PARTS, SYMMETRIC, exact_part
from axode.printing.latex_names import distinct_names
from axode.printing.writers import TextWriter

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

MOST_LINES = 24
WIDEST = 200  # characters of a line


def readable(equations: Equations, parts: Sequence[str] | None = None) -> list[str]:
    """Write the entries of a model that are not zero; return nothing if they are long.

    Args:
        equations: What to write.
        parts: Some of those that `Equations.latex` takes; I, C nu, tau, gamma, delta unless given.
    """
    parts = ("I", "bias", "tau", "gamma", "delta") if parts is None else parts
    e = equations
    q, nu, u, p = distinct_names([e.coordinates, e.independent, e.inputs, tuple(e.parameters)])
    names = (q, nu, u, ("t",), p)
    lines: list[str] = []
    for part in parts:
        if part not in PARTS:
            raise UnknownName("the model", "part", part, PARTS)
        found = exact_part(equations, part)
        if found is None:
            return []
        writer = TextWriter(found.exact, found.layout, names)
        word, groups = "C nu" if part == "bias" else part, _places(equations, part)
        written = []
        for place, value in zip(found.places, found.exact.results, strict=True):
            if value.is_zero or (part in SYMMETRIC and place[1] < place[0]):
                continue
            where = ", ".join(group[k] for group, k in zip(groups, place, strict=False))
            written.append(f"{word}[{where}] = {writer.write(found.layout.ratio(value))}")
        lines += written or [f"{word} = 0"]
        if len(lines) > MOST_LINES or any(len(line) > WIDEST for line in written):
            return []
    return lines


def _places(equations: Equations, part: str) -> tuple[Sequence[str], ...]:
    """Return the names of the rows of a part, and of its columns where it is a matrix."""
    e = equations
    twists = [
        f"{body.name}.{axis}"
        for body in e.system.mechanism.bodies
        for axis in ("wx", "wy", "wz", "vx", "vy", "vz")
    ]
    return {
        "I": (e.independent, e.independent),
        "C": (e.independent, e.independent),
        "Theta": (e.speeds, e.independent),
        "Theta_dot": (e.speeds, e.independent),
        "T": (twists, e.independent),
        "T_dot": (twists, e.independent),
        "U": (twists, e.speeds),
        "A": (e.rows, e.speeds),
        "lambda": (e.rows,),
        "q_dot": (e.coordinates,),
        "energy": (("kinetic", "potential"),),
    }.get(part, (e.independent,))
