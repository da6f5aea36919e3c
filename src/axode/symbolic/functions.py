"""The model's functions: which symbols each takes and what it gives.

One table for every target: a function is a name, the arguments it needs, and an expression made
when it is first asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.values.expressions import numeric
from axode.numerics.tolerances import LEAST_DAMPING
from axode.stages import call_stage
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.system import System
from axode.symbolic.contact_rows import contact_table
from axode.symbolic.equations import Equations
from axode.symbolic.tree.rows import column_of, matrix_of
from axode.symbolic.wheels import symbolic_wheel
from axode.symbolic.wheels.contacts import axis_in_ground

Shape = tuple[int, ...]
STEP, STEP_LENGTH = "step", "h"  # function of a model, and the argument that it alone has


@dataclass(frozen=True)
class FunctionRecipe:
    """How to make one function of a model."""

    arguments: tuple[str, ...]  # of q, nu, nu_dot, u, weights
    expression: Callable[[Equations], SX]
    shape: Callable[[Equations], Shape]


def _n(e: Equations) -> Shape:
    return (len(e.independent),)


def _square(e: Equations) -> Shape:
    return (len(e.independent),) * 2


RECIPES: dict[str, FunctionRecipe] = {
    "forward_dynamics": FunctionRecipe(("q", "nu", "u"), lambda e: forward_dynamics(e), _n),
    "inverse_dynamics": FunctionRecipe(
        ("q", "nu", "nu_dot", "u", "weights"),
        lambda e: e.inverse_dynamics,
        lambda e: (len(e.inputs),),
    ),
    "inverse_residual": FunctionRecipe(
        ("q", "nu", "nu_dot", "u", "weights"), lambda e: e.inverse_residual, _n
    ),
    "inverse_solution": FunctionRecipe(
        ("q", "nu", "nu_dot", "u", "weights"),
        lambda e: inverse_solution(e),
        lambda e: (len(e.inputs) + len(e.independent) + 1,),
    ),
    "mass_matrix": FunctionRecipe(("q",), lambda e: e.I, _square),
    "coriolis": FunctionRecipe(("q", "nu"), lambda e: e.C, _square),
    "bias": FunctionRecipe(("q", "nu"), lambda e: e.bias, _n),
    "potential_force": FunctionRecipe(("q",), lambda e: e.gamma, _n),
    "dissipative_force": FunctionRecipe(("q", "nu"), lambda e: e.delta, _n),
    "input_force": FunctionRecipe(("q", "u"), lambda e: e.tau, _n),
    "joint_speeds": FunctionRecipe(("q", "nu"), lambda e: e.v, lambda e: (len(e.speeds),)),
    "rates": FunctionRecipe(("q", "nu"), lambda e: rates(e), lambda e: (len(e.coordinates),)),
    "accelerations": FunctionRecipe(
        ("q", "nu", "nu_dot"), lambda e: e.accelerations, lambda e: (len(e.speeds),)
    ),
    "state_rate": FunctionRecipe(
        ("q", "nu", "u"),
        lambda e: state_rate(e),
        lambda e: (len(e.coordinates) + len(e.independent) + 2,),
    ),
    "state_rate_jacobian": FunctionRecipe(
        ("q", "nu", "u"),
        lambda e: call_stage("state_rate_jacobian", e),
        lambda e: (
            len(e.coordinates) + len(e.independent) + 2,
            len(e.coordinates) + len(e.independent) + len(e.inputs) + 1,
        ),
    ),
    "projection": FunctionRecipe(("q",), lambda e: projection(e), lambda e: (len(e.coordinates),)),
    "pivots": FunctionRecipe(("q",), lambda e: pivots(e), lambda e: (pivots(e).shape[0],)),
    "multipliers": FunctionRecipe(
        ("q", "nu", "u"), lambda e: e.multipliers, lambda e: (len(e.rows),)
    ),
    "contact_forces": FunctionRecipe(
        ("q", "nu", "u"),
        lambda e: contact_forces(e),
        lambda e: (len(e.system.mechanism.ideal_contacts), 3),
    ),
    "motor_powers": FunctionRecipe(
        ("q", "nu", "u"), lambda e: e.motor_powers, lambda e: (e.system.forces.motors,)
    ),
    "energy": FunctionRecipe(("q", "nu"), lambda e: e.energy, lambda e: (2,)),
    "residual": FunctionRecipe(
        ("q",),
        lambda e: ca.vertcat(*e.residuals.values()) if e.residuals else SX.zeros(0),
        lambda e: (len(e.residuals),),
    ),
    "residual_jacobian": FunctionRecipe(
        ("q",),
        lambda e: ca.jacobian(ca.vertcat(SX(0, 1), *e.residuals.values()), e.q),
        lambda e: (len(e.residuals), len(e.coordinates)),
    ),
    "dropped_rows": FunctionRecipe(
        ("q",), lambda e: dropped_rows(e), lambda e: (len(e.system.report.dropped),)
    ),
    "measures": FunctionRecipe(
        ("q", "nu"),
        lambda e: ca.vertcat(SX(0, 1), *[m.expression for m in e.measures.values()]),
        lambda e: (len(e.measures),),
    ),
    "measures_jacobian": FunctionRecipe(
        ("q", "nu"),
        lambda e: ca.jacobian(
            ca.vertcat(SX(0, 1), *[m.expression for m in e.measures.values()]),
            ca.vertcat(e.q, e.nu),
        ),
        lambda e: (len(e.measures), len(e.coordinates) + len(e.independent)),
    ),
    "speed_map": FunctionRecipe(
        ("q",), lambda e: e.Theta, lambda e: (len(e.speeds), len(e.independent))
    ),
    "tangent_map": FunctionRecipe(
        ("q",),
        lambda e: e.system.tree.N @ e.system.tangents.Theta,
        lambda e: (len(e.coordinates), len(e.system.tangents.asked)),
    ),
    "poses": FunctionRecipe(
        ("q",), lambda e: poses(e), lambda e: (len(e.system.mechanism.bodies), 4, 4)
    ),
    "twists": FunctionRecipe(
        ("q", "nu"),
        lambda e: ca.vertcat(*[t.T for t in e.twists.values()]),
        lambda e: (len(e.system.mechanism.bodies), 6),
    ),
}


# what few ask for: made and saved on demand, not among `Model.functions`
FURTHER_RECIPES: dict[str, FunctionRecipe] = {
    "leg_jacobians": FunctionRecipe(
        ("q",), lambda e: e.platform.jacobians, lambda e: e.platform.jacobians.shape
    ),
    "leg_speed_maps": FunctionRecipe(
        ("q",), lambda e: e.platform.speed_maps, lambda e: e.platform.speed_maps.shape
    ),
    "platform_twist_map": FunctionRecipe(
        ("q",), lambda e: e.platform.T, lambda e: (6, len(e.independent))
    ),
    "platform_velocities": FunctionRecipe(
        ("q",),
        lambda e: ca.horzcat(e.legs.Y, e.legs.Z),
        lambda e: (len(e.independent), 6 + len(e.independent)),
    ),
    "motor_map": FunctionRecipe(
        ("q",),
        lambda e: e.platform.motor_map,
        lambda e: (len(e.independent), e.system.forces.motors),
    ),
    "leg_wrenches": FunctionRecipe(
        ("q", "nu", "nu_dot", "u"),
        lambda e: e.system.at_speeds(e.platform.wrenches(e.nu_dot)),
        lambda e: (len(e.platform.platform.legs), 6),
    ),
    "all_rows": FunctionRecipe(
        ("q",),
        lambda e: matrix_of(list(e.system.rows), len(e.speeds)),
        lambda e: (len(e.system.rows), len(e.speeds)),
    ),
    "twist_constraints": FunctionRecipe(
        ("q",), lambda e: e.twist_constraints.A, lambda e: e.twist_constraints.A.shape
    ),
    "twist_map": FunctionRecipe(("q",), lambda e: e.twist_map, lambda e: e.twist_map.shape),
    "twist_map_rate": FunctionRecipe(
        ("q", "nu"), lambda e: e.twist_map_rate, lambda e: e.twist_map.shape
    ),
    "contact_rows": FunctionRecipe(
        ("q", "nu"),
        lambda e: e.contact_rows.vector,
        lambda e: (sum(contact_table(e.system.mechanism).sizes(len(e.independent))),),
    ),
    STEP: FunctionRecipe(
        ("q", "nu", "u", STEP_LENGTH),
        lambda e: step(e),
        lambda e: (len(e.coordinates) + len(e.independent),),
    ),
    "momentum_speeds": FunctionRecipe(("q", "nu"), lambda e: momentum_speeds(e), _n),
    "body_inertias": FunctionRecipe(
        ("q",), lambda e: body_inertias(e), lambda e: (len(e.system.mechanism.bodies), 6, 6)
    ),
}


@dataclass(frozen=True)
class FunctionGraph:
    """A function of a model as an SX function, its result flattened row by row."""

    name: str
    arguments: tuple[str, ...]
    sizes: tuple[int, ...]
    shape: Shape
    function: ca.Function


def function_graph(equations: Equations, name: str, *, fixed: bool) -> FunctionGraph:
    """One of the model's functions, parameters folded in if they are fixed."""
    known = RECIPES | FURTHER_RECIPES
    if name not in known:
        raise UnknownName(f"model '{equations.name}'", "function", name, known)
    recipe = known[name]
    expression, shape = recipe.expression(equations), recipe.shape(equations)
    graph = make_graph(equations, name, recipe.arguments, expression, shape, fixed)
    if equations.self_check is not None:
        motors_suffice = equations.actuation in ("fully actuated", "redundantly actuated")
        if name != "inverse_dynamics" or motors_suffice:
            equations.self_check.check_function(name, graph.function, graph.arguments)
    return graph


