"""Short equations as text, with the model's own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axode.printing.latex import SYMMETRIC
from axode.printing.latex_names import distinct_names
from axode.printing.parts import PRINTED, default_parts, exact_part, is_first_kind, part_of
from axode.printing.writers import TextWriter

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

MOST_LINES = 24
WIDEST = 200  # characters of a line


def law(equations: Equations) -> str:
    """The form of the equations of motion."""
    time = equations.system.rheonomic
    if not is_first_kind(equations):
        return "I nu_dot + C nu = tau + gamma + delta"
    rate = "b_dot - A_dot v" if time else "-A_dot v"
    return f"I~ v_dot + C~ v = tau~ + gamma~ + delta~ + A^T lambda, A v_dot = {rate}"


def readable(equations: Equations, parts: Sequence[str] | None = None) -> list[str]:
    """Write the entries of a model that are not zero; return nothing if they are long.

    Args:
        equations: What to write.
        parts: Some of those that `Equations.latex` takes; the terms of the equations unless given.
    """
    e = equations
    speeds = e.speeds if is_first_kind(e) else e.independent
    q, nu, u, p = distinct_names([e.coordinates, speeds, e.inputs, tuple(e.parameters)])
    names = (q, nu, u, ("t",), p)
    lines: list[str] = []
    for name in default_parts(e) if parts is None else parts:
        part = part_of(name, PRINTED)
        found = exact_part(equations, name)
        if found is None:
            return []
        writer = TextWriter(found.exact.atoms, found.layout, names)
        word, rows = part.text or name, part.rows(e)
        columns = part.columns(e) if part.columns(e) != ("value",) else ()
        written = []
        for (i, j), value in zip(found.places, found.exact.results, strict=True):
            if value.is_zero or (name in SYMMETRIC and j < i):
                continue
            where = ", ".join([rows[i], *columns[j : j + 1]])
            right = writer.write(found.layout.ratio(value))
            written.append(
                f"{right} = const." if name == "integrals" else f"{word}[{where}] = {right}"
            )
        lines += written or [f"{word} = {0 if found.exact.results else 'none'}"]
        if len(lines) > MOST_LINES or any(len(line) > WIDEST for line in written):
            return []
    return lines
