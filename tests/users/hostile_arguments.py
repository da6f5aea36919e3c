"""Public functions with sound arguments, and values that none of them expects."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax
from axode import gallery
from axode.motions import paths


def nested(depth: int) -> list[Any]:
    """A list in a list, and so on."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


JUNK: list[Any] = [
    np.zeros(0),
    "text",
    "",
    "\ud800",
    "\x1b[2J\n",
    "a" * 100_000,
    "(" * 5000,
    "q" + " + q" * 5000,
    b"x",
    1e-300,
    1e-18,
    1e-15,
    1e16,
    1e308,
    float("nan"),
    float("inf"),
    -1,
    0,
    3,
    0.5,
    10**400,
    -(2**63),
    None,
    True,
    1j,
    Fraction(1, 3),
    [],
    (),
    {},
    set(),
    [1, 2, 3],
    [[1], [1, 2]],
    ["x", 1],
    [float("nan")] * 3,
    {"x": 1},
    {1: 2},
    {"theta1": [1.0, float("nan")]},
    {"": ""},
    nested(3),
    nested(100),
    nested(2000),
    range(3),
    object(),
    (x for x in ()),
    np.zeros((2, 0)),
    np.zeros((2, 2, 2)),
    np.zeros((1,) * 30),
    np.full(3, np.nan),
    np.array("x"),
    np.array([None]),
    np.array("2026-01-01", dtype="datetime64[D]"),
    np.float32(2.0),
    np.ma.masked,
    Path("nowhere"),
    ax.Parameter("m", 1.0),
    1 / ax.Parameter("nothing", 0.0),
]


