"""The mobile manipulator of eight degrees of freedom, coupled and taken apart.

Valencia, Aviles and Mauledoux model the arm and the platform of their title apart, as if neither
felt the other. Here the same torques drive both, and the same control law follows a motion with the
inverse dynamics of either model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from axode.gallery import build, five_axis_arm, six_wheel_platform
from axode.literature.reproduce.item import (
    TIME,
    Array,
    FigureCurve,
    FigurePanel,
    ItemResult,
    apart,
    farthest,
    item,
    misprinted,
    our_curves,
    over_time,
    plan_view,
    vanishing,
)
from axode.model.model import Model
from axode.problems.inputs.inputs import Callback
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11, "progress": False}
FRICTION = {"bR": 2.0, "bL": 2.0, "b1": 0.5, "b2": 1.5, "b3": 1.0, "b4": 0.4, "b5": 0.002}
ARM_AXES = tuple(f"theta{k}" for k in range(1, 6))
SIDES = ("phi_R", "phi_L")
ALL_AXES = (*SIDES, *ARM_AXES)
SYMBOLS = {name: rf"$\theta_{name[-1]}$" for name in ARM_AXES}
SYMBOLS |= {name: rf"$\varphi_{name[-1]}$" for name in SIDES}
PARTS = {"five_axis_arm": ARM_AXES, "six_wheel_platform": SIDES}
RAISED = {"theta2": 1.0, "theta3": -1.2, "theta4": -0.4}
TORQUES = {"tau_R": "10 - 2*sin(3*t)", "tau_L": "8 + 2*sin(3*t)"} | {
    f"tau{k}": f"2*sin({2 * math.pi / 5}*t)" for k in (1, 2, 3, 4)
}
DURATION, SPACING = 4.0, 0.02  # [s]
HEAVY = 1e9  # times the platform's mass: the arm then stands on the ground
STIFFNESS, DAMPING = 100.0, 20.0  # of the control law [1/s^2], [1/s]
CONTROL = 0.004  # [s] between its samples
FOLLOWS = 1e-2  # [rad] that the law may stray with the right model, by being sampled
APART_STRAYS = 1.0  # [rad] that a model without coupling may lead astray


@item("manipulator", "valencia", "arm on the platform, coupled and taken apart")
def manipulator() -> ItemResult:
    """Same torques and same control law, with and without the coupling of arm and platform."""
    whole = build("mobile_manipulator", **FRICTION).derive().compile("interpreter")
    parts = {name: _part(name) for name in PARTS}
    together = _driven(whole, RAISED, TORQUES)
    starts = {"five_axis_arm": RAISED, "six_wheel_platform": {}}
    alone = {name: _driven(model, starts[name], model.inputs) for name, model in parts.items()}
    heavy = _driven(
        build("mobile_manipulator", **FRICTION, m=HEAVY, I=HEAVY).derive().compile("interpreter"),
        RAISED,
        parts["five_axis_arm"].inputs,
    )
    right = _controlled(whole, whole.inverse_dynamics)
    wrong = _controlled(whole, lambda q, nu, nu_dot: _apart(whole, parts, q, nu, nu_dot))
    gaps = {
        name: apart(together[name], alone[part][name])
        for part, names in PARTS.items()
        for name in names
        if name != "theta5"  # a rotor, which nothing else feels
    }
    worst = max(gaps, key=lambda name: gaps[name])
    checks = [
        vanishing(
            f"{worst} of the coupled and of the separate models, after {DURATION:g} s apart by",
            gaps[worst],
            "rad",
            why="the source lets neither part feel the other, an assumption and no erratum",
            explained=APART_STRAYS,
        ),
        vanishing(
            "arm on a platform of 1e9 times its mass, and on the ground, apart by",
            farthest(heavy, ARM_AXES, (alone["five_axis_arm"][name] for name in ARM_AXES[:4])),
            "rad",
        ),
        vanishing(
            "energy lost by the integration, relative", float(together.energy_error), within=1e-8
        ),
        vanishing(
            "computed torque with the coupled model strays by",
            _strays(right),
            "rad",
            within=FOLLOWS,
        ),
        vanishing(
            "the same law with the parts' models strays by",
            _strays(wrong),
            "rad",
            within=FOLLOWS,
            why="it does not know what arm and platform do to each other, again no erratum",
            explained=APART_STRAYS,
        ),
    ]
    table = {TIME: together.time}
    for name in ALL_AXES:
        part = alone["five_axis_arm" if name in ARM_AXES else "six_wheel_platform"]
        table |= {f"{name} [rad]": together[name], f"{name} apart [rad]": part[name]}
    panels = _panels(together, alone, right, wrong)
    return ItemResult(table, panels, CAPTION, checks)


CAPTION = (
    "The robot of Fig. 1. Top: torques of 10 and 8 N m on the sides and of 2 N m on the arm's "
    "axes, varied as sines; dashed, arm and platform each for itself, as in the source, the "
    "platform carrying the arm's mass. Bottom: computed torque 250 times per second, natural "
    "frequency 10 rad/s, along a motion of all axes; dashed, with the inverse dynamics of the two "
    "parts. Data are the gallery's, friction 2 N m s/rad a side and 0.5, 1.5, 1, 0.4, 0.002 N m "
    "s/rad at the axes."
)


def _panels(
    together: Trajectory, alone: Mapping[str, Trajectory], right: Trajectory, wrong: Trajectory
) -> list[FigurePanel]:
    arm, platform = alone["five_axis_arm"], alone["six_wheel_platform"]

    def errors(run: Trajectory, names: tuple[str, ...]) -> list[Array]:
        wanted = _reference(run.time)[0]
        return [1e3 * (run[name] - wanted[ALL_AXES.index(name)]) for name in names]

    def pair(
        title: str, y: str, names: tuple[str, ...], both: Sequence[list[Array]], t: Array
    ) -> FigurePanel:
        ours, theirs = both
        solid = our_curves(t, ours, (SYMBOLS[name] for name in names))
        return over_time(title, y, [*solid, *misprinted(t, theirs, "apart")])

    axes = ARM_AXES[:4]
    angles = [[run[name] for name in axes] for run in (together, arm)]
    return [
        pair("arm under torques", "angle [rad]", axes, angles, together.time),
        plan_view(
            "path of the platform",
            FigureCurve(together["x_c"], together["y_c"], "coupled"),
            FigureCurve(platform["x_c"], platform["y_c"], "apart", "misprint"),
        ),
        *(
            pair(
                f"{title} under computed torque",
                "error [mrad]",
                names,
                [errors(run, names) for run in (right, wrong)],
                right.time,
            )
            for title, names in (("arm", axes), ("wheels", SIDES))
        ),
    ]


# each part for itself -----------------------------------------------------------------------------


def _part(name: str) -> Model:
    """Model of a part: the arm on the ground, or the platform with the arm's mass on it."""
    defaults = (five_axis_arm if name == "five_axis_arm" else six_wheel_platform).DEFAULTS
    values = {key: value for key, value in FRICTION.items() if key in defaults}
    if name == "six_wheel_platform":
        values["m"] = defaults["m"] + sum(
            five_axis_arm.DEFAULTS[m] for m in ("m1", "m2", "m3", "mc")
        )
    return build(name, **values).derive().compile("interpreter")


