"""Functions of couplings whose value or slope jumps: no finite force moves joints like that.

What switches (`where`, `abs`, `min`, `%` and the like) may join pieces, as the profile of a cam
with dwells does, if the pieces meet with equal slopes. Values and slopes are compared at many
places of lines along the coordinates, through home and about it; where they do not change evenly,
the place is narrowed down until they do, or a jump is found.
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
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import coupling_function, unit_of

Array = npt.NDArray[np.float64]
_BENT = "LT LE EQ NE NOT AND OR SIGN FLOOR CEIL FABS FMIN FMAX IF_ELSE_ZERO SQRT ASIN ACOS ATAN2"
BENT = {getattr(ca, f"OP_{name}") for name in [*_BENT.split(), "POW", "CONSTPOW", "HYPOT", "FMOD"]}
TURNS = 4.0 * np.pi  # [rad] of an angle to both sides of home
REACHES = (10.0, 1.0, 0.1, 0.01, 0.001)  # [m] of a slide
CELLS = 4000  # of a line: what jumps there and back within one of them is not seen
LINES = 4  # besides those through home
OFF = 0.3819  # of a cell, by which places avoid round numbers, at which kinks have no slope
SPLIT = 0.5 + 0.1 * OFF
NARROW = 1e-10  # width of a cell in which a change is a jump
JUMP = 1e-6  # of value or slope: what is left is rounding and curvature
MOST_CELLS = 200_000  # under suspicion at once: more of them bend, and are no jumps
POLE = 1e6  # times the usual size: there is no value near by that a jump could leave


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
    if not _may_jump(f):
        return
    names = dict.fromkeys(str(coordinate_of(tree.mechanism, name)) for name in coupling.arguments)
    x = ca.vertcat(*(tree.q[tree.coordinate_names.index(name)] for name in names))
    values = ca.Function("values", [x, tree.parameters], [ca.vertcat(f, ca.jacobian(f, x).T)])
    home = np.array([tree.mechanism.home_coordinates.get(name, 0.0) for name in names])
    generator = np.random.default_rng(1)
    for k, name in enumerate(names):
        for reach in (TURNS,) if unit_of(tree, name) == "rad" else REACHES:
            about = generator.uniform(-reach, reach, size=(LINES, home.size))
            for start in home + np.vstack([np.zeros(home.size), about]):
                line = np.repeat(start[:, np.newaxis], CELLS + 1, axis=1)
                line[k] = home[k] + reach * (np.arange(CELLS + 1) * 2 + OFF - CELLS) / CELLS
                jump = _nearest_jump(values, line, k, home[k], defaults)
                if jump is None:
                    continue
                place, step, slope = jump
                what = f"it jumps by {step:.3g}"
                if step <= JUMP:
                    what = f"its slope jumps by {slope:.3g}"
                message = (
                    f"{what} at {name} = {place:.6g}, and no finite force moves a joint like "
                    "that; join the pieces with equal values and slopes"
                )
                yield Fault("coupling", coupling.name, "function", message)
                return


def _nearest_jump(
    values: ca.Function, line: Array, k: int, home: float, defaults: Array
) -> tuple[float, float, float] | None:
    """Place of the jump nearest to home along a line, the jump of value and the largest of slopes.

    Args:
        values: The function's value and slopes, of coordinates and parameters.
        line: Places along it, (coordinates, places).
        k: The coordinate that changes along it.
        home: Where that coordinate is at home.
        defaults: Values of the parameters.
    """
    made = np.array(values(line, defaults))
    usual = np.nan_to_num(np.nanmedian(np.abs(made), axis=1, keepdims=True))
    limit, unit = POLE * np.maximum(1.0, usual), JUMP * np.maximum(1.0, usual)
    begin, end, before, after = line[:, :-1], line[:, 1:], made[:, :-1], made[:, 1:]
    found: list[tuple[float, Array]] = []

    def note(cells: npt.NDArray[np.bool_]) -> None:
        size = np.abs(after - before)
        jumps = np.flatnonzero(cells & (size > unit).any(axis=0))
        found.extend((float(end[k, cell]), size[:, cell]) for cell in jumps)

    while 0 < begin.shape[1] <= MOST_CELLS:
        there = [np.isfinite(v) & (np.abs(v) < limit) for v in (before, after)]
        known = (there[0] & there[1]).all(axis=0)
        done = end[k] - begin[k] <= NARROW * np.maximum(1.0, np.abs(begin[k]))
        middle = begin + SPLIT * (end - begin)
        made = np.array(values(middle, defaults))
        gap = ~np.isfinite(made).all(axis=0)  # as asin(sin(x)) has at its corners: no narrower
        note(known & (done | gap))
        with np.errstate(invalid="ignore", over="ignore"):
            bend = 2 * np.abs(made - before - SPLIT * (after - before))
        on = known & ~done & ~gap & (bend > unit).any(axis=0)
        halves = ((begin, middle), (middle, end)), ((before, made), (made, after))
        (begin, end), (before, after) = (
            [np.hstack([pair[side][:, on] for pair in pairs]) for side in (0, 1)]
            for pairs in halves
        )
    if not found:
        return None
    largest = max((jumps / unit[:, 0]).max() for _, jumps in found)
    clear = [one for one in found if (one[1] / unit[:, 0]).max() > largest / 2]  # not by rounding
    place, jumps = min(clear, key=lambda one: (round(abs(one[0] - home), 6), -one[0]))
    return round(place, 9) + 0.0, float(jumps[0]), float(jumps[1:].max())


def _may_jump(x: SX) -> bool:
    """Return whether any operation of an expression may have a jump or a corner."""
    waiting, seen = [x], set()
    while waiting:
        e = waiting.pop()
        if e.element_hash() in seen:
            continue
        seen.add(e.element_hash())
        operands = [e.dep(i) for i in range(e.n_dep())]
        if operands and e.op() in BENT:
            return True
        waiting += operands
    return False
