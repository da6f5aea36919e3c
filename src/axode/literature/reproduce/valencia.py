"""The mobile manipulator's arm and platform: Figs 5 to 9 of Valencia, Aviles and Mauledoux."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.literature.reproduce.item import (
    Array,
    Check,
    FigureCurve,
    FigurePanel,
    ItemResult,
    Level,
    apart,
    columns_of,
    farthest,
    item,
    largest,
    misprinted,
    our_curves,
    over_time,
    printed_curves,
    run_curves,
    states_of,
    vanishing,
)
from axode.literature.reproduce.manipulator_coupling import manipulator
from axode.model.model import Model
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "progress": False}
SPACING = 0.01  # [s]


def _stages(model: Model, start: Any, stages: Sequence[tuple[float, dict[str, float]]]) -> Any:
    """A run under torques that jump from one stage to the next."""
    run: Trajectory | None = None
    for length, torques in stages:
        now = 0.0 if run is None else float(run.time[-1])
        more = simulate(
            model,
            length,
            start=start if run is None else run,
            input=torques,
            t0=now,
            save_every=SPACING,
            **EXACT,
        )
        run = more if run is None else run + more
    return run


# the arm -----------------------------------------------------------------------------------------

ARM = {  # none of it is printed
    "l1": 0.3,
    "l2": 0.25,
    "l3": 0.15,
    "m1": 1.2,
    "m2": 0.9,
    "m3": 0.5,
    "mc": 1.5,
    "Ib": 0.0064,
    "b1": 0.5,
    "b2": 1.5,
    "b3": 1.0,
    "b4": 0.4,
    "g": 9.81,
}
HANGING = {"theta1": 0.0, "theta2": -math.pi / 2, "theta3": 0.0, "theta4": 0.0}
TORQUE, PERIOD, PERIODS = 2.0, 5.0, 4  # [N m], [s], how many
SETTLED = 0.01  # [rad] that a range of angles may change from one of the last periods to the next
JOINTS = ("theta1", "theta2", "theta3", "theta4")
RATES = tuple(f"{name}_dot" for name in JOINTS)
TORQUES = ("tau1", "tau2", "tau3", "tau4")
PRINT_TORQUE, PRINT_ACCELERATION = 20.0, 2e3  # [N m], [rad/s²] that errata may be off by
PRINT_SHOWN = 0.05  # [s] of the equations as printed


@item("arm-pulses", "valencia", "five-axis arm under torque pulses, Figs 5 and 6")
def arm() -> ItemResult:
    """Pulses of 0 and 2 N m on all axes, Figs 5 and 6; reversed ones; and the printed equations."""
    model = build("five_axis_arm", **ARM).derive().compile("interpreter")
    run, reversed_run = (_pulses(model, low) for low in (0.0, -TORQUE))
    kinks = [k * PERIOD / 2 for k in range(1, 2 * PERIODS)]
    start = [*HANGING.values(), *[0.0] * 4]
    theirs = printed.five_axes(ARM, _pulse, start, run.time, kinks)
    times = np.linspace(0.0, PRINT_SHOWN, 101)
    literal = printed.five_axes(ARM, _pulse, start, times, [], misprint=True)
    started = run.resample(times)
    by_base, by_cramer = _as_printed(model, reversed_run)
    turn = TORQUE * PERIOD / 2 / ARM["b1"]  # of theta_1 in a period of pulses of one sign
    last, before = (float(run.at(k * PERIOD)["theta1"]) for k in (PERIODS, PERIODS - 1))
    ends = [_ranges(reversed_run, k) for k in (PERIODS - 2, PERIODS - 1)]
    checks = [
        vanishing(
            "our angles and those of (35) corrected, 20 s, apart by",
            farthest(run, JOINTS, theirs),
            "rad",
        ),
        Check("theta_1 in the last period", last - before, turn, 1e-3, "rad", "impulse / friction"),
        vanishing(
            "theta_1 after 20 s, said not to tend to infinity",
            last,
            "rad",
            within=turn,
            why="pulses of one sign turn a base with viscous friction by their impulse over the "
            "friction in every period, whatever the masses are",
            explained=PERIODS * turn + 0.1,
        ),
        vanishing(
            "rates of the equations as printed, first 20 ms, and ours apart by",
            apart(literal[4:, :41], started[RATES].values[:41].T),
            "rad/s",
            why="(47) has the wrong sign (E-7), so that friction drives axis 3; after 40 ms it is "
            "faster than 1000 rad/s",
            explained=printed.LOST,
        ),
        vanishing(
            "torque of the base by (37), (38), (42) as printed off by",
            by_base,
            "N m",
            within=1e-9,
            why="the base is too heavy by erratum E-2, (38) has lost an angle by E-4, and (42) has "
            "two slips by E-5",
            explained=PRINT_TORQUE,
        ),
        vanishing(
            "accelerations of axes 2 and 3 by (46), (47) as printed off by",
            by_cramer,
            "rad/s²",
            within=1e-9,
            why="a cofactor is wrong by erratum E-6, and a sign by E-7",
            explained=PRINT_ACCELERATION,
        ),
        vanishing(
            "reversed pulses: ranges of the angles, last period and the one before, apart by",
            largest(ends[1] - ends[0]),
            "rad",
            within=SETTLED,
        ),
        vanishing("energy lost by the integration, relative", float(run.energy_error), within=1e-7),
    ]
    panels = [
        _joints("Fig. 5: angular behavior of the joints", ANGLE, run, JOINTS, theirs[:4]),
        _joints("Fig. 6: velocity behavior of the joints", RATE, run, RATES, theirs[4:]),
        _joints("Fig. 5, pulses of plus and minus 2 N m", ANGLE, reversed_run, JOINTS),
        _joints("Fig. 6, pulses of plus and minus 2 N m", RATE, reversed_run, RATES),
        over_time(
            "(37), (42), (46) to (48) as printed",
            RATE,
            [
                *run_curves(started, _symbols(RATES)),
                *misprinted(started.time, literal[4:], "as printed"),
            ],
            heights=(-60.0, 60.0),
        ),
    ]
    table = columns_of(run, (*JOINTS, *RATES, *TORQUES))
    return ItemResult(table, panels, ARM_CAPTION, checks)


ANGLE, RATE = "angle [rad]", r"rate $\dot\theta$ [rad/s]"
ARM_CAPTION = (
    "Torques of 0 and 2 N m on all four axes in turns, half a period of 5 s each, from the arm "
    "hanging at rest. Lengths, masses and friction are not printed: links of 0.3, 0.25, 0.15 m, "
    "point masses of 1.2, 0.9, 0.5 and 1.5 kg, friction 0.5, 1.5, 1, 0.4 N m s/rad. The source "
    "says that no angle and no rate tends to infinity; θ₁ does, by 10 rad in every period, unless "
    "the pulses change their sign. Grey: equation (35) with its errata, integrated by SciPy. Last "
    "panel, dashed: the base by (37), (38), (42), the others by (46) to (48), as printed; θ₃ runs "
    "away within 40 ms."
)


def _pulses(model: Model, low: float) -> Trajectory:
    """20 s of torques that jump between 2 N m and another value."""
    levels = (dict.fromkeys(TORQUES, TORQUE), dict.fromkeys(TORQUES, low))
    run: Trajectory = _stages(model, HANGING, [(PERIOD / 2, level) for level in levels] * PERIODS)
    return run


def _as_printed(model: Model, run: Trajectory) -> tuple[float, float]:
    """How far the printed torque of the base and Cramer's rule are off along a motion."""
    q, nu, u = states_of(model, run)
    found = np.asarray(model.forward_dynamics(q, nu, u))
    theta, rates = run[JOINTS].values.T, run[RATES].values.T
    base = printed.five_axes_base(ARM, theta, rates, found[:, 0])
    M = np.asarray(model.mass_matrix(q))[:, 1:4, 1:4]
    Z = (M @ found[:, 1:4, np.newaxis])[..., 0]
    cramer = printed.five_axes_cramer(M, Z)
    return apart(base, run["tau1"]), apart(cramer, found[:, 1:3].T)