def _driven(model: Model, start: Mapping[str, float], names: Iterable[str]) -> Trajectory:
    """Motion of a model under those of the torques that are named."""
    own = {name: TORQUES[name] for name in names if name in TORQUES}
    return simulate(model, DURATION, start=start, input=own, save_every=SPACING, **EXACT)


# computed torque ----------------------------------------------------------------------------------


def _reference(t: Any) -> tuple[Array, Array, Array]:
    """Angles of the sides and axes, their rates and accelerations: (7, ...) each."""
    sizes = np.array([20.0, 16.0, 1.2, -0.5, 0.8, 0.6, 1.0])
    home = np.array([0.0, 0.0, *(RAISED.get(name, 0.0) for name in ARM_AXES)])
    rate = math.pi / DURATION
    shape = (-1,) + (1,) * np.ndim(t)
    sizes, home = sizes.reshape(shape), home.reshape(shape)
    c, s = np.cos(rate * np.asarray(t)), np.sin(rate * np.asarray(t))
    return home + sizes * (1 - c) / 2, sizes * rate * s / 2, sizes * rate**2 * c / 2


def _controlled(model: Model, dynamics: Callable[[Array, Array, Array], Array]) -> Trajectory:
    """Motion of the coupled robot under a law that takes some inverse dynamics for its own."""

    def law(t: float, state: Mapping[str, float]) -> Array:
        wanted, rate, acceleration = _reference(t)
        angles = np.array([state[name] for name in ALL_AXES])
        rates = np.array([state[f"{name}_dot"] for name in ALL_AXES])
        nu_dot = acceleration + DAMPING * (rate - rates) + STIFFNESS * (wanted - angles)
        q = np.array([state[name] for name in model.coordinates])
        return dynamics(q, rates, nu_dot)

    return simulate(
        model,
        DURATION,
        start=RAISED,
        input=Callback(law),
        method="rk4",
        step=CONTROL,
        save_every=SPACING,
        progress=False,
    )


def _apart(model: Model, parts: Mapping[str, Model], q: Array, nu: Array, nu_dot: Array) -> Array:
    """Torques that the two parts would need, each for itself."""
    found: dict[str, float] = {}
    for name, names in PARTS.items():
        part = parts[name]
        mine = [ALL_AXES.index(one) for one in names]
        own = [model.coordinates.index(one) for one in part.coordinates]
        torques = part.inverse_dynamics(q[own], nu[mine], nu_dot[mine])
        found |= dict(zip(part.inputs, torques, strict=True))
    return np.array([found[name] for name in model.inputs])


def _strays(run: Trajectory) -> float:
    return farthest(run, ALL_AXES, _reference(run.time)[0])
