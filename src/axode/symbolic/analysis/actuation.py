"""Inputs from the force a motion needs, and hybrid dynamics (D).

The map G from motor inputs to generalized force may be square, tall or wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import casadi as ca
import numpy as np

from axode.errors import (
    Fault,
    InvalidArgument,
    MechanismError,
    PlausibilityWarning,
    UnknownName,
    warn_of_description,
)
from axode.mechanism.elements.bodies import Body
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import speed_meanings
from axode.mechanism.values.expressions import numeric
from axode.names import as_names
from axode.numerics.rank import choose_columns, rank
from axode.numerics.tolerances import RANK, ROUNDING
from axode.symbolic.algebra.linear import Block, Factor
from axode.symbolic.algebra.spatial import SX, is_zero
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.recursive import RecursiveFormulation

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


def classify(ranks: list[int], motors: int, mobility: int) -> str:
    """Classify the actuation: none, under-, fully or redundantly actuated."""
    rank = max(ranks, default=0)
    if mobility == 0:
        return "driven by time alone"
    if motors == 0:
        return "unactuated"
    if rank < mobility:
        return "underactuated"
    return "fully actuated" if motors == mobility else "redundantly actuated"


class Balance(Protocol):
    """What a formulation knows of the forces that inputs must balance."""

    def required_inertia(self) -> SX:
        """Inertia on the speeds that G and r belong to."""

    def hold(self, held: list[int], force: SX) -> SX:
        """Forces that keep some speeds at rest while a force moves the others."""


def solve_inputs(G: SX, need: SX, balance: Balance, weights: SX, independent: list[int]) -> SX:
    r"""Solve G u = need for the motors' inputs u, or find the nearest.

    Square: solved. Wide: least weighted effort, :math:`u = W^{-1} G^T (G W^{-1} G^T)^{-1} r`. Tall:
    least residual in the norm of the inverse inertia,
    :math:`u = (G^T I^{-1} G)^{-1} G^T I^{-1} r`, the one norm that does not depend on the choice of
    independent speeds. Motors that repeat each other and yet cannot give every motion: both, by way
    of the `independent` ones, G = F K.                                           \tag{D10}
    """
    n, m = G.shape
    rank = len(independent)
    if m == 0 or n == 0 or rank == 0:  # nothing to drive with, to drive, or that motors move
        return SX.zeros(m)
    if rank == n:
        return solve_square(G, need) if m == n else _least_effort(G, need, weights)
    if rank == m:
        direct = direct_rows(G)
        if len(direct) == m:  # every motor drives a speed of its own
            held = [direct[k] for k in range(m)]
            own = ca.vertcat(*[G[j, k] for k, j in direct.items()])
            return balance.hold(held, need) / own  # (D20)
        return _nearest(G, need, balance.required_inertia())
    both = _nearest(G[:, independent], ca.horzcat(need, G), balance.required_inertia())
    return _least_effort(both[:, 1:], both[:, 0], weights)


def solve_square(G: SX, need: SX) -> SX:
    """Solve G u = need, column by column; motors that drive one speed alone follow from others."""
    direct = direct_rows(G)
    held = set(direct.values())
    free = [j for j in range(G.shape[0]) if j not in held]
    others = [k for k in range(G.shape[1]) if k not in direct]
    u = SX(G.shape[1], need.shape[1])
    if others:
        u[others, :] = Block.of(G[free, others]).solve(need[free, :])
        need = need - G[:, others] @ u[others, :]
    for k, j in direct.items():
        u[k, :] = need[j, :] / G[j, k]
    return u


def direct_rows(G: SX) -> dict[int, int]:
    """The speed of each motor that drives one speed alone, no two of them the same."""
    found: dict[int, int] = {}
    for k in range(G.shape[1]):
        rows = [j for j in range(G.shape[0]) if not is_zero(G[j, k])]
        if len(rows) == 1 and rows[0] not in found.values():
            found[k] = rows[0]
    return found


def _nearest(F: SX, right: SX, inertia: SX) -> SX:
    r"""Find x for which F x is nearest to the right-hand sides in the inverse inertia's norm.

    Motors that drive one speed alone hold it, whatever the others do: what is left to solve are
    the other motors on the other speeds,

    .. math:: x_g = (F_f^T I_{ff}^{-1} F_f)^{-1} F_f^T I_{ff}^{-1} r_f, \qquad
              F_h x_h = r_h - F_{hg} x_g - I_{hf} I_{ff}^{-1} (r_f - F_f x_g).     \tag{D20}
    """
    n, m = F.shape
    direct = direct_rows(F)
    held = list(direct.values())
    free = [j for j in range(n) if j not in direct.values()]
    others = [k for k in range(m) if k not in direct]
    x = SX.zeros(m, right.shape[1])
    factor = Factor.of(inertia[free, free])
    rest = right
    if others:
        reduced = factor.solve(ca.horzcat(F[free, others], right[free, :]))  # I^-1 [F r]
        metric = Factor.of(F[free, others].T @ reduced[:, : len(others)])
        x[others, :] = metric.solve(F[free, others].T @ reduced[:, len(others) :])  # (D10)
        rest = right - F[:, others] @ x[others, :]
    if direct:
        holding = rest[held, :] - inertia[held, free] @ factor.solve(rest[free, :])
        for i, (k, j) in enumerate(direct.items()):
            x[k, :] = holding[i, :] / F[j, k]  # (D20)
    return x


def _least_effort(G: SX, need: SX, weights: SX) -> SX:
    scaled = G.T / weights  # W^-1 G^T
    return scaled @ Factor.of(G @ scaled).solve(need)


def actuation_ranks(G: list[np.ndarray]) -> list[int]:
    """Rank of the input map at several configurations."""
    return [_rank(g) for g in G]


def independent_motors(G: list[np.ndarray]) -> list[int]:
    """Choose as many motors as possible none of which repeats the others, generically."""
    g = max(G, key=_rank)
    chosen: list[int] = []
    for motor in range(g.shape[1]):
        if _rank(g[:, [*chosen, motor]]) > len(chosen):
            chosen.append(motor)
    return chosen


def _rank(g: np.ndarray) -> int:
    return int(rank(g, 1e-9, floor=1.0))


def hybrid_dynamics(
    equations: Equations, accelerations: Sequence[str], inputs: Sequence[str]
) -> tuple[SX, SX]:
    r"""All accelerations and inputs from the known ones.

    .. math:: \begin{bmatrix} I_x & -G_y \end{bmatrix}
              \begin{bmatrix} \dot\nu_x \\ u_y \end{bmatrix}
              = \gamma + \delta - C \nu + G_k u_k - I_k \dot\nu_k                 \tag{D11}

    A row that an unknown input has for itself gives that input once the rest is solved.
    """
    mechanism = equations.system.mechanism
    meanings = speed_meanings(mechanism)
    speeds = [meanings.get(name, name) for name in as_names(accelerations)]
    known = _positions(equations, "independent speed", speeds, equations.independent)
    given = _positions(equations, "input", as_names(inputs), equations.inputs)
    x = [i for i in range(len(equations.independent)) if i not in known]
    y = [i for i in range(len(equations.inputs)) if i not in given]
    if len(y) != len(known):
        free = ", ".join(equations.inputs[i] for i in y) or "none"
        raise InvalidArgument(
            f"hybrid dynamics: {len(known)} known accelerations need {len(known)} unknown inputs, "
            f"got {len(y)} ({free}); name the other inputs as known (zero if they are idle)"
        )
    G = ca.jacobian(equations.tau, equations.u)
    rest = equations.gamma + equations.delta - equations.bias
    rest += ca.densify(G[:, given] @ equations.u[given]) if given else SX(0)
    rest -= equations.I[:, known] @ equations.nu_dot[known] if known else SX(0)
    nu_dot, u = SX(equations.nu_dot), SX(equations.u)
    own = {y[k]: row for k, row in direct_rows(G[:, y]).items()}  # inputs with a row of their own
    rows = [i for i in range(len(equations.independent)) if i not in own.values()]
    shared = [k for k in y if k not in own]
    solved = _solve_rows(equations.I, ca.densify(-G[:, shared]), rows, x, rest)
    for k, i in enumerate(x):
        nu_dot[i] = solved[k]
    for k, i in enumerate(shared):
        u[i] = solved[len(x) + k]
    for k, row in own.items():
        force = -rest[row]
        for i in x:
            force += equations.I[row, i] * nu_dot[i]
        for i in shared:
            force -= G[row, i] * u[i]
        u[k] = force / G[row, k]
    return nu_dot, u


def _solve_rows(inertia: SX, others: SX, rows: list[int], x: list[int], rest: SX) -> SX:
    """Unknown accelerations and inputs from some of the rows of (D11)."""
    if rows == x:  # symmetric and positive definite: no inputs are among them
        return Factor.of(inertia[x, x]).solve(rest[x]) if x else SX.zeros(0)
    return Block.of(ca.horzcat(inertia[rows, x], others[rows, :])).solve(rest[rows])


def _positions(
    equations: Equations, kind: str, names: Sequence[str], known: Sequence[str]
) -> list[int]:
    for name in names:
        if name not in known:
            raise UnknownName(f"model '{equations.name}'", kind, name, known)
    return [list(known).index(name) for name in dict.fromkeys(names)]


# missing inertia ----------------------------------------------------------------------------------


LIGHT = 1e-7  # of the heaviest body: lighter ones count as massless
MOST_NAMES = 8  # of bodies in one message


def find_missing_inertia(system: System) -> MechanismError | None:
    """Find the motions of a mechanism that nothing resists: forward dynamics is not defined.

    Only idealised bodies (point masses, thin rods, massless brackets), nearly massless ones and
    unphysical ones can cause that. Kinematics, mass matrix and inverse dynamics are defined all the
    same, so the mechanism is not refused.

    Returns:
        An error that names every speed without inertia and the bodies to look at, or None.

    Warns:
        PlausibilityWarning: if forward dynamics loses most of its digits, or if the kinetic energy
            can be negative.
    """
    suspects = suspicious_bodies(system.mechanism)
    if not suspects:
        return None
    inertia = RecursiveFormulation(system).inertia()
    tree = system.tree
    function = ca.Function("I", [tree.q, tree.t, tree.parameters], [inertia])
    smallest, directions = math.inf, np.zeros((0, len(system.independent)))
    for q in system.samples:
        matrix = np.array(function(q, 0.0, system.defaults))
        scale = np.sqrt(np.abs(np.diag(matrix)).clip(1e-300))
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        smallest = float(values[np.argmin(np.abs(values))])
        if abs(smallest) > ROUNDING and np.abs(np.diag(matrix)).min() > 1e-200:
            _warn(system, suspects, smallest, float(values[0]))
            return None
        lost = np.abs(values) <= max(ROUNDING, abs(smallest))
        directions = (vectors[:, lost] / scale[:, None]).T
    return MechanismError(
        f"mechanism '{system.mechanism.name}'", _faults(system, suspects, smallest, directions)
    )


def suspicious_bodies(mechanism: Mechanism) -> list[Body]:
    """List the bodies that may lack inertia: idealised, or far lighter than the heaviest."""
    heaviest = max((numeric(body.mass) for body in mechanism.bodies), default=0.0)
    return [b for b in mechanism.bodies if b.is_idealised or numeric(b.mass) < LIGHT * heaviest]


def _faults(
    system: System, suspects: list[Body], smallest: float, directions: np.ndarray
) -> list[Fault]:
    """Report each motion that nothing resists, at the speed that has most of it."""
    size = np.linalg.norm(directions, axis=1, keepdims=True)
    found: dict[str, list[str]] = {}
    for pivot in choose_columns(directions / size, len(directions)):
        speed = system.tree.speed_names[system.independent[pivot]]
        carried = _carried(system.mechanism, speed)
        names = [body.name for body in suspects if body.name in carried]
        names = names or [body.name for body in suspects]
        more = [f"and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
        found.setdefault(", ".join(names[:MOST_NAMES] + more), []).append(speed)
    return [
        Fault(
            "body",
            names,
            "inertia",
            f"nothing resists the motion of {', '.join(speeds)} (smallest eigenvalue "
            f"{smallest:.2g}); give one of these idealised bodies an inertia, or the joint's "
            "motor a rotor_inertia",
        )
        for names, speeds in found.items()
    ]


def _carried(mechanism: Mechanism, speed: str) -> set[str]:
    """Collect the bodies that the joint with this speed moves."""
    carried: set[str] = set()
    waiting = [c.child for c in mechanism.connections if speed in c.speeds]
    while waiting:
        body = waiting.pop()
        carried.add(body)
        waiting.extend(c.child for c in mechanism.connections if c.parent == body)
    return carried


def _warn(system: System, suspects: list[Body], smallest: float, lowest: float) -> None:
    """Warn of a nearly singular or negative inertia."""
    name = f"mechanism '{system.mechanism.name}'"
    if lowest < -ROUNDING:
        listed = ", ".join(body.name for body in suspects if body.inertia.unphysical)
        message = (
            f"{name}: the kinetic energy of some motions is negative, so that forces accelerate "
            f"them backwards; check the inertia of {listed}"
        )
    elif smallest < RANK:
        digits = max(round(16 + math.log10(smallest)), 0)
        message = (
            f"{name}: bodies of very different mass leave forward dynamics about {digits} digits; "
            f"check {', '.join(body.name for body in suspects[:MOST_NAMES])}"
        )
    else:
        return
    warn_of_description(message, PlausibilityWarning)