class Sound:
    """The public functions with sound arguments, made once.

    Args:
        folder: Where those that write files may write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mechanism = gallery.build("wheeled_pendulum")
        self.model = self.mechanism.derive().compile()

    @cached_property
    def calls(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        """Functions by name, and their sound arguments."""
        return {**self._verbs(), **self._methods(), **self._parts()}

    def names(self, call: str) -> list[str]:
        """Arguments of a function that can be replaced."""
        function, sound = self.calls[call]
        target = getattr(ax.Mechanism, call) if isinstance(function, partial) else function
        known = inspect.signature(target).parameters.values()
        named = [p.name for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        return list(dict.fromkeys([*sound, *(name for name in named if name != "self")]))

    def _verbs(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        model, bot, line = self.model, self.mechanism, {"length": 1.0, "duration": 1.0}
        short: dict[str, Any] = {"model": model, "duration": 0.01, "step": 1e-3}
        run, path = ax.simulate(**short, method="rk4"), paths.straight(0.1, 0.1)
        reach = {"start": {"a": 0.0, "b": 1.0}, "end": {"a": 1.0, "b": 1.5}}
        return {
            "simulate": (ax.simulate, {**short, "method": "rk4"}),
            "sweep": (ax.sweep, short),
            "assemble": (ax.assemble, {"model": model}),
            "linearize": (ax.linearize, {"model": model}),
            "inverse": (ax.inverse, {"model": model, "motion": run}),
            "inverse_kinematics": (
                ax.inverse_kinematics,
                {"model": model, "targets": {model.coordinates[0]: 0.1}, "attempts": 1},
            ),
            "resolved_rates": (
                ax.resolved_rates,
                {"model": model, "velocities": {model.coordinates[0]: 0.1}},
            ),
            "resolved_motion": (
                ax.resolved_motion,
                {"model": model, "targets": {model.coordinates[0]: [0.0, 0.1]}, "times": [0, 1]},
            ),
            "feasible": (ax.feasible, {"model": model, "trajectory": run, "friction": 0.5}),
            "compare": (ax.compare, {"mechanism": bot, "formulations": ["recursive"]}),
            "load": (ax.load, {"path": "nowhere.toml"}),
            "load_model": (ax.load_model, {"path": "nowhere.axm"}),
            "verify": (ax.verify, {"path": "nowhere"}),
            "derive": (bot.derive, {}),
            "compile": (bot.derive().compile, {}),
            "chain_from_dh": (ax.chain_from_dh, {"rows": [(0.0, 0.0, 0.0, 0.0)]}),
            "build": (gallery.build, {"name": "unicycle"}),
            "Sampled": (ax.Sampled, {"values": [[0.0], [1.0]], "period": 0.1}),
            "straight": (paths.straight, line),
            "circle": (paths.circle, {"radius": 1.0, "duration": 1.0}),
            "parallel_lines": (paths.parallel_lines, {"distance": 1.0, **line}),
            "along": (paths.along, {"x": [0.0, 1.0], "y": [0.0, 0.0], "duration": 1.0}),
            "follow": (paths.follow, {"model": model, "path": path}),
            "admissible": (paths.admissible, {"model": model, "path": path}),
            "minimum_jerk": (ax.motions.minimum_jerk, {**reach, "duration": 1.0}),
            "trapezoidal": (ax.motions.trapezoidal, {**reach, "acceleration": 1.0}),
            "through": (ax.motions.through, {"waypoints": list(reach.values()), "times": [0, 1]}),
            "time_optimal": (
                ax.motions.time_optimal,
                {"model": model, "path": path, "torque": 1.0, "points": 11},
            ),
            "Mechanism": (
                lambda name, gravity: ax.Mechanism(name, gravity).check(),
                {"name": "m", "gravity": (0, 0, -9.81)},
            ),
        }

    def _methods(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        model, folder = self.model, self.folder
        run, linear = ax.simulate(model, 0.01, method="rk4", step=1e-3), ax.linearize(model)
        q, nu = model.home, np.zeros(len(model.independent))
        of_state = {
            "forward_dynamics": {"nu": nu, "t": 0.0, "parameters": None},
            "inverse_dynamics": {"nu": nu, "nu_dot": nu},
            "mass_matrix": {},
            "contact_forces": {"nu": nu},
            "hybrid_dynamics": {"nu": nu, "nu_dot": {}, "u": {}},
        }
        named = {"function": "mass_matrix"}
        return {
            **{name: (getattr(model, name), {"q": q, **more}) for name, more in of_state.items()},
            "model.evaluate": (model.evaluate, {**named, "arguments": {"q": q}}),
            "model.jacobian": (
                lambda function, wrt, q: model.jacobian(function, wrt, q),
                {**named, "wrt": "q", "q": q},
            ),
            "model.c_code": (model.c_code, named),
            "model.operations": (model.operations, named),
            "model.parameter_vector": (model.parameter_vector, {"values": None}),
            "model.save": (model.save, {"path": folder / "m.axm"}),
            "model.export": (model.export, {"path": folder, "functions": ["mass_matrix"]}),
            "run.at": (run.at, {"t": 0.0}),
            "run.between": (run.between, {"t0": 0.0, "t1": 0.005}),
            "run.columns": (run.columns, {"kind": "q"}),
            "run.resample": (run.resample, {"times": [0.0, 0.001]}),
            "run.run": (run.run, {"index": 0}),
            "run.unit": (run.unit, {"name": "t"}),
            "run[]": (lambda name: run[name], {"name": "t"}),
            "run.with_columns": (run.with_columns, {"columns": {}}),
            "run.save": (run.save, {"path": folder / "r.npz"}),
            "run.load": (ax.Trajectory.load, {"path": "nowhere.npz"}),
            "linear.discretized": (linear.discretized, {"dt": 0.1}),
            "linear.lqr": (linear.lqr, {}),
            "linear.reduced": (linear.reduced, {"states": linear.states}),
            "linear.state_feedback": (linear.state_feedback, {"K": np.zeros(linear.B.T.shape)}),
            "linear.save": (linear.save, {"path": folder / "l.json"}),
            "mechanism.save": (self.mechanism.save, {"path": folder / "m.toml"}),
        }

    @staticmethod
    def _parts() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        wheel = {"name": "w", "wheel": ax.Rolling(0.1), "on": "c", "mass": 1.0}
        joint = {"name": "j", "joint": ax.Revolute(), "parent": "b", "child": "c"}
        sound: dict[str, dict[str, Any]] = {
            "add_body": {"name": "d", "mass": 1.0},
            "add_joint": joint,
            "add_loop": joint,
            "add_wheel": wheel,
            "add_caster": {**wheel, "at": (0, 0, 0), "trail": 0.1},
            "add_contact": {"name": "w", "wheel": ax.Rolling(0.1), "body": "c"},
            "add_belt": {"name": "g", "joint_a": "slide", "joint_b": "knee"},
            "add_coupling": {"name": "g", "terms": {"slide": 1.0, "knee": 2.0}},
            "add_motor": {"name": "m", "joint": "knee"},
            "add_spring": {"name": "s", "joint": "knee", "stiffness": 1.0},
            "add_damper": {"name": "s", "joint": "knee", "coefficient": 1.0},
            "add_wrench": {"name": "w", "body": "b"},
            "measure": {"name": "tip", "kind": "position", "body": "b"},
            "prescribe": {"coordinate": "knee", "motion": 1.0},
            "set_home": {"coordinates": {"knee": 0.1}},
        }
        return {name: (partial(_described, name), given) for name, given in sound.items()}


def _described(adding: str, /, **given: Any) -> None:
    """Check two links on a slide and a free body, with something added."""
    bot = ax.Mechanism("robot")
    for name in ("a", "b", "c"):
        bot.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child="a")
    bot.add_joint("knee", ax.Revolute("y"), parent="a", child="b")
    bot.add_joint("free", ax.Floating(), parent=bot.ground, child="c")
    getattr(bot, adding)(**given)
    bot.check()


def attempt(sound: Sound, call: str, replaced: dict[str, Any]) -> None:
    """Call a function with some arguments replaced; only errors of Axode's own may come out."""
    function, given = sound.calls[call]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**{**given, **replaced})
        except ax.AxodeError as error:
            str(error).encode()  # whoever prints it gets no UnicodeEncodeError
            raise
