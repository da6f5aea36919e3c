r"""First derivatives of inverse dynamics (X).

Motors are found from the projected equation, :math:`\Theta_0^T (G + B\,\delta u) = 0` in changes;
where there are more or fewer of them than speeds, from the condition (D10) that chooses among the
inputs. Its virtual speeds z are one more lifted quantity that rows and motors' axes act on:

.. math:: \text{more: } W u = B^T z, \quad z = \Theta_0 \mu; \qquad
          \text{fewer: } B^T z = 0, \quad z = \Theta_0 I_0^{-1} (r - \Theta_0^T B u),      \tag{X8}

z being, where motors are fewer, how far the accelerations stay behind those asked for: G is taken
at :math:`\dot v - z`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import casadi as ca

from axode.derivatives.lifted_derivatives import LED, Direction, LiftedDynamics
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.analysis.actuation import solve_inputs, solve_square
from axode.symbolic.equations import Equations
from axode.symbolic.formulations.recursive import RecursiveFormulation


class InverseDerivatives:
    """Inputs that give wanted accelerations, and all their first derivatives."""

    def __init__(self, equations: Equations) -> None:
        self.equations, self.system = equations, equations.system
        self.lifted = LiftedDynamics(equations)
        self.complement = self.lifted.complement
        self.motors = self.system.forces.motors
        self.z = SX.sym("z", self.system.tree.v.shape[0])

    @property
    def kind(self) -> str:
        """How the motors are found: "square", "more", "fewer", "both" or "none"."""
        n, m = len(self.equations.independent), self.motors
        rank = len(self.equations.independent_motors) if n and m else 0
        if rank == 0:
            return "none"
        if rank == n:
            return "square" if m == n else "more"
        return "fewer" if rank == m else "both"

    # values --------------------------------------------------------------------------------------

    @cached_property
    def input_map(self) -> SX:
        """Theta_0^T B of the motors."""
        return ca.sparsify(self.complement.project(self.system.forces.B[:, : self.motors]))

    @cached_property
    def _accelerations(self) -> SX:
        """All accelerations, from those asked for."""
        c = self.complement
        return c.expand(c.to_base_acceleration(self.equations.nu_dot, by_inverse=True)) + c.sigma_0

    @cached_property
    def _need(self) -> SX:
        """What the motors must give, on the base's speeds."""
        given = self.system.forces.B[:, self.motors :] @ self.system.u[self.motors :, :]
        by = RecursiveFormulation(self.system)
        return self.complement.project(by.tree_forces(self._accelerations) - ca.densify(given))

    @cached_property
    def _solved(self) -> SX:
        """Inputs of the motors."""
        e = self.equations
        by = RecursiveFormulation(self.system)
        G = ca.densify(self.input_map)
        return solve_inputs(G, self._need, by, e.weights, e.independent_motors)

    @cached_property
    def _factor(self) -> Factor:
        """Factors of the inertia on the base's speeds."""
        return Factor.of(self.complement.project_inertia(self.lifted.inertia))

    @cached_property
    def _effort(self) -> tuple[SX, Factor]:
        """W^-1 G^T, and the factors of G W^-1 G^T."""
        scaled = ca.densify(self.input_map).T / self.equations.weights
        return scaled, Factor.of(self.input_map @ scaled)

    @cached_property
    def _virtual(self) -> SX:
        """z of (X8)."""
        if self.kind == "more":
            return self.complement.expand(self._effort[1].solve(self._need))
        behind = self._need - ca.densify(self.input_map @ self._solved)
        return self.complement.expand(self._factor.solve(behind))

    # derivatives ---------------------------------------------------------------------------------

    def table(self, by: Sequence[str]) -> SX:
        """Value and derivatives side by side.

        Args:
            by: Arguments, of "q", "nu", "nu_dot", "u", "p" and "t", in the order of the columns.
        """
        e, motors = self.equations, self.motors
        given = e.u[motors:, :]
        if self.kind == "both":
            return self._by_plain_differentiation(by)
        names = list(dict.fromkeys((*by, *self._more(by))))
        directions = {name: self._direction(name) for name in names}
        changes = {n: SX(motors, d.G.shape[1]) for n, d in directions.items()}
        if self.kind != "none":
            changes = {n: self._motors(d) for n, d in directions.items()}
        if self.kind == "fewer":  # G is at v_dot - z; what is asked for belongs to v_dot
            directions = {
                n: replace(d, v_dot=d.v_dot + self._moved(d)[0]) for n, d in directions.items()
            }
        found = self.lifted.put_together(changes, directions)
        found = {name: self._with_given(name, x) for name, x in found.items()}
        value = ca.vertcat(self._solved, given)
        return self._resolved(ca.densify(ca.horzcat(value, *[found[name] for name in by])))

    def _more(self, by: Sequence[str]) -> list[str]:
        """Arguments by which it must be known as well: those that others move."""
        if self.complement.is_direct and self.system.tangents.is_direct:
            return []
        return ["nu_dot", "nu", "q"] if LED & set(by) else ["nu_dot", "nu"]

    def _direction(self, name: str) -> Direction:
        lifted = self.lifted
        if name == "u":
            return lifted.along_inputs(self.motors)
        return {
            "q": lambda: lifted.along_tangents,
            "nu": lambda: lifted.along_speeds,
            "nu_dot": lambda: lifted.along_accelerations,
            "p": lambda: lifted.along_parameters,
            "t": lambda: lifted.along_time,
        }[name]()

    def _motors(self, direction: Direction) -> SX:
        """Changes of the motors' inputs along a direction."""
        if self.kind == "square":
            return solve_square(self.input_map, self.lifted.project(direction))
        _, power = self._moved(direction)
        if self.kind == "more":
            scaled, factor = self._effort
            shares = ca.diag(1 / self.equations.weights) @ power
            mu = factor.solve(self.lifted.project(direction) - self.input_map @ shares)
            return scaled @ mu + shares
        felt = self._factor.solve(ca.densify(self.input_map))
        metric = Factor.of(self.input_map.T @ felt)
        return metric.solve(ca.densify(felt.T @ self.lifted.project(direction) + power))

    def _moved(self, direction: Direction) -> tuple[SX, SX]:
        """Change of z at fixed base speeds of it, and of the motors' B^T z.  (X8)"""
        B, columns = self.system.forces.B[:, : self.motors], direction.G.shape[1]
        if direction.q is None:
            return SX(self.z.shape[0], columns), SX(self.motors, columns)
        lifted = self.lifted
        rows, power = self.system.A @ self.z, B.T @ self.z
        off, moved = (lifted.along_q(ca.densify(x)) @ direction.q for x in (rows, power))
        if direction.beside is not None:
            off += ca.jacobian(rows, direction.beside)
            moved += ca.jacobian(power, direction.beside)
        z = self.complement.particular(-off)
        return z, moved + B.T @ z

    def _with_given(self, name: str, changes: SX) -> SX:
        """Rows of wrenches that are given, below those of the motors; columns of all inputs."""
        wrenches = len(self.equations.inputs) - self.motors
        if name != "u":
            return ca.vertcat(changes, SX(wrenches, changes.shape[1]))
        ignored = SX(changes.shape[0], self.motors)
        upper = ca.horzcat(ignored, changes)
        return ca.vertcat(upper, ca.horzcat(SX(wrenches, self.motors), SX.eye(wrenches)))

    def _resolved(self, table: SX) -> SX:
        """The table with everything that was lifted put in."""
        lifted, e = self.lifted, self.equations
        inputs = ca.vertcat(self._solved, e.u[self.motors :, :])
        v_dot, fewer = self._accelerations, self.kind == "fewer"
        force = lifted.needed - ca.densify(self.system.forces.B @ e.u)
        if self.system.kept:
            lam = ca.densify(self.complement.solve_transposed(force))
            table = ca.substitute(table, lifted.force, lam)
        table = ca.substitute(table, lifted.v_dot, v_dot - self._virtual if fewer else v_dot)
        if self.kind in ("more", "fewer"):
            table = ca.substitute(table, self.z, self._virtual)
        if self.motors:
            table = ca.substitute(table, e.u, inputs)
        return self.system.at_speeds(table, by_inverse=True)

    def _by_plain_differentiation(self, by: Sequence[str]) -> SX:
        """For motors that repeat each other and still are too few: of the whole expression."""
        e, lifted, tangents = self.equations, self.lifted, self.system.tangents
        value = e.inverse_dynamics
        found = {name: ca.jacobian(value, getattr(e, name)) for name in by if name != "q"}
        by_q = ca.jacobian(value, e.q) @ self.system.tree.N
        found["q"] = lifted.by_asked(by_q @ tangents.Theta_0, tangents)
        for name in found.keys() & LED:
            q = self._direction(name).q
            assert q is not None
            found[name] += by_q @ q - found["q"] @ q[list(tangents.asked), :]
        return ca.densify(ca.horzcat(value, *[found[name] for name in by]))
