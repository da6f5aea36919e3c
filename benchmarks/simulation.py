"""Section `simulate`: steps of a wheeled pendulum per second, one core, beside MuJoCo and SciPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from scipy.integrate import solve_ivp

import axode as ax
from benchmarks.mechanisms import wheeled_pendulum
from benchmarks.targets import Target, targets_table
from benchmarks.timing import Contestant, Times, in_turn, timed

STEP = 1e-3  # [s]
LONG = 90.0  # [s]
BATCH, BATCH_SECONDS = 4096, 2.0
SCIPY_SECONDS, MUJOCO_SECONDS = 2.0, 5.0  # [s] of motion: they take their time
START = {"pitch": 0.3, "base.surge": 0.5, "base.yaw_rate": 0.5}
TOLERANCE = 1e-8  # of rk4 at this step against a tight solve_ivp, after a second
SOFT_TOLERANCE = 0.02  # [rad], of MuJoCo's pitch while it falls, half a second

ONE, MANY = "Axode rk4, one run", f"Axode rk4, {BATCH} runs"
RK45 = "solve_ivp RK45, steps of at most 1 ms"
ADAPTIVE, DOPRI = "solve_ivp DOP853, rtol 1e-10", "Axode dopri5, rtol 1e-10"
MUJOCO = "MuJoCo RK4"
# What to show of the checks: ours and theirs.
ACCURACY = (
    ("largest slip of a wheel [m/s]", "axode_slip", "mujoco_slip"),
    ("distance crept [m]", "axode_crept_90_s", "mujoco_crept_90_s"),
    ("largest change of energy [J]", "axode_energy_change", "mujoco_energy_change"),
    ("pitch after half a second [rad]", "pitch_after_0.5_s", "mujoco_pitch_after_0.5_s"),
)


def simulation(console: Console, repeat: int) -> dict[str, object]:
    """Measure everything and show it; raises AssertionError where a motion is wrong."""
    mechanism = wheeled_pendulum()
    model = mechanism.derive().compile(parameters="fixed")
    checks = _check(model)
    contestants: dict[str, Contestant] = {
        ONE: _axode(model),
        MANY: _axode_batch(model),
        RK45: _scipy(model),
    }
    skipped = {}
    try:
        contestants[MUJOCO] = _mujoco(checks, model)
    except ImportError:
        skipped[MUJOCO] = "not installed; pip install mujoco"
    times = in_turn(contestants, repeat)
    adaptive = in_turn(
        {DOPRI: _axode_adaptive(model), ADAPTIVE: _scipy_adaptive(model)}, max(3, repeat // 2)
    )
    whole = _whole_call(model, repeat)
    console.print(_table(times, skipped))
    console.print(_accuracy_table(checks))
    for name, t in adaptive.items():
        console.print(f"{LONG:.0f} s of motion, {name}: {t.text('ms')} ms")
    console.print(
        f"{LONG:.0f} s of motion at 1 ms, the whole call of axode.simulate, with "
        f"everything recorded every 0.18 s: {whole.text('ms')} ms"
    )
    targets = _targets(times)
    console.print(targets_table(targets))
    return {
        "operations": {"state_rate": model.operations("state_rate")},
        "seconds_a_step": {name: list(t.seconds) for name, t in times.items()},
        "adaptive_seconds": {name: list(t.seconds) for name, t in adaptive.items()},
        "whole_call_seconds": list(whole.seconds),
        "checks": checks,
        "skipped": skipped,
        "targets": [target.data() for target in targets],
    }


def _run(model: ax.Model, duration: float, **options: object) -> ax.Trajectory:
    given = {"start": START, "method": "rk4", "step": STEP, "progress": False} | options
    return ax.simulate(model, duration, **given)


def _check(model: ax.Model) -> dict[str, float]:
    """Against a tight solve_ivp; energy and slip over the long run."""
    q, nu = _start(model)
    wanted = solve_ivp(
        _rate(model), (0, 1), np.concatenate([q, nu]), method="DOP853", rtol=1e-12, atol=1e-12
    ).y[:, -1]
    run = _run(model, 1.0)
    found = np.array([run[name][-1] for name in (*model.coordinates, *model.independent)])
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert error < TOLERANCE, f"rk4 differs from solve_ivp by {error:.3g}"
    run = _run(model, LONG, save_every=10 * STEP)
    slips = _slips(model, run)
    energy = run["kinetic"] + run["potential"]
    return {
        "rk4_error_after_1_s": error,
        "axode_slip": float(slips.max()),
        "axode_crept_90_s": float(slips.sum() * 10 * STEP),
        "axode_energy_change": float(np.abs(energy - energy[0]).max()),
    }


def _start(model: ax.Model) -> tuple[np.ndarray, np.ndarray]:
    state = ax.assemble(model, START)
    return np.asarray(state.q), np.asarray(state.nu)


def _slips(model: ax.Model, run: ax.Trajectory) -> np.ndarray:
    """Larger speed of the two wheels' lowest points along the ground, at all instants [m/s]."""
    from benchmarks.peers.mujoco_pendulum import contact_speed

    q = np.stack([run[name] for name in model.coordinates], axis=-1)
    nu = np.stack([run[name] for name in model.independent], axis=-1)
    twists = model.twists(q, nu)
    wheels = [model.bodies.index(side) for side in ("left", "right")]
    return np.array([max(contact_speed(twist[wheel]) for wheel in wheels) for twist in twists])