def hybrid_graph(
    equations: Equations, accelerations: Sequence[str], inputs: Sequence[str], *, fixed: bool
) -> FunctionGraph:
    """Hybrid dynamics for one choice of what is known: accelerations and inputs in one vector."""
    solved = ca.vertcat(*equations.hybrid_dynamics(accelerations, inputs))
    return make_graph(
        equations, "hybrid_dynamics", ("q", "nu", "nu_dot", "u"), solved, (solved.shape[0],), fixed
    )


# Arguments of functions for CasADi's users, in order, and what each is where it is left out: there
# is no usual configuration, and parameters that are forgotten must not become zero.
ARGUMENTS = {"q": math.nan, "nu": 0, "nu_dot": 0, "u": 0, "weights": 1, "t": 0, "p": math.nan}
ARGUMENTS |= {STEP_LENGTH: math.nan}
_H = SX.sym(STEP_LENGTH)


def are_fixed(parameters: str) -> bool:
    """Return whether parameters are folded into functions, "fixed", or arguments, "free".

    Raises:
        InvalidArgument: for another word.
    """
    if parameters not in ("fixed", "free"):
        raise InvalidArgument(f"parameters must be 'fixed' or 'free', got {shortened(parameters)}")
    return parameters == "fixed"


def casadi_function(equations: Equations, names: Sequence[str], *, fixed: bool) -> ca.Function:
    """CasADi function with several results; see `Equations.casadi_function`."""
    graphs = {name: function_graph(equations, name, fixed=fixed) for name in names}
    needed = {argument for graph in graphs.values() for argument in graph.arguments}
    arguments = {a: value for a, value in ARGUMENTS.items() if a in needed}
    results = []
    for graph in graphs.values():
        flat = graph.function(*[_symbol(equations, a) for a in graph.arguments])
        if len(graph.shape) > 1:  # row by row; matrices of bodies stand one below the other
            width = graph.shape[-1]
            flat = ca.reshape(flat, width, math.prod(graph.shape[:-1])).T
        results.append(flat)
    return ca.Function(
        re.sub(r"\W", "_", equations.name).strip("_") or "mechanism",
        [_symbol(equations, a) for a in arguments],
        results,
        list(arguments),
        list(graphs),
        {"default_in": list(arguments.values())},
    )


