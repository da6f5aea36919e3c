"""Cases of the wheeled pendulum (Staicu 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.integrate import quad
from scipy.linalg import eigh

from axode.gallery import build
from axode.literature.acceptance.adapters import Adapter, Array, Instant, adapter, column, quantity
from axode.mechanism.mechanism import Mechanism

ANGLES = ("theta1", "theta2", "theta3")
RATES = tuple(f"{angle}_dot" for angle in ANGLES)


@adapter("C1_quasimoro")
class WheeledPendulum(Adapter):
    """The source's speeds are those of its wheels seen from the platform, and of its body."""

    independent = ("phi1_dot", "phi2_dot", "theta3_dot")
    holders: ClassVar[Mapping[str, str]] = {"theta1": "M1", "theta2": "M2"}

    def mechanism(self) -> Mechanism:
        return build("wheeled_pendulum", **self.case.parameters)

    def start(self) -> Mapping[str, float]:
        state = self.case.state
        hold = self.case.input.get("hold", {})
        held = {name: value for name, value in hold.items() if name != "until"}
        places = {name: state[name] for name in ("psi", *ANGLES, "x", "y") if name in state}
        rates = state.get("rates", [state.get(rate, 0.0) for rate in RATES])
        return {**held, **places, **dict(zip(RATES, rates, strict=True))}

    def _speeds(self, now: Instant) -> Array:
        """The model's speeds for unit ones of the source."""
        found = now.model.measures_jacobian(now.q, now.nu)[:, len(now.q) :]
        body = np.eye(3)[now.model.independent.index("theta3_dot")]
        rows = [found[now.model.measure_names.index(rate)] for rate in RATES[:2]]
        return np.linalg.inv(np.array([*rows, body]))

    rates = column(*RATES)
    theta = column(*ANGLES)

    @quantity
    def inertia(self, now: Instant) -> Any:
        S = self._speeds(now)
        return S.T @ now.inertia @ S

    @quantity
    def bias_incl_gravity(self, now: Instant) -> Any:
        force = now.bias - now.gravity
        return self._speeds(now).T @ force

    accelerations = quantity(lambda self, now: np.linalg.solve(self._speeds(now), now.nu_dot))

    @quantity
    def multipliers_forward_lateral_yaw(self, now: Instant) -> Any:
        """Multipliers of the source's rows.

        They are half the sum of our rolling rows, sideways, and their difference.
        """
        first, second = (now.forces[f"wheel{k}.longitudinal"] for k in (1, 2))
        return [first + second, now.lateral_force, (second - first) / 2]

    # small motions about the body hanging at rest -------------------------------------------------

    def _swing(self) -> tuple[float, Array]:
        """Frequency of the swinging mode, and its shape for a unit of inertia."""
        model, q = self.model, self.model.home
        position = np.eye(len(model.independent))
        rates = np.array([model.rates(q, unit) for unit in position]).T
        stiffness = -model.jacobian("potential_force", "q", q) @ rates
        squares, modes = eigh((stiffness + stiffness.T) / 2, model.mass_matrix(q))
        return float(np.sqrt(squares[-1])), modes[:, -1]

    @quantity
    def linear_natural_frequency(self, _: Instant) -> Any:
        return self._swing()[0]

    @quantity
    def linear_amplitude(self, _: Instant) -> Any:
        """Amplitude of theta3 after all torques have ended."""
        frequency, shape = self._swing()
        model = self.model
        total = 0.0j
        for name, signal in self.inputs.items():
            effect = shape @ model.input_force(
                model.home, np.eye(len(model.inputs))[model.inputs.index(name)]
            )
            end = min(signal.until, self.case.t_end or 0.0)
            for part, turn in ((1.0, np.cos), (1.0j, np.sin)):
                wave = quad(
                    lambda t, s=signal, turn=turn: s(t) * turn(frequency * t),
                    0.0,
                    end,
                    epsabs=1e-13,
                    epsrel=1e-12,
                    limit=400,
                )[0]
                total += part * effect * wave
        swing = shape[model.independent.index("theta3_dot")]
        return abs(swing * total) / frequency

    @quantity
    def effective_inertia(self, _: Instant) -> Any:
        """Torque on a wheel, and its opposite on the other, for a unit of acceleration."""
        turning = Instant(self.model, 0.0, self.model.home, np.zeros(3), np.array([1.0, -1.0]))
        return 1.0 / self.accelerations(turning)[0]