def _rate(model: ax.Model) -> Callable[[float, np.ndarray], np.ndarray]:
    """The compiled model as solve_ivp wants it."""
    n, m = len(model.coordinates), len(model.independent)
    u = np.zeros(len(model.inputs))

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        found = model.evaluate("state_rate", {"q": x[:n], "nu": x[n:], "u": u})
        return found[: n + m]

    return rate


# contestants --------------------------------------------------------------------------------------


def _axode(model: ax.Model) -> Contestant:
    """Seconds a step of the run alone; the recording comes after, see the whole call."""
    steps = round(LONG / STEP)
    return lambda: _run(model, LONG, save_every=LONG).info["seconds"] / steps


def _axode_batch(model: ax.Model) -> Contestant:
    rng = np.random.default_rng(0)
    q, nu = (np.tile(x, (BATCH, 1)) for x in _start(model))
    q[:, model.coordinates.index("pitch")] = rng.uniform(-0.5, 0.5, BATCH)
    nu += rng.uniform(-0.5, 0.5, nu.shape)
    steps = BATCH * round(BATCH_SECONDS / STEP)
    _run(model, BATCH_SECONDS, start=(q, nu), save_every=BATCH_SECONDS, threads=1)
    return lambda: (
        _run(model, BATCH_SECONDS, start=(q, nu), save_every=BATCH_SECONDS, threads=1).info[
            "seconds"
        ]
        / steps
    )


def _axode_adaptive(model: ax.Model) -> Contestant:
    def run() -> ax.Trajectory:
        return ax.simulate(
            model, LONG, start=START, rtol=1e-10, atol=1e-10, save_every=LONG, progress=False
        )

    run()
    return lambda: timed(run)[0]


def _scipy(model: ax.Model) -> Contestant:
    """RK45, its steps held at ours by the longest it may take: one step, six evaluations."""
    x = np.concatenate(_start(model))
    rate = _rate(model)

    def run() -> float:
        spent, solved = timed(
            lambda: solve_ivp(
                rate, (0, SCIPY_SECONDS), x, first_step=STEP, max_step=STEP, rtol=1e-6
            )
        )
        return spent / (len(solved.t) - 1)

    return run


def _scipy_adaptive(model: ax.Model) -> Contestant:
    x, rate = np.concatenate(_start(model)), _rate(model)
    return lambda: timed(
        lambda: solve_ivp(rate, (0, LONG), x, method="DOP853", rtol=1e-10, atol=1e-10)
    )[0]