def _pulse(t: float) -> float:
    return TORQUE if t % PERIOD < PERIOD / 2 else 0.0


def _joints(
    title: str, y: str, run: Trajectory, names: Sequence[str], theirs: Iterable[Array] = ()
) -> FigurePanel:
    grey = printed_curves(run.time, theirs, "equation (35)")
    return over_time(title, y, (*run_curves(run, _symbols(names)), *grey))


def _symbols(names: Sequence[str]) -> dict[str, str]:
    symbol = r"\dot\theta" if names == RATES else r"\theta"
    return {name: f"${symbol}_{k}$" for k, name in enumerate(names, start=1)}


def _ranges(run: Trajectory, period: int) -> Array:
    """Smallest and largest angle of every joint in a period, counted from 0."""
    part = run.between(period * PERIOD, (period + 1) * PERIOD)
    return np.array([[part[name].min(), part[name].max()] for name in JOINTS])


# the platform ------------------------------------------------------------------------------------

PLATFORM = {"m": 24.0, "I": 1.1, "I1": 0.03, "r": 0.11, "l": 0.24, "bR": 2.0, "bL": 2.0}
HEADING = 0.7854  # [rad] at the start, as printed
STRONG, WEAK = 10.0, 8.0  # [N m]; the first is printed
STAGE, STAGES = 2.0, 4
RADIUS_SHOWN = 12.0  # [m]
PRINT_TURNS = 50.0  # [rad/s] by which (67) may be off
PRINT_SPEED = 60.0  # [m/s] by which (66) may be off after 8 s
INERTIA_SHOWN = 200.0  # [kg m²]


