"""Newton-Euler equations of all bodies, and the natural orthogonal complement of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Options

if TYPE_CHECKING:
    from axode.model.model import Model, Values

Array = npt.NDArray[np.float64]


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