def make_graph(
    equations: Equations,
    name: str,
    arguments: tuple[str, ...],
    expression: SX,
    shape: Shape,
    fixed: bool,
) -> FunctionGraph:
    """Graph of an expression of some arguments, parameters folded in if they are fixed."""
    flat = ca.vec(ca.densify(expression).T)  # row by row, as NumPy reads it
    if fixed and equations.p.shape[0]:
        flat = ca.substitute(flat, equations.p, ca.DM(equations.system.defaults))
    used = [a for a in arguments if a not in _idle_arguments(equations, name)]
    if equations.system.rheonomic:
        used.append("t")
    if equations.parameters and not fixed:
        used.append("p")
    symbols = [_symbol(equations, a) for a in used]
    function = ca.Function(name, symbols, [flat], used, [name])
    return FunctionGraph(name, tuple(used), tuple(x.shape[0] for x in symbols), shape, function)


def _symbol(equations: Equations, argument: str) -> SX:
    """Symbols of an argument."""
    return _H if argument == STEP_LENGTH else getattr(equations, argument)


def _idle_arguments(equations: Equations, name: str) -> set[str]:
    """Arguments without meaning for this mechanism."""
    idle = set() if equations.shares_effort else {"weights"}
    if name.startswith("inverse") and len(equations.inputs) == equations.system.forces.motors:
        idle.add("u")  # nothing but motors, which are what is asked for
    return idle


