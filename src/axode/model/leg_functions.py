"""Legs of a platform as numbers, leg by leg, and the Newton-Euler equations of all bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable
from axode.model.conditions import Options
from axode.model.model_parts import facts_of
from axode.names import Names

if TYPE_CHECKING:
    from axode.model.model import Model, Values

Array = npt.NDArray[np.float64]


class LegFunctions:
    """One leg of a platform, from the ground to the platform.

    Methods take q, nu and u as the model's functions do, with any batch axes first, and the
    keywords t, parameters and threads of `Options`.

    Attributes:
        name: Name of its joint on the ground.
        freedoms: Names of its joints' speeds in order, those of the joint that closes a loop
            included; the latter count up to their sign.
    """

    def __init__(self, legs: PlatformLegs, number: int, name: str, freedoms: tuple[str, ...]):
        self.name, self.freedoms = name, freedoms
        self._legs, self._number = legs, number
        first = sum(len(other) for other in legs.freedoms[:number])
        self._own = slice(first, first + len(freedoms))

    def __repr__(self) -> str:
        return f"LegFunctions('{self.name}': {', '.join(self.freedoms)})"

    def jacobian(self, q: Values, **options: Unpack[Options]) -> Array:
        """Twist of the platform for unit rates of the leg (J_J of the book, 12.13): (..., 6, f)."""
        return self._legs.evaluate("leg_jacobians", {"q": q}, options)[..., :, self._own]

    def speed_map(self, q: Values, **options: Unpack[Options]) -> Array:
        """Rates of the leg for unit independent speeds (L_J of the book, 12.17): (..., f, n)."""
        return self._legs.evaluate("leg_speed_maps", {"q": q}, options)[..., self._own, :]

    def wrench(
        self,
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        *,
        nu_dot: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Moment and force of the leg on the platform; see `PlatformLegs.wrenches`: (..., 6)."""
        all_legs = self._legs.wrenches(q, nu, u, nu_dot=nu_dot, **options)
        return all_legs[..., self._number, :]


def _short(names: list[str]) -> list[str]:
    """Find what distinguishes names: `II` of `II1` beside `I1` and `V1`, or of `cross_II`."""

    def shared(texts: list[str]) -> int:
        return next((k for k, c in enumerate(zip(*texts, strict=False)) if len({*c}) > 1), 0)

    first = shared(names)
    last = shared([name[first:][::-1] for name in names])
    return [name[first : len(name) - last] for name in names]


class PlatformLegs(Mapping[str, LegFunctions]):
    """The legs of a platform by name, and what they have in common.

    A leg may be given by the name of its joint on the ground, by what distinguishes it from those
    of the other legs, `model.legs["IV"]`, or by any of its speeds, joints and coordinates:
    `model.legs["l_IV"]`. Twists and wrenches have the angular part first; they are taken at the
    platform's mass centre, in world axes. With the independent speeds nu,

        J_J theta_J_dot = t_M = T nu,    theta_J_dot = L_J nu,    Z nu = Y t_M.

    Attributes:
        platform: Name of the body that the legs carry.
        freedoms: Names of every leg's freedoms.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.platform = facts_of(model).platform
        if not self.platform:
            if model.has_equations:
                _ = model.equations.platform  # raises with the reason
            raise NotApplicable(
                f"model '{model.name}' has no platform that is carried by legs from the ground"
            )
        names = [leg[0] for leg in facts_of(model).legs]
        self.freedoms = tuple(leg[1:] for leg in facts_of(model).legs)
        self._legs = {
            name: LegFunctions(self, k, name, freedoms)
            for k, (name, freedoms) in enumerate(zip(names, self.freedoms, strict=True))
        }
        owners = {f: name for name, own in zip(names, self.freedoms, strict=True) for f in own}
        aliases = {alias: owners[s] for alias, s in facts_of(model).speed_aliases if s in owners}
        short = {alias: name for alias, name in zip(_short(names), names, strict=True) if alias}
        known = short | owners | aliases
        self._names = Names(f"model '{model.name}'", "leg", names, aliases=known)

    def __getitem__(self, name: str) -> LegFunctions:
        return self._legs[self._names.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._legs)

    def __len__(self) -> int:
        return len(self._legs)

    def __repr__(self) -> str:
        return f"PlatformLegs('{self.platform}' on {', '.join(self._legs)})"

    def twist_map(self, q: Values, **options: Unpack[Options]) -> Array:
        """Twist of the platform for unit independent speeds (T of the book, 12.20): (..., 6, n)."""
        return self.evaluate("platform_twist_map", {"q": q}, options)

    def speed_map(self, q: Values, **options: Unpack[Options]) -> Array:
        """Rates of all legs, one below the other (L of the book, 12.28c): (..., freedoms, n)."""
        return self.evaluate("leg_speed_maps", {"q": q}, options)

    def velocity_matrices(self, q: Values, **options: Unpack[Options]) -> tuple[Array, Array]:
        """Matrices Y and Z of Z nu = Y t_M, all other rates eliminated (12.33, 12.34).

        Y has a row y^T for every independent speed, (..., n, 6), Z is diagonal, (..., n, n).

        Raises:
            NotApplicable: for legs with more or fewer than six freedoms.
        """
        both = self.evaluate("platform_velocities", {"q": q}, options)
        return both[..., :6], both[..., 6:]

    def motor_map(self, q: Values, **options: Unpack[Options]) -> Array:
        """Forces on the independent speeds of unit forces on the motors' joints: (..., n, motors).

        Lambda of the book (12.30): the identity where the independent speeds are those of the
        motors. Gears are left out; `input_force` has them.
        """
        return self.evaluate("motor_map", {"q": q}, options)

    def wrenches(
        self,
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        *,
        nu_dot: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Moments and forces of all legs on the platform (12.18), in order: (..., legs, 6).

        Weights of the legs, springs, dampers and wrenches on them count as well, and legs may have
        fewer than six freedoms.

        Args:
            q, nu: The state.
            u: Inputs, zero unless given; the accelerations follow from them.
            nu_dot: Accelerations; the motors' forces follow from them, and of u only wrenches
                count.
            options: The keywords t, parameters and threads of `Options`.

        Raises:
            NotApplicable: where the legs constrain each other, so that statics does not determine
                them.
        """
        model: Any = self._model
        self._check(options)
        if nu_dot is None:
            nu_dot = model.forward_dynamics(q, nu, u, **options)
        else:
            u = model.inverse_dynamics(q, nu, nu_dot, u=u, **options)
        values = {"q": q, "nu": nu, "nu_dot": nu_dot, "u": u}
        return self.evaluate("leg_wrenches", values, options)

    def evaluate(self, function: str, values: Mapping[str, Any], options: Options) -> Array:
        """Evaluate a function of all legs."""
        self._check(options)
        return self._model.evaluate(function, values, options)

    def _check(self, options: Options) -> None:
        if "out" in options:
            raise InvalidArgument(
                "legs take t, parameters and threads, not out: model.evaluate('leg_wrenches', "
                "{...}, {'out': array}) writes those of all legs"
            )


