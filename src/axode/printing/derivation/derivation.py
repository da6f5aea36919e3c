"""The derivation of one mechanism, step by step, and the agreement of all ways to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, NotApplicable, counted
from axode.mechanism.mechanism import Mechanism
from axode.printing.derivation import steps as ways
from axode.printing.derivation.sheet import Array, DerivationStep, Sheet
from axode.symbolic.equations import Equations
from axode.symbolic.formulations import FORMULATIONS

WAYS = {
    "complement": ("Natural orthogonal complement", ways.by_complement),
    "lagrange": ("Lagrange's equations of the first kind", ways.by_first_kind),
    "virtual_work": ("Virtual work", ways.by_virtual_work),
}
BY = {"recursive": "complement", "multipliers": "lagrange"}
SPEEDS = (0.5, 0.7, 1.1, 1.3)  # at a state that was not given, cyclically
INPUTS = (0.3, 0.2)


@dataclass(frozen=True)
class Derivation:
    """A worked derivation of the equations of motion.

    Attributes:
        mechanism: What they are about.
        way: Name of the way they are derived: natural orthogonal complement, ...
        state: What the numbers are at, by name.
        steps: The steps.
        differences: Largest relative difference of the accelerations at the state between this way
            and each of the others.
        setup: First lines of a notebook, after those that make the mechanism.
    """

    mechanism: Mechanism = field(repr=False)
    way: str
    state: dict[str, float]
    steps: tuple[DerivationStep, ...]
    differences: dict[str, float]
    setup: str = field(repr=False)

    def __str__(self) -> str:
        from axode.printing.derivation.pages import text

        return text(self)

    def __repr__(self) -> str:
        return (
            f"Derivation('{self.mechanism.name}': {self.way}, {counted(len(self.steps), 'step')})"
        )

    def _repr_html_(self) -> str:
        from axode.printing.derivation.pages import cell

        return cell(self)

    def html(self) -> str:
        """Return a page with the steps, which needs nothing else."""
        from axode.printing.derivation.pages import page

        return page(self)

    def latex(self) -> str:
        """Return a LaTeX document."""
        from axode.printing.derivation.pages import document

        return document(self)

    def notebook(self, source: str | None = None) -> str:
        """Return a Jupyter notebook whose cells compute the numbers of every step, as JSON.

        Args:
            source: Python that makes the mechanism, such as `ax.gallery.build("four_bar")`; by
                default the notebook holds its description as TOML.
        """
        from axode.printing.derivation.pages import notebook

        return json.dumps(notebook(self, source), indent=1, ensure_ascii=False) + "\n"

    def save(self, path: str | PathLike[str], source: str | None = None) -> None:
        """Write a page (.html), a LaTeX document (.tex) or a notebook (.ipynb).

        Args:
            path: File to write.
            source: As for `notebook`.

        Raises:
            InvalidArgument: for another ending.
            FileError: if it cannot be written.
        """
        forms = {".html": self.html, ".tex": self.latex, ".ipynb": lambda: self.notebook(source)}
        ending = Path(path).suffix.lower()
        if ending not in forms:
            raise InvalidArgument(f"a derivation is saved as {', '.join(forms)}, not as '{path}'")
        write_atomically(Path(path), forms[ending]().encode())


def derivation(
    equations: Equations, q: Array, nu: Array | None = None, u: Array | None = None
) -> Derivation:
    """Derive equations step by step; see `Equations.derivation`."""
    name = BY.get(equations.formulation, equations.formulation)
    if name not in WAYS:
        raise NotApplicable(
            f"formulation '{name}' has no worked derivation.\n"
            f"  Those that have: {', '.join((*BY, *WAYS))}."
        )
    equations.require_inertia()
    e = equations
    nu = np.resize(SPEEDS, len(e.independent)) if nu is None else nu
    u = np.resize(INPUTS, len(e.inputs)) if u is None else u
    sheet = Sheet(equations, q, nu, u)
    found = {way: _accelerations(sheet, way) for way in WAYS}
    scale = max(float(np.abs(found[name]).max(initial=0.0)), 1e-12)
    differences = {
        WAYS[way][0]: float(np.abs(value - found[name]).max(initial=0.0)) / scale
        for way, value in found.items()
        if way != name
    }
    facts = [(other, f"{value:.1e}") for other, value in differences.items()]
    title, method = WAYS[name]
    steps = [*method(sheet, found[name]), ways.step("agreement", sheet, (), facts)]
    names = (*e.coordinates, *e.independent, *e.inputs)
    state = dict(zip(names, map(float, (*q, *nu, *u)), strict=True))
    return Derivation(
        e.system.mechanism, title, state, tuple(steps), differences, _setup(equations, q, nu, u)
    )


def _accelerations(sheet: Sheet, way: str) -> Array:
    """Independent accelerations at the state."""
    if way == "lagrange":
        return ways.solve_first_kind(sheet)[0][list(sheet.system.independent)]
    by = FORMULATIONS[way](sheet.system)
    force = by.tau() + by.gamma() + by.delta() - by.bias()
    inertia = sheet.numbers(by.inertia())
    return np.asarray(np.linalg.solve(inertia, sheet.numbers(force).ravel()), dtype=float)


def _setup(equations: Equations, q: Array, nu: Array, u: Array) -> str:
    """First lines of a notebook after those that make the mechanism, and its TOML."""
    quasi = {one.name: str(one) for one in equations.system.mechanism.quasi_velocities}
    chosen = [quasi.get(name, name) for name in equations.independent]
    lines = [
        f'e = robot.derive("{equations.formulation}", {json.dumps(chosen)})',
        f"q = np.array({np.asarray(q).tolist()})",
        f"nu = np.array({np.asarray(nu, dtype=float).tolist()})",
        f"u = np.array({np.asarray(u, dtype=float).tolist()})",
        "p = list(e.parameters.values())",
        "",
        "",
        "def at(expression):",
        '    """Evaluate an expression at the state."""',
        "    expression = e.system.at_speeds(ca.SX(expression))",
        '    f = ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], [expression])',
        "    return np.array(f(q, nu, u, 0.0, p))",
        "",
        "",
        "def rate(matrix):",
        '    """Differentiate a matrix of q and t along the motion, and evaluate it."""',
        "    column = ca.vec(ca.densify(matrix))",
        "    along = ca.jtimes(column, e.q, e.q_dot) + ca.jtimes(column, e.t, 1)",
        "    return at(ca.reshape(along, *matrix.shape))",
    ]
    return "\n".join(lines)