def forward_dynamics(equations: Equations) -> SX:
    """Independent accelerations, in the shortest form there is."""
    equations.require_inertia()
    short, places = equations.pitching_rate, len(equations.coordinates)
    if short is None:
        return equations.forward_dynamics
    return short[places : places + len(equations.independent)]


def rates(equations: Equations) -> SX:
    """Rates of the coordinates, in the shortest form there is."""
    short = equations.pitching_rate
    return equations.q_dot if short is None else short[: len(equations.coordinates)]


def state_rate(equations: Equations) -> SX:
    """Rates of q and nu, the power that is supplied and the power that is dissipated."""
    if equations.pitching_rate is not None:
        equations.require_inertia()
        return equations.pitching_rate
    return general_state_rate(equations)


def general_state_rate(equations: Equations) -> SX:
    """Rates of the state from the equations of all joints."""
    system = equations.system
    B, v = system.forces.B, equations.v
    supplied = ca.dot(ca.densify(B @ equations.u), v) if equations.inputs else SX(0)
    if system.rheonomic:  # what moves by the clock does work too
        supplied += ca.dot(equations.multipliers, system.b)
    lost = -ca.dot(system.forces.dissipative, system.tree.v)
    return ca.vertcat(equations.q_dot, equations.forward_dynamics, supplied, system.at_speeds(lost))


def step(equations: Equations) -> SX:
    """State after a step of the classical Runge-Kutta method, with inputs held within the limits of
    the motors and coordinates brought back onto the constraints, as `simulate` takes it."""
    e = equations
    if e.mechanism.contact_parts:
        names = ", ".join(part.name for part in e.mechanism.contact_parts[:4])
        raise NotApplicable(
            f"step knows no friction, lift-off or stops, and '{e.name}' has them: {names}.\n  "
            "Remedy: simulate(model, duration, step=1e-3); or the mechanism without, "
            "mechanism.ideal().derive()"
        )
    n, n_q = len(e.coordinates) + len(e.independent), len(e.coordinates)
    symbols = [e.q, e.nu, e.u, e.t, e.p]
    rate = ca.Function("rate", symbols, [ca.densify(state_rate(e)[:n])])
    closed = ca.Function("closed", [e.q, e.t, e.p], [ca.densify(projection(e))])
    u = SX(e.u)
    for k, drive in enumerate(e.system.mechanism.drives):
        if drive.motor.limit is not None:
            limit = numeric(drive.motor.limit)
            below = ca.if_else(u[k] < -limit, -limit, u[k])  # NaN stays, which fmin would hide
            u[k] = ca.if_else(u[k] > limit, limit, below)
    x = ca.vertcat(e.q, e.nu)

    def at(t: SX, x: SX) -> SX:
        return rate(x[:n_q], x[n_q:], u, t, e.p)

    k1 = at(e.t, x)
    k2 = at(e.t + _H / 2, x + _H / 2 * k1)
    k3 = at(e.t + _H / 2, x + _H / 2 * k2)
    k4 = at(e.t + _H, x + _H * k3)
    after = x + _H / 6 * (k1 + 2 * (k2 + k3) + k4)
    return ca.vertcat(closed(after[:n_q], e.t + _H, e.p), after[n_q:])