# Newton-Euler equations ---------------------------------------------------------------------------


class NewtonEuler:
    """The bodies' own equations M t_dot + W M t = w, with A t = 0 and t = T nu.

    t stacks the twists of all bodies in the order of `model.bodies`: angular velocity, then
    velocity of the mass centre, in world axes. Rows of A are those of Saha and Angeles (their
    equations 7 to 14, 22 and 24). The forces of constraints are A^T lambda; T^T removes them, since
    A T = 0, and I = T^T M T, C = T^T M T_dot + T^T W M T. Rotors of geared motors are no bodies.

    Methods take q and nu as the model's functions do, and the keywords of `Options`.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def rows(self) -> tuple[str, ...]:
        """Joint, contact or coupling that each row of `constraints` belongs to.

        Raises:
            NotApplicable: for a model that was read from a file.
        """
        return self._model.equations.twist_constraints.rows

    def constraints(self, q: Values, **options: Unpack[Options]) -> Array:
        """Rows that constraints put on twists (A of the sources): (..., rows, 6 bodies).

        Six dependent rows for a revolute joint, three for a wheel that rolls, one for a coupling.
        """
        return self._model.evaluate("twist_constraints", {"q": q}, options)

    def complement(self, q: Values, **options: Unpack[Options]) -> Array:
        """Twists of bodies for unit independent speeds (T of the sources): (..., 6 bodies, n)."""
        return self._model.evaluate("twist_map", {"q": q}, options)

    def complement_rate(
        self, q: Values, nu: Values | None = None, **options: Unpack[Options]
    ) -> Array:
        """Rate of `complement` along the motion (T_dot): (..., 6 bodies, n)."""
        return self._model.evaluate("twist_map_rate", {"q": q, "nu": nu}, options)

    def inertias(self, q: Values, **options: Unpack[Options]) -> Array:
        """Blocks diag(I_i, m_i 1) of the bodies' inertia M, in world axes: (..., bodies, 6, 6)."""
        return self._model.evaluate("body_inertias", {"q": q}, options)

    def angular_velocities(
        self, q: Values, nu: Values | None = None, **options: Unpack[Options]
    ) -> Array:
        """Blocks diag(w_i x, 0) of the angular velocities W: (..., bodies, 6, 6)."""
        twists = self._model.twists(q, nu, **options)
        x, y, z = np.moveaxis(twists[..., :3], -1, 0)
        blocks = np.zeros((*twists.shape[:-1], 6, 6))
        blocks[..., 0, 1], blocks[..., 0, 2], blocks[..., 1, 2] = -z, y, -x
        blocks[..., 1, 0], blocks[..., 2, 0], blocks[..., 2, 1] = z, -y, x
        return blocks
