"""Functions of couplings whose value or slope jumps: no finite force moves joints like that.

What switches (`where`, `abs`, `min`, `%` and the like) may join pieces, as the profile of a cam
with dwells does, if the pieces meet with equal slopes. Whether they do is seen from both sides of
every switch that lies on lines along the coordinates, through home and places about it.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import Fault, MechanismError
from axode.mechanism.elements.couplings import Coupling
from axode.mechanism.topology import coordinate_of
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.rows import coupling_function, unit_of
from axode.symbolic.tree.kinematics import Tree

Array = npt.NDArray[np.float64]
SWITCHING = (ca.OP_LT, ca.OP_LE, ca.OP_SIGN, ca.OP_FLOOR)
TURNS = 4.0 * np.pi  # [rad] of an angle to both sides of home
REACHES = (10.0, 1.0, 0.1, 0.01, 0.001)  # [m] of a slide
CELLS = 4000  # of a line: what switches on and off within one of them is not seen
LINES = 4  # besides those through home
BESIDE = 1e-10  # of a switch, where both sides are compared
JUMP = 1e-6  # of value or slope: what is left is rounding and curvature


def check_couplings(tree: Tree, defaults: Array) -> None:
    """Require that functions of couplings have no jumps, nor their slopes.

    Raises:
        MechanismError: naming the coupling, the place and the jump.
    """
    found = [fault for c in tree.mechanism.couplings for fault in _faults(tree, c, defaults)]
    if found:
        raise MechanismError(f"mechanism '{tree.mechanism.name}'", found)


def _faults(tree: Tree, coupling: Coupling, defaults: Array) -> Iterator[Fault]:
    f = coupling_function(tree, coupling)
    switches = _switches(f)
    if not switches:
        return
    names = dict.fromkeys(coordinate_of(tree.mechanism, name) for name in coupling.arguments)
    places = [tree.coordinate_names.index(str(name)) for name in names]
    x = ca.vertcat(*(tree.q[k] for k in places))
    own = ca.Function("own", [x, tree.parameters], [ca.vertcat(*switches)])
    values = ca.Function("values", [x, tree.parameters], [ca.vertcat(f, ca.jacobian(f, x).T)])
    home = np.array([tree.mechanism.home_coordinates.get(str(name), 0.0) for name in names])
    generator = np.random.default_rng(1)
    for k, name in enumerate(names):
        turns = unit_of(tree, str(name)) == "rad"
        for reach in (TURNS,) if turns else REACHES:
            about = generator.uniform(-reach, reach, size=(LINES, home.size))
            for start in home + np.vstack([np.zeros(home.size), about]):
                line = np.repeat(start[:, np.newaxis], CELLS + 1, axis=1)
                line[k] = home[k] + reach * np.linspace(-1.0, 1.0, CELLS + 1)
                for at, jumps in _jumps(own, values, line, k, defaults):
                    step, slope = jumps[0], jumps[1:].max()
                    what = f"it jumps by {step:.3g}"
                    if step <= JUMP:
                        what = f"its slope jumps by {slope:.3g}"
                    message = (
                        f"{what} at {name} = {at:.6g}, and no finite force moves a joint like "
                        "that; join the pieces with equal values and slopes"
                    )
                    yield Fault("coupling", coupling.name, "function", message)
                    return


def _jumps(
    own: ca.Function, values: ca.Function, line: Array, k: int, defaults: Array
) -> Iterator[tuple[float, Array]]:
    """Place and size of the jumps of a function's value and slopes along a line."""
    states = np.array(own(line, defaults))
    cells = np.flatnonzero((np.diff(states, axis=1) != 0).any(axis=0))
    for cell in sorted(cells.tolist(), key=lambda cell: abs(cell - CELLS / 2)):
        before, after = line[:, cell].copy(), line[:, cell + 1].copy()
        here = states[:, cell]
        while np.nextafter(before[k], after[k]) < after[k]:
            middle = before.copy()
            middle[k] = (before[k] + after[k]) / 2
            if middle[k] in (before[k], after[k]):
                break
            if (np.array(own(middle, defaults)).ravel() == here).all():
                before = middle
            else:
                after = middle
        at = float(after[k])
        aside = BESIDE * max(1.0, abs(at))
        before[k], after[k] = at - aside, at + aside
        left, right = (np.array(values(side, defaults)).ravel() for side in (before, after))
        size = np.abs(right - left)
        if (size > JUMP * np.maximum(1.0, np.abs(left))).any():
            yield (at if abs(at) > BESIDE else 0.0), size


def _switches(x: SX) -> list[SX]:
    """The comparisons, signs and whole numbers that decide which piece of a function holds."""
    found, waiting, seen = [], [x], set()
    while waiting:
        e = waiting.pop()
        if e.element_hash() in seen:
            continue
        seen.add(e.element_hash())
        operands = [e.dep(i) for i in range(e.n_dep())]
        waiting += operands
        code = e.op() if operands else None
        if code in SWITCHING:
            found.append(e)
        elif code == ca.OP_FABS:
            found.append(operands[0] < 0)
        elif code in (ca.OP_FMIN, ca.OP_FMAX):
            found.append(operands[0] < operands[1])
    return found