def momentum_speeds(equations: Equations) -> SX:
    r"""Generalized momentum as the speeds that make it where time prescribes nothing.

    .. math:: I^{-1}\,\partial T / \partial \nu = \nu + I^{-1} \Theta^T M \eta,
              \qquad v = \Theta \nu + \eta(t)

    It stays as it is where prescribed rates jump: forces that no independent speed works against
    do not change it.
    """
    e = equations
    return Factor.of(e.I).solve(ca.densify(ca.gradient(e.energy[0], e.nu)))


def inverse_solution(equations: Equations) -> SX:
    """Inputs of inverse dynamics, what they cannot give, and the size of the forces that balance.

    The size is the sum of the largest entries of every term, so that terms that cancel count.
    """
    e = equations
    u, missing = e.inverse_dynamics, e.inverse_residual
    given = ca.substitute(e.tau, e.u, u) if e.inputs else SX.zeros(missing.shape)
    terms = (given + missing, e.bias, e.gamma, e.delta)
    size = sum((ca.mmax(ca.fabs(term)) for term in terms), SX(0)) if e.independent else SX(0)
    return ca.vertcat(u, missing, size)


@dataclass(frozen=True)
class ClosingStep:
    r"""What a Newton step back onto the holonomic rows is made of: (A A^T + small) y = r.  (N5)"""

    A: SX
    r: SX

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.A.shape[0])

    @property
    def _damping(self) -> float:
        return LEAST_DAMPING / self.n

    @cached_property
    def factor(self) -> Factor:
        """The matrix of the step, factored."""
        gram = self.A @ self.A.T
        return Factor.of(gram + self._damping * ca.trace(gram) * SX.eye(self.n))

    def product(self, z: SX, y: SX) -> SX:
        """Product of the matrix with a row and a column, which are the same at any A."""
        small = self._damping * ca.sumsqr(self.A) * ca.dot(z, y)
        return ca.dot(self.A.T @ z, self.A.T @ y) + small


def closing_step(system: System) -> ClosingStep | None:
    """Return the step back onto the holonomic rows; None if there are none."""
    rows = [row for row in system.kept if row.residual is not None]
    if not rows:
        return None
    A = ca.densify(matrix_of(rows, system.tree.v.shape[0]))
    return ClosingStep(A, column_of([row.drift for row in rows]))


def normalized(system: System, q: SX) -> SX:
    """Coordinates with quaternions of unit length, those of level bases without tilt."""
    q, level = SX(q), {base.first: base.joint for base in system.level}
    for four in map(list, system.tree.quaternions):
        if four[0] in level:
            q[four] = level[four[0]].upright(q[four])
        else:
            q[four] = q[four] / ca.norm_2(q[four])
    return q


def projection(equations: Equations) -> SX:
    r"""One Newton step back onto the holonomic rows, shortest in the joint speeds, and unit
    quaternions.

    .. math:: q' = q - N A^T (A A^T + \epsilon 1)^{-1} r                           \tag{N5}

    The small term keeps it finite where rows lose rank.
    """
    system, tree = equations.system, equations.system.tree
    step = closing_step(system)
    q = tree.q if step is None else tree.q - tree.N @ (step.A.T @ step.factor.solve(step.r))  # (N5)
    return normalized(system, q)