@item("platform-torques", "valencia", "six-wheel platform under torques, Figs 7 to 9")
def platform() -> ItemResult:
    """Torques of 10 N m on a side, the other weaker, in turns: Figs 7 to 9."""
    model = build("six_wheel_platform", **PLATFORM).derive().compile("interpreter")
    sides = ({"tau_R": STRONG, "tau_L": WEAK}, {"tau_R": WEAK, "tau_L": STRONG})
    run = _stages(model, {"theta": HEADING}, [(STAGE, sides[k % 2]) for k in range(STAGES)])
    v, w, theta = run["v"], run["w"], run["theta"]
    # where the platform goes straight on there is no radius
    radius = np.divide(v, w, out=np.full_like(v, np.nan), where=np.abs(w) > 1e-3)
    rates = {"x": v * np.cos(theta), "y": v * np.sin(theta), "theta": w}
    first = run.time <= STAGE
    theirs = printed.six_wheels(PLATFORM, STRONG, WEAK, run.time[first])
    wrong = printed.six_wheels(PLATFORM, STRONG, WEAK, run.time[first], misprint=True)
    literal = printed.six_wheels_as_printed(PLATFORM, STRONG + WEAK, run.time, HEADING)
    steady = PLATFORM["r"] * (STRONG + WEAK) / (PLATFORM["bR"] + PLATFORM["bL"])
    checks = [
        vanishing("v and those of (66), first 2 s, apart by", apart(v[first], theirs[0]), "m/s"),
        vanishing("w and those of (67) corrected apart by", apart(w[first], theirs[1]), "rad/s"),
        Check("steady speed", float(v[-1]), steady, 1e-6, "m/s", "torque over friction"),
        vanishing(
            "w and that of (67) with the sum of the torques, as printed, apart by",
            apart(w[first], wrong[1]),
            "rad/s",
            why="by erratum E-15 the difference turns the platform",
            explained=PRINT_TURNS,
        ),
        vanishing(
            "speed after 8 s by (66) as printed, and ours, apart by",
            abs(float(literal[0, -1] - v[-1])),
            "m/s",
            why="without friction, which (66) and (67) do not have, no speed is constant",
            explained=PRINT_SPEED,
        ),
        vanishing(
            "place and heading, first 2 s, and quadrature of (62) from them apart by",
            max(
                apart(run[name][first], row)
                for name, row in zip(
                    ("x_c", "y_c", "theta"), _quadrature(run.time[first]), strict=True
                )
            ),
            "m or rad",
        ),
    ]
    names = ("x_c", "y_c", "theta", "v", "w", "phi_R_dot", "phi_L_dot", "tau_R", "tau_L")
    table = columns_of(run, names)
    table |= {"radius [m]": radius, "x_c_dot [m/s]": rates["x"], "y_c_dot [m/s]": rates["y"]}
    panels = _platform_panels(run, radius, rates, theirs)
    panels += _printed_panels(run, radius, literal)
    return ItemResult(table, panels, PLATFORM_CAPTION, checks)


