"""Public functions with sound arguments, and values that are none of them expects."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax
from axode import gallery
from axode.problems.paths import paths


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
    """Sound arguments of the public functions, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cache  # noqa: B019
    def mechanism(self) -> ax.Mechanism:
        return gallery.build("wheeled_pendulum")

    @cache  # noqa: B019
    def model(self) -> ax.Model:
        return self.mechanism().derive().compile()

    @cache  # noqa: B019
    def run(self) -> ax.Trajectory:
        return ax.simulate(self.model(), 0.01, method="rk4", step=1e-3)

    @cache  # noqa: B019
    def linear(self) -> Any:
        return ax.linearize(self.model())

    def robot(self) -> ax.Mechanism:
        """Two links on a slide, to which anything can be added."""
        bot = ax.Mechanism("robot")
        for name in ("a", "b", "c"):
            bot.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child="a")
        bot.add_joint("knee", ax.Revolute("y"), parent="a", child="b")
        bot.add_joint("free", ax.Floating(), parent=bot.ground, child="c")
        return bot

    def described(self, adding: str, /, **given: Any) -> None:
        """Check a description after an addition to it."""
        bot = self.robot()
        getattr(bot, adding)(**given)
        bot.check()

    def verbs(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        """Functions of the package and of its objects, with sound arguments."""
        model, run, linear = self.model(), self.run(), self.linear()
        q, nu = model.home, np.zeros(len(model.independent))
        short = {"model": model, "duration": 0.01, "step": 1e-3}
        straight = paths.straight(0.1, 0.1)
        world = {"name": "m", "gravity": (0, 0, -9.81)}
        line = {"length": 1.0, "duration": 1.0}
        return {
            "simulate": (
                ax.simulate,
                {"model": model, "duration": 0.01, "step": 1e-3, "method": "rk4"},
            ),
            "sweep": (ax.sweep, {"model": model, "duration": 0.01, "step": 1e-3}),
            "assemble": (ax.assemble, {"model": model}),
            "linearize": (ax.linearize, {"model": model}),
            "inverse": (ax.inverse, {"model": model, "motion": run}),
            "feasible": (ax.feasible, {"model": model, "trajectory": run, "friction": 0.5}),
            "compare": (ax.compare, {"mechanism": self.mechanism(), "formulations": ["recursive"]}),
            "load": (ax.load, {"path": "nowhere.toml"}),
            "load_model": (ax.load_model, {"path": "nowhere.axm"}),
            "verify": (ax.verify, {"path": "nowhere"}),
            "derive": (self.mechanism().derive, {}),
            "compile": (self.mechanism().derive().compile, {}),
            "chain_from_dh": (ax.chain_from_dh, {"rows": [(0.0, 0.0, 0.0, 0.0)]}),
            "build": (gallery.build, {"name": "unicycle"}),
            "Sampled": (ax.Sampled, {"values": [[0.0], [1.0]], "period": 0.1}),
            "straight": (paths.straight, line),
            "circle": (paths.circle, {"radius": 1.0, "duration": 1.0}),
            "parallel_lines": (paths.parallel_lines, {"distance": 1.0, **line}),
            "along": (paths.along, {"x": [0.0, 1.0], "y": [0.0, 0.0], "duration": 1.0}),
            "follow": (paths.follow, {"model": model, "path": straight}),
            "admissible": (paths.admissible, {"model": model, "path": straight}),
            **{
                f"model.{name}": (getattr(model, name), {"q": q, **more})
                for name, more in {
                    "forward_dynamics": {"nu": nu, "t": 0.0, "parameters": None},
                    "inverse_dynamics": {"nu": nu, "nu_dot": nu},
                    "mass_matrix": {},
                    "contact_forces": {"nu": nu},
                    "hybrid_dynamics": {"nu": nu, "nu_dot": {}, "u": {}},
                }.items()
            },
            "model.evaluate": (model.evaluate, {"function": "mass_matrix", "arguments": {"q": q}}),
            "model.jacobian": (
                lambda function, wrt, q: model.jacobian(function, wrt, q),
                {"function": "mass_matrix", "wrt": "q", "q": q},
            ),
            "model.c_code": (model.c_code, {"function": "mass_matrix"}),
            "model.tape": (model.tape, {"function": "mass_matrix"}),
            "model.parameter_vector": (model.parameter_vector, {"values": None}),
            "model.save": (model.save, {"path": self.folder / "m.axm"}),
            "model.export": (model.export, {"path": self.folder, "functions": ["mass_matrix"]}),
            "run.at": (run.at, {"t": 0.0}),
            "run.between": (run.between, {"t0": 0.0, "t1": 0.005}),
            "run.columns": (run.columns, {"kind": "q"}),
            "run.resample": (run.resample, {"times": [0.0, 0.001]}),
            "run.run": (run.run, {"index": 0}),
            "run.unit": (run.unit, {"name": "t"}),
            "run[]": (lambda name: run[name], {"name": "t"}),
            "run.with_columns": (run.with_columns, {"columns": {}}),
            "run.save": (run.save, {"path": self.folder / "r.npz"}),
            "run.load": (ax.Trajectory.load, {"path": "nowhere.npz"}),
            "linear.discretized": (linear.discretized, {"dt": 0.1}),
            "linear.lqr": (linear.lqr, {}),
            "linear.reduced": (linear.reduced, {"states": linear.states}),
            "linear.state_feedback": (linear.state_feedback, {"K": np.zeros(linear.B.T.shape)}),
            "linear.save": (linear.save, {"path": self.folder / "l.json"}),
            "Mechanism": (
                lambda name, gravity: self.checked(ax.Mechanism(name, gravity)),
                {"name": "m", "gravity": (0, 0, -9.81)},
            ),
            "mechanism.save": (self.mechanism().save, {"path": self.folder / "m.toml"}),
        }

    def parts(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        """What is added to a mechanism, with sound arguments."""
        wheel = {"name": "w", "wheel": ax.Rolling(0.1), "on": "c", "mass": 1.0}
        sound: dict[str, dict[str, Any]] = {
            "add_body": {"name": "d", "mass": 1.0},
            "add_joint": {"name": "j", "joint": ax.Revolute(), "parent": "b", "child": "c"},
            "add_loop": {"name": "l", "joint": ax.Revolute(), "parent": "b", "child": "c"},
            "add_wheel": wheel,
            "add_caster": {
                "name": "w",
                "wheel": ax.Rolling(0.1),
                "on": "c",
                "at": (0, 0, 0),
                "trail": 0.1,
                "mass": 1.0,
            },
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
            "chain_from_dh": {"rows": [(0.0, 0.0, 0.0, 0.0)]},
        }
        return {
            kind: (partial(self.described, kind), arguments) for kind, arguments in sound.items()
        }

    @cache  # noqa: B019
    def calls(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        return {**self.verbs(), **self.parts()}

    def names(self, call: str) -> list[str]:
        """Arguments of a function that can be replaced."""
        function, sound = self.calls()[call]
        target = getattr(ax.Mechanism, call, function) if call in self.parts() else function
        known = inspect.signature(target).parameters.values()
        named = [p.name for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        return list(dict.fromkeys([*sound, *(name for name in named if name != "self")]))


def attempt(sound: Sound, call: str, replaced: dict[str, Any]) -> None:
    """Call a function with some arguments replaced; only errors of Axode's own may come out."""
    function, given = sound.calls()[call]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**{**given, **replaced})
        except ax.AxodeError as error:
            str(error).encode()  # whoever prints it gets no UnicodeEncodeError
