r"""Gradients of what a step is made of, from the equations: of rates and of the projection (X).

The rates of a state solve the lifted equations (X5). A weighted sum of them,
:math:`L = w_q^T N v + w_\nu^T \dot\nu`, is differentiated with one multiplier per equation,

.. math:: S = w_q^T N v - \mu^T G - \eta^T (A \dot v + \beta) - \kappa^T (A v - b),   \tag{X11}

which are found by the factors that solve the equations: the long expressions of a factorization
are never differentiated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.numerics.tolerances import NEGLIGIBLE
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.equations import Equations
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.functions import FunctionGraph, closing_step, normalized, state_rate
from axode.symbolic.tree.recursions import newton_euler

TRIALS = 2  # states at which equations are compared with the rates that are computed
MOVED = 0.05  # by which coordinates are off closed loops and unit quaternions there


@dataclass(frozen=True)
class RateAdjoint:
    """Gradient of weighted rates of q and nu.

    Attributes:
        equations: Whose rates these are.
        by_composites: Whether joint forces are I~ v_dot + h~, by composite bodies, instead of one
            recursion: at quaternions of other lengths than one these differ.
    """

    equations: Equations
    by_composites: bool = False

    @cached_property
    def _formulation(self) -> RecursiveFormulation:
        return RecursiveFormulation(self.equations.system)

    @cached_property
    def v_dot(self) -> SX:
        """Symbols of all accelerations."""
        return SX.sym("v_dot", self.equations.system.tree.v.shape[0])

    @cached_property
    def forces(self) -> SX:
        """What inputs and constraints must give, less what inputs give."""
        f, system = self._formulation, self.equations.system
        if self.by_composites:
            need = f.tree_forces(None) + ca.densify(ca.sparsify(f.tree_inertia) @ self.v_dot)
        else:
            need = f.tree_forces(self.v_dot)
        return need - ca.densify(system.forces.B @ system.u)

    def accelerations(self, nu_dot: SX) -> SX:
        """All accelerations that belong to independent ones."""
        c = self.equations.system.complement
        return c.expand(c.to_base_acceleration(nu_dot)) + c.sigma_0

    def are_solved(self) -> bool:
        """Return whether computed rates solve the equations wherever coordinates are.

        Steps pass configurations that are slightly open and quaternions that are slightly long.
        Only functions that are equal there, too, have equal derivatives.
        """
        e, system = self.equations, self.equations.system
        tree, c = system.tree, system.complement
        n = tree.q.shape[0]
        v_dot = self.accelerations(state_rate(e)[n : n + len(e.independent)])
        held = ca.substitute(self.forces, self.v_dot, SX.zeros(v_dot.shape))
        pairs = [(ca.substitute(c.project(self.forces), self.v_dot, v_dot), held)]
        for rest, x in ((-system.b, tree.v), (c.bias, v_dot)) if system.kept else ():
            pairs.append((c.read(x) + rest, ca.densify(ca.fabs(c.A_read) @ ca.fabs(x)) + 1))
        inputs = [tree.q, system.nu, system.u, tree.t, tree.parameters]
        found = ca.Function("left", inputs, [system.at_speeds(x) for pair in pairs for x in pair])
        rng = np.random.default_rng(0)
        for q in system.samples[:TRIALS]:
            moved = q + MOVED * rng.normal(size=q.shape)
            nu, u = (rng.normal(size=x.shape[0]) for x in (system.nu, system.u))
            sizes = map(ca.norm_inf, found(moved, nu, u, rng.uniform(), system.defaults))
            if not all(left <= NEGLIGIBLE * size for left, size in zip(sizes, sizes, strict=True)):
                return False
        return True

    def graph(self, fixed: bool) -> FunctionGraph:
        """Function of the arguments of the rates, of the rates and of their weights.

        It gives the gradients by the arguments, one after the other.
        """
        e = self.equations
        system, tree = e.system, e.system.tree
        arguments = {"q": tree.q, "nu": system.nu, "u": system.u}
        if system.rheonomic:
            arguments["t"] = tree.t
        if e.parameters and not fixed:
            arguments["p"] = tree.parameters
        rate = SX.sym("rate", tree.q.shape[0] + len(e.independent))
        w_q = SX.sym("w", tree.q.shape[0])
        made = self.gradient(w_q, rate[tree.q.shape[0] :], list(arguments.values()))
        if fixed and e.p.shape[0]:
            made = ca.substitute(made, tree.parameters, ca.DM(system.defaults))
        arguments |= {"rate": rate, "weight": ca.vertcat(w_q, system.nu_dot)}
        name = "state_rate_adjoint"
        function = ca.Function(name, [*arguments.values()], [made], [*arguments], [name])
        sizes = tuple(x.shape[0] for x in arguments.values())
        return FunctionGraph(name, tuple(arguments), sizes, (made.shape[0],), function)

    def gradient(self, w_q: SX, nu_dot: SX, arguments: list[SX]) -> SX:
        r"""Gradients by arguments; nu_dot's symbols of the system are weights here.

        .. math:: A \mu = 0, \quad \tilde I \mu + A^T \eta = w_v, \quad
                  A^T \kappa + \pi_v = \frac{\partial S}{\partial v},              \tag{X12}

        with w_v and pi_v zero but for the independent speeds; pi is the gradient by nu.

        Args:
            w_q: Weights of the rates of the coordinates.
            nu_dot: Rates of the independent speeds.
            arguments: Symbols by which to differentiate.
        """
        system, f = self.equations.system, self._formulation
        tree, c = system.tree, system.complement
        rows = len(system.kept)
        mu, lam, eta, kappa, felt = (
            SX.sym(name, size)
            for name, size in (
                ("mu", tree.v.shape[0]),
                ("lambda", rows),
                ("eta", rows),
                ("kappa", rows),
                ("felt", tree.v.shape[0]),
            )
        )
        S = ca.dot(w_q, tree.N @ tree.v) - ca.dot(mu, self.forces)
        if rows:
            S += ca.dot(lam, c.read(mu))
            S -= ca.dot(eta, c.read(self.v_dot) + c.bias)
        by_v = ca.gradient(S, tree.v)
        by_nu = c.project(felt)
        by_nu = by_nu if c.is_direct else c.B.solve_transposed(by_nu)
        if rows:
            S -= ca.dot(kappa, c.read(tree.v) - system.b)
        others = [x for x in arguments if x is not system.nu]
        parts = dict(zip(map(id, others), _gradients(S, others), strict=True))
        made = ca.vertcat(*[by_nu if x is system.nu else parts[id(x)] for x in arguments])
        if rows:
            made = ca.substitute(made, kappa, c.solve_transposed(felt - self._placed(by_nu)))
        made = ca.substitute(made, felt, by_v)
        w_v = self._placed(system.nu_dot)
        mu_found = f.solve_forces(w_v, inertia_is_there=not c.anchors)
        if rows:
            eta_found = c.solve_transposed(w_v - self._resisted(mu))
            made = ca.substitute(made, eta, ca.densify(eta_found))
            made = ca.substitute(made, lam, ca.densify(c.solve_transposed(self.forces)))
        made = ca.substitute(made, mu, mu_found)
        made = ca.substitute(made, self.v_dot, self.accelerations(nu_dot))
        return system.at_speeds(made)

    def _resisted(self, mu: SX) -> SX:
        """I~ mu; by one recursion where rows are read at inner links, linear in the links too."""
        system, f = self.equations.system, self._formulation
        if not system.complement.anchors:
            return ca.sparsify(f.tree_inertia) @ mu
        at_rest = system.still_tree.motion(SX.zeros(mu.shape[0]), mu, gravity=False)
        force = newton_euler(system.still_tree, system.regrouped, at_rest)
        return force + system.forces.armature * mu

    def _placed(self, x: SX) -> SX:
        """A column of all speeds, zero but for the independent ones."""
        system = self.equations.system
        whole = SX.zeros(system.tree.v.shape[0])
        whole[list(system.independent)] = x
        return whole


def _gradients(S: SX, by: list[SX]) -> list[SX]:
    whole = ca.gradient(S, ca.vertcat(*by))
    ends = np.cumsum([0, *(x.shape[0] for x in by)]).tolist()
    return list(ca.vertsplit(whole, ends))


def projection_adjoint(equations: Equations, fixed: bool) -> FunctionGraph:
    r"""Function of the arguments of the projection, of its result and of weights of that.

    The multipliers y of (N5) solve :math:`K y = r`. With :math:`K z = -A N^T w`, the gradient of
    :math:`w^T q'` is that of

    .. math:: S = w^T (q - N A^T y) + z^T (r - K y)                                \tag{X13}

    at fixed w, y and z: K is not differentiated through its factors. Weights of quaternions are
    taken back through their division by their length first.
    """
    system, tree = equations.system, equations.system.tree
    arguments = {"q": tree.q}
    if system.rheonomic:
        arguments["t"] = tree.t
    if equations.parameters and not fixed:
        arguments["p"] = tree.parameters
    weight, result = SX.sym("w", tree.q.shape[0]), SX.sym("result", tree.q.shape[0])
    moved = SX.sym("moved", tree.q.shape[0])  # before quaternions are divided by their length
    back = ca.gradient(ca.dot(weight, normalized(system, moved)), moved)
    by = ca.vertcat(*arguments.values())
    step = closing_step(system)
    if step is None:
        made, q = ca.vertcat(back, SX.zeros(by.shape[0] - back.shape[0])), tree.q
    else:
        w, y, z = (SX.sym(n, s) for n, s in (("w", weight.shape[0]), ("y", step.n), ("z", step.n)))
        turned = ca.densify(tree.N.T @ w)
        S = ca.dot(w, tree.q) + ca.dot(z, step.r)
        S -= ca.dot(turned, step.A.T @ y) + step.product(z, y)
        made = ca.gradient(S, by)
        made = ca.substitute(made, z, -step.factor.solve(step.A @ turned))
        solved = step.factor.solve(step.r)
        made = ca.substitute(ca.substitute(made, y, solved), w, back)
        q = tree.q - tree.N @ (step.A.T @ solved)
    made = ca.substitute(made, moved, q)
    if fixed and equations.p.shape[0]:
        made = ca.substitute(made, tree.parameters, ca.DM(system.defaults))
    arguments |= {"projection": result, "weight": weight}
    name = "projection_adjoint"
    function = ca.Function(name, [*arguments.values()], [made], [*arguments], [name])
    sizes = tuple(int(np.prod(x.shape)) for x in arguments.values())
    return FunctionGraph(name, tuple(arguments), sizes, (made.shape[0],), function)


def adjoint_graph(equations: Equations, name: str, *, fixed: bool) -> FunctionGraph:
    """Gradient of `state_rate`, without the work done, or of `projection`.

    Raises:
        NotApplicable: where the rates that are computed solve no short equations.
    """
    if name == "projection_adjoint":
        return projection_adjoint(equations, fixed)
    for by_composites in (False, True):
        made = RateAdjoint(equations, by_composites)
        if equations.independent and made.are_solved():
            return made.graph(fixed)
    raise NotApplicable(f"'{equations.name}' has no {name}: its rates solve no short equations")