def _quadrature(times: Array) -> Array:
    """Place and heading by (62) from the speeds of (66) and (67): x_dot = v cos(theta), ..."""

    def rates(t: float, pose: Array) -> Array:
        v, w = printed.six_wheels(PLATFORM, STRONG, WEAK, np.array(t))
        return np.array([v * np.cos(pose[2]), v * np.sin(pose[2]), w])

    return printed.integrate(rates, [0.0, 0.0, HEADING], times)


def _platform_panels(
    run: Trajectory, radius: Array, rates: dict[str, Array], theirs: Array
) -> list[FigurePanel]:
    first = run.time <= STAGE
    begun = [run[name][first] for name in ("v", "w")]
    shown = np.where(np.abs(radius) <= RADIUS_SHOWN, radius, np.nan)
    symbols = (r"$\dot x$", r"$\dot y$", r"$\dot\theta$")
    return [
        over_time(
            "Fig. 7: angular trajectory",
            r"$\theta$ [rad]",
            [FigureCurve(run.time, run["theta"])],
            levels=(Level(HEADING, "printed start 0.7854"),),
        ),
        over_time(
            "Fig. 8: radius",
            "v / w [m]",
            [FigureCurve(run.time, shown)],
            heights=(-RADIUS_SHOWN, RADIUS_SHOWN),
        ),
        over_time(
            "Fig. 9: behavior in velocity",
            "rate [m/s, rad/s]",
            our_curves(run.time, rates.values(), symbols),
        ),
        over_time(
            "speed along the heading, first stage",
            "v [m/s], w [rad/s]",
            [*our_curves(run.time[first], begun, "vw"), *printed_curves(run.time[first], theirs)],
        ),
    ]


def _printed_panels(run: Trajectory, radius: Array, literal: Array) -> list[FigurePanel]:
    """The printed inertia, which changes with the path, and the printed equations of motion."""
    inertia = PLATFORM["m"] * radius**2 / 2
    shown = np.where(inertia <= INERTIA_SHOWN, inertia, np.nan)
    own = np.full_like(run.time, PLATFORM["I"])

    def both(
        title: str, y: str, ours: Array, theirs: Array, word: str = "corrected", **more: Any
    ) -> FigurePanel:
        curves = our_curves(run.time, [ours], [word])
        return over_time(title, y, [*curves, *misprinted(run.time, [theirs], "as printed")], **more)

    title = r"Fig. 8 for the inertia, $\frac{1}{2} m_c r^2$"
    return [
        both(title, "I [kg m²]", own, shown, "of the body", heights=(0.0, INERTIA_SHOWN)),
        both("(66) as printed", "v [m/s]", run["v"], literal[0]),
        both("(67) as printed", "w [rad/s]", run["w"], literal[1]),
        both("Fig. 7 by (67) as printed", r"$\theta$ [rad]", run["theta"], literal[2]),
    ]


PLATFORM_CAPTION = (
    "10 N m on one side and 8 N m on the other, exchanged every 2 s, from rest at the printed "
    "heading. Only the 10 N m and the heading are printed; the rest is chosen: m = 24 kg, I = 1.1 "
    "kg m², I1 = 0.03 kg m², r = 0.11 m, l = 0.24 m and a friction of 2 N m s/rad per side, "
    "without which no speed is constant. The radius has no value where the platform goes straight "
    "on. Grey: equations (66) and (67) with the wheels' inertia and friction, and with the sign "
    "and the name that (67) lacks (erratum E-15). Dashed: (66) and (67) as printed, both of which "
    "have the sum of the torques and neither friction nor wheels; and the inertia by the radius of "
    "Fig. 8, which grows beyond all bounds wherever the platform goes straight on (erratum E-25)."
)

ITEMS = (arm, platform, manipulator)
