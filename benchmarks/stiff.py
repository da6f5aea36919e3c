"""Section `stiff`: a governor with stiff couplers, and a robot of 50 degrees of freedom with stiff
joint gains; explicit and implicit steps, and SciPy's on the same rates and exact Jacobians."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

import axode as ax
from axode.codegen.tape.derivatives import forward_tape
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.model_parts import function_tape

Row = dict[str, Any]
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)  # relative; a hundredth of it absolute
FINE = 1e-11  # relative, of the reference; a tenth of it absolute: less is rounding
OURS = ("auto", "radau9", "rodas5p")
THEIRS = ("Radau", "BDF", "LSODA")
PART = 1000  # of the motion: what is extended is one part of so many
MOST_STEPS = 2_000_000  # explicit ones; where there are more, a part of them is extended
WRONG = 1e-3  # of the motion's size: more is another motion
OPTIMISED = 2.0  # [s] of runs after which code is optimised
STIFFNESS, DAMPING = 400.0, 20.0  # [N m/rad, N m s/rad] of the robot's joints
TARGET = 0.3  # [rad], of all its joints


@dataclass(frozen=True)
class Case:
    """Something that moves stiffly.

    Attributes:
        duration: Of the motion [s].
        start: By name.
        gains: Of joints that are held at TARGET: stiffness and damping, or none.
    """

    name: str
    model: ax.Model
    duration: float
    start: dict[str, float]
    gains: tuple[float, float] | None = None

    @property
    def joints(self) -> list[str]:
        """Names of the driven joints."""
        return [name.rsplit(".", 1)[0] for name in self.model.inputs]

    @property
    def input(self) -> Callable[[Any], Any] | None:
        """The law of its motors, as `simulate` takes it."""
        if self.gains is None:
            return None
        p, d = self.gains
        pairs = list(zip(self.model.inputs, self.joints, strict=True))
        return lambda s: {u: -p * (s[j] - TARGET) - d * s[f"{j}.rate"] for u, j in pairs}


def governor() -> Case:
    """A stiff flyball governor (A05 of the IFToMM library of multibody benchmarks): couplers are
    springs of 8e5 N/m with dampers of 4e4 N s/m."""
    bot = ax.Mechanism("governor")
    rod, ball, length = 0.3, 5.0, 1.0
    along = rod * length**2 / 12
    shaft = bot.add_body("shaft", mass=rod, com=(0, 0, -0.5), inertia=(along, along, 5e-6))
    bot.add_joint("spin", ax.Revolute("z"), parent=bot.ground, child=shaft)
    slider = bot.add_body("slider", mass=3.0, inertia=(0.005, 0.005, 0.005))
    bot.add_joint("lift", ax.Prismatic("z"), parent=shaft, child=slider)
    centre = -(rod * length / 2 + ball * length) / (rod + ball)
    across = along + rod * (length / 2 + centre) ** 2 + ball * (length + centre) ** 2
    for side, sign in (("left", 1.0), ("right", -1.0)):
        arm = bot.add_body(
            f"{side}_arm", mass=rod + ball, com=(0, 0, centre), inertia=(across, across, 5e-6)
        )
        bot.add_joint(side, ax.Revolute((0, sign, 0)), parent=shaft, child=arm)
        bot.add_spring(
            f"{side}_coupler",
            parent=arm,
            child=slider,
            at=(0, 0, -0.5),
            stiffness=8e5,
            rest=0.5,
            damping=4e4,
        )
    angle = math.radians(30)
    start = {"left": angle, "right": angle, "lift": -math.cos(angle), "spin.rate": 2 * math.pi}
    return Case("governor", bot.derive().compile(), 10.0, start)


def robot() -> Case:
    """A floating trunk with two legs and two arms with hands of three fingers: 50 degrees of
    freedom, the finger tips 10 g heavy and under the same gains as the legs."""
    bot = ax.Mechanism("robot")
    trunk = bot.add_body("trunk", mass=20.0, com=(0.01, 0, 0.2), inertia=(0.5, 0.4, 0.2))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=trunk)

    def grow(
        name: str,
        parent: Any,
        at: tuple[float, float, float],
        axes: str,
        links: list[tuple[float, float]],
    ) -> tuple[Any, tuple[float, float, float]]:
        for k, ((mass, length), axis) in enumerate(zip(links, axes, strict=True)):
            moment = mass * length**2 / 12
            link = bot.add_body(
                f"{name}{k}",
                mass=mass,
                com=(0.0, 0.05 * length, -length / 2),
                inertia=(1.1 * moment, moment, 0.3 * moment),
            )
            bot.add_joint(f"{name}{k}", ax.Revolute(axis), parent=parent, child=link, at=at)
            bot.add_motor(f"{name}{k}", f"{name}{k}")
            parent, at = link, (0.0, 0.0, -length)
        return parent, at

    for side, y in (("left", 1.0), ("right", -1.0)):
        grow(
            f"{side}_leg",
            trunk,
            (0, 0.1 * y, 0),
            "zxyyyx",
            [(3, 0.05), (3, 0.05), (5, 0.4), (4, 0.4), (0.5, 0.05), (1, 0.08)],
        )
        hand, at = grow(
            f"{side}_arm",
            trunk,
            (0, 0.2 * y, 0.5),
            "yxzyzyx",
            [(1, 0.05), (1, 0.05), (2, 0.3), (1, 0.05), (1, 0.25), (0.3, 0.03), (0.4, 0.08)],
        )
        for finger in range(3):
            grow(
                f"{side}_finger{finger}_",
                hand,
                (0.03 * (finger - 1), 0, at[2]),
                "yyy",
                [(0.03, 0.03), (0.02, 0.025), (0.01, 0.02)],
            )
    return Case("robot", bot.derive().compile(), 3.0, {}, (STIFFNESS, DAMPING))


class Rates:
    """The compiled model and its law of motors, as SciPy wants them: rates and exact Jacobian."""

    def __init__(self, case: Case) -> None:
        model = case.model
        self.n_q, n_nu = len(model.coordinates), len(model.independent)
        self.n = self.n_q + n_nu
        self.tape = function_tape(model, "state_rate")
        moving = {"q": ("z", 0), "nu": ("z", self.n_q), "u": ("u_z", 0)}
        along = forward_tape(self.tape, moving, {"z": self.n, "u_z": len(model.inputs)})
        self._rate, self._along = CompiledFunction(self.tape), CompiledFunction(along)
        self.gain, self.offset = np.zeros((len(model.inputs), self.n)), np.zeros(len(model.inputs))
        if case.gains is not None:
            for k, joint in enumerate(case.joints):
                self.gain[k, model.coordinates.index(joint)] = -case.gains[0]
                speed = self.n_q + model.independent.index(f"{joint}.rate")
                self.gain[k, speed] = -case.gains[1]
                self.offset[k] = case.gains[0] * TARGET
        self._eye = np.eye(self.n)
        self._changes = np.ascontiguousarray(self.gain.T)

    def _arrays(self, x: np.ndarray) -> list[np.ndarray]:
        known = {"q": x[: self.n_q], "nu": x[self.n_q :], "u": self.gain @ x + self.offset}
        return [np.ascontiguousarray(known[port.name]) for port in self.tape.inputs]

    def rate(self, _: float, x: np.ndarray) -> np.ndarray:
        """Rates of q and nu."""
        return np.array(self._rate(*self._arrays(x))[: self.n])

    def jacobian(self, _: float, x: np.ndarray) -> np.ndarray:
        """Their derivatives, feedback included; all directions in one call."""
        made = self._along(*self._arrays(x), self._eye, self._changes)
        return np.array(made[:, : self.n].T)


def stiff(console: Console, repeat: int) -> dict[str, object]:
    """Measure everything and show it; raises AssertionError where a motion is wrong."""
    found: dict[str, object] = {}
    for case in (governor(), robot()):
        reference = _state(case, _ours(case, "radau9", FINE))
        turns = max(1, repeat // 2)
        rows = [row for tolerance in TOLERANCES for row in _rows(case, tolerance, reference, turns)]
        console.print(_table(case, rows))
        for row in rows:
            wrong = f"{case.name}: {row['method']} is off by {row['error']}"
            assert not (row["error"] or 0.0) > WRONG, wrong
        found[case.name] = {
            "seconds of motion": case.duration,
            "speeds": len(case.model.independent),
            "rows": rows,
        }
    return found


def _rows(case: Case, tolerance: float, reference: np.ndarray, turns: int) -> list[Row]:
    """All contestants in turn; of each the turn of median time."""
    rates = Rates(case)
    contestants: dict[str, Callable[[], Row]] = {
        f"Axode {method}": partial(_measure, case, method, tolerance, reference) for method in OURS
    }
    contestants["Axode dopri5"] = partial(_explicit, case, tolerance, reference)
    for work in contestants.values():
        began = time.process_time()
        while time.process_time() < began + OPTIMISED:
            work()  # compiled, or loaded from the cache
    contestants |= {
        f"SciPy {method}": partial(_theirs, case, rates, method, tolerance, reference)
        for method in THEIRS
    }
    made: dict[str, list[Row]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, work in contestants.items():
            made[name].append(work())
    rows = []
    for name, taken in made.items():
        middle = sorted(taken, key=lambda row: row["seconds"])[len(taken) // 2]
        rows.append({"method": name, "rtol": tolerance, **middle})
    return rows


def _ours(
    case: Case, method: str, tolerance: float, duration: float | None = None
) -> ax.Trajectory:
    duration = case.duration if duration is None else duration
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ax.simulate(
            case.model,
            duration,
            start=case.start,
            input=case.input,
            method=method,
            rtol=tolerance,
            atol=0.01 * tolerance if tolerance > FINE else 0.1 * FINE,
            save_every=duration,
            progress=False,
        )


def _state(case: Case, run: ax.Trajectory) -> np.ndarray:
    names = (*case.model.coordinates, *case.model.independent)
    return np.array([run.final[name] for name in names])


def _off(state: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(state - reference).max() / np.abs(reference).max())


def _measure(case: Case, method: str, tolerance: float, reference: np.ndarray) -> Row:
    began = time.process_time()
    run = _ours(case, method, tolerance)
    return {
        "steps": run.info["steps"],
        "seconds": time.process_time() - began,
        "error": _off(_state(case, run), reference),
    }


def _explicit(case: Case, tolerance: float, reference: np.ndarray) -> Row:
    """The whole motion unless it has too many steps; else a part of it, extended."""
    began = time.process_time()
    part = _ours(case, "dopri5", tolerance, case.duration / PART)
    if PART * part.info["steps"] < MOST_STEPS:
        return _measure(case, "dopri5", tolerance, reference)
    return {
        "steps": PART * part.info["steps"],
        "seconds": PART * (time.process_time() - began),
        "error": None,
        "extended from": case.duration / PART,
    }


def _theirs(case: Case, rates: Rates, method: str, tolerance: float, reference: np.ndarray) -> Row:
    start = ax.assemble(case.model, case.start)
    x = np.concatenate([start.q, start.nu])
    began = time.process_time()
    made = solve_ivp(
        rates.rate,
        (0.0, case.duration),
        x,
        method=method,
        jac=rates.jacobian,
        rtol=tolerance,
        atol=0.01 * tolerance,
        t_eval=[case.duration],
    )
    return {
        "steps": None,
        "rates": made.nfev,
        "seconds": time.process_time() - began,
        "error": _off(made.y[:, -1], reference),
    }


def _table(case: Case, rows: list[Row]) -> Table:
    table = Table(title=f"{case.name}: {case.duration:g} s of motion")
    for heading in ("method", "rtol", "steps", "rates", "CPU [s]", "error"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for row in rows:
        mark = " (extended)" if "extended from" in row else ""
        table.add_row(
            f"{row['method']}{mark}",
            f"{row['rtol']:.0e}",
            _number(row["steps"]),
            _number(row.get("rates")),
            f"{row['seconds']:.3g}",
            "" if row["error"] is None else f"{row['error']:.0e}",
        )
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"