def pivots(equations: Equations) -> SX:
    """Pivots of the solves behind Theta that change with the configuration, then two numbers per
    wheel that can lean, both zero where it lies flat."""
    system = equations.system
    moving = [x for x in ca.vertsplit(system.complement.pivots) if not x.is_constant()]
    moving += [axis_in_ground(system.tree, contact) for contact in system.leaning]  # (C11)
    return ca.vertcat(*moving) if moving else SX.zeros(0)


def dropped_rows(equations: Equations) -> SX:
    r"""How far each dropped row is from following from the kept ones; zero where it does.

    .. math:: \max_j |a\,\Theta_j| / (1 + |a|\,|\Theta_j|)

    and the same of what explicit time asks for: of the largest terms, against the unit of the row.
    """
    system = equations.system
    kept = set(system.report.kept)
    rows = [row for r, row in enumerate(system.rows) if r not in kept]
    if not rows:
        return SX.zeros(0)
    A = matrix_of(rows, system.tree.v.shape[0])
    # what speeds there may be, and the rate that each row asks of them
    motions = [(equations.Theta[:, j], SX.zeros(len(rows))) for j in range(equations.nu.shape[0])]
    if system.rheonomic:
        still = ca.substitute(equations.v, equations.nu, SX.zeros(equations.nu.shape))
        motions.append((still, column_of([row.rate for row in rows])))
    worst = SX.zeros(len(rows))
    for v, rate in motions:
        off = ca.fabs(ca.densify(A @ v) - rate) / (1 + ca.densify(ca.fabs(A) @ ca.fabs(v)))
        worst = ca.fmax(worst, off)
    loose = [r in system.report.loose for r in range(len(system.rows)) if r not in kept]
    return ca.fmax(worst - system.report.tolerance * SX(loose), 0) if any(loose) else worst


def poses(equations: Equations) -> SX:
    """Homogeneous matrices of all bodies, one under the other."""
    last = SX([[0.0, 0.0, 0.0, 1.0]])
    return ca.vertcat(
        *[ca.vertcat(ca.horzcat(pose.R, pose.p), last) for pose in equations.poses.values()]
    )


def body_inertias(equations: Equations) -> SX:
    """Inertia of all bodies in world axes, diag(I_i, m_i 1), one under the other."""
    M, count = ca.densify(equations.M), len(equations.system.mechanism.bodies)
    return ca.vertcat(*[M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] for i in range(count)])


def contact_forces(equations: Equations, multipliers: SX | None = None) -> SX:
    """Longitudinal, lateral and normal force of the ground on every wheel, one row each.

    Args:
        equations: Equations of the mechanism.
        multipliers: Forces of the kept rows; those for the inputs u unless given.
    """
    given = equations.multipliers if multipliers is None else multipliers
    forces = dict(zip(equations.rows, ca.vertsplit(given), strict=True))
    rows = [
        _contact_force(equations, contact, forces)
        for contact in equations.system.mechanism.ideal_contacts
    ]
    return ca.vertcat(*rows) if rows else SX.zeros(0, 3)


def _contact_force(equations: Equations, contact: Contact, forces: dict[str, SX]) -> SX:
    rows = ("touch", *contact.wheel.rolling_rows)
    own = {row: forces.get(f"{contact.name}.{row}", SX(0)) for row in rows}
    wheel = symbolic_wheel(contact.wheel, equations.system.tree.values)
    return ca.horzcat(*wheel.force(own))


def unknown_contact_forces(equations: Equations) -> list[tuple[int, int]]:
    """Find entries of `contact_forces` that statics does not determine: (wheel, component)."""
    unknown = set(equations.system.report.indeterminate)
    unknown |= {row.name for row in equations.system.report.dropped}
    found = []
    for i, contact in enumerate(equations.system.mechanism.ideal_contacts):
        wheel = symbolic_wheel(contact.wheel, equations.system.tree.values)
        for row in ("touch", *contact.wheel.rolling_rows):
            if f"{contact.name}.{row}" in unknown:
                found += [(i, k) for k, c in enumerate(wheel.components[row]) if not c.is_zero()]
    return found