def _mujoco(checks: dict[str, float], model: ax.Model) -> Contestant:
    """MuJoCo's own loop over its steps, after a look at how well it rolls."""
    import mujoco

    from benchmarks.peers.mujoco_pendulum import mujoco_pendulum, pitch_of, slip, start

    theirs, data = mujoco_pendulum(STEP)
    lean = (START["pitch"], START["base.yaw_rate"], START["base.surge"])
    start(theirs, data, *lean)
    mujoco.mj_step(theirs, data, round(0.5 / STEP))
    ours = float(_run(model, 0.5)["pitch"][-1])
    checks["pitch_after_0.5_s"] = ours
    checks["mujoco_pitch_after_0.5_s"] = pitch_of(data)
    difference = abs(ours - pitch_of(data))
    assert difference < SOFT_TOLERANCE, f"MuJoCo's pitch differs by {difference:.3g} rad"
    start(theirs, data, *lean)
    theirs.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    mujoco.mj_forward(theirs, data)
    energies, slips, crept, contacts = [data.energy.sum()], [], 0.0, []
    for _ in range(round(LONG / (10 * STEP))):
        mujoco.mj_step(theirs, data, 10)
        energies.append(data.energy.sum())
        slips.append(slip(theirs, data))
        crept += slips[-1] * 10 * STEP
        contacts.append(data.ncon)
    theirs.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    checks["mujoco_slip"] = float(max(slips))
    checks["mujoco_crept_90_s"] = float(crept)
    checks["mujoco_energy_change"] = float(np.abs(np.array(energies) - energies[0]).max())
    checks["mujoco_contacts"] = float(np.mean(contacts))
    steps = round(MUJOCO_SECONDS / STEP)

    def run() -> float:
        start(theirs, data, *lean)
        return timed(lambda: mujoco.mj_step(theirs, data, steps))[0] / steps

    return run


def _whole_call(model: ax.Model, repeat: int) -> Times:
    def call() -> object:
        return _run(model, LONG).values  # computes all columns

    call()
    return in_turn({"": lambda: timed(call)[0]}, repeat)[""]


# tables -------------------------------------------------------------------------------------------


def _table(times: dict[str, Times], skipped: dict[str, str]) -> Table:
    shown = Table(title="Wheeled pendulum, one core: steps of 1 ms")
    shown.add_column("who", no_wrap=True)
    for column in (
        "steps per second",
        "ns per step",
        "least..most",
        "ratio to one run",
        "ratio to batch",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for name, t in times.items():
        shown.add_row(
            name,
            f"{1 / t.median:,.0f}",
            f"{1e9 * t.median:.1f}",
            f"{1e9 * t.least:.1f}..{1e9 * t.most:.1f}",
            f"{t.median / times[ONE].median:.2f}",
            f"{t.median / times[MANY].median:.2f}",
        )
    for name, reason in skipped.items():
        shown.add_row(name, "-", f"skipped: {reason}", style="dim")
    return shown


def _accuracy_table(checks: dict[str, float]) -> Table:
    shown = Table(title=f"The same {LONG:.0f} s at 1 ms, no motors, no damping")
    for column in ("", "Axode", "MuJoCo"):
        shown.add_column(column, justify="left" if not column else "right")
    for label, ours, theirs in ACCURACY:
        cells = [f"{checks[key]:.5g}" if key in checks else "-" for key in (ours, theirs)]
        shown.add_row(escape(label), *cells)
    return shown


def _targets(times: dict[str, Times]) -> list[Target]:
    mujoco, scipy = times.get(MUJOCO), times[RK45]
    ratio = {name: mujoco.median / times[name].median if mujoco else None for name in (ONE, MANY)}
    return [
        Target(f"simulate: {ONE}", 120.0, ratio[ONE], against=MUJOCO),
        Target(f"simulate: {MANY}", 450.0, ratio[MANY], against=MUJOCO),
        Target(f"simulate: {ONE}", 30.0, scipy.median / times[ONE].median, against=RK45),
    ]
