"""Mistakes that no other test makes, by the part of the package that refuses them."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.cli.model_sources import Built
from axode.cli.trajectories import load_columns
from axode.codegen.targets.ptx import Kernels
from axode.disk.bounded import parse_json
from axode.errors import (
    FileError,
    InvalidArgument,
    InvalidIndependent,
    NotApplicable,
    PlausibilityWarning,
    RequestNotMetWarning,
    UnknownName,
)
from axode.literature.acceptance.case_runs import read_holds
from axode.literature.acceptance.cases import Case, Quantity
from axode.mechanism.elements.wheels import AbstractWheel
from axode.model.model_file import MAGIC, VERSION
from axode.results.sweep_result import Sweep
from axode.runtime.device import check_capability, cupy
from axode.show.viewer.drawing import check_trails
from axode.symbolic.wheels import symbolic_wheel


@cache
def model() -> ax.Model:
    return gallery.build("unicycle").derive().compile()


@cache
def run() -> ax.Trajectory:
    return ax.simulate(model(), 0.02, start={"v": 1.0}, save_every=0.01)


@cache
def linear() -> Any:
    return ax.linearize(model())


def arm(mark: str = "") -> ax.Mechanism:
    """A pendulum, which has no wheels."""
    bot = ax.Mechanism("arm")
    bot.add_body(f"link{mark}", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=f"link{mark}")
    return bot


@cache
def pendulum() -> ax.Model:
    return arm().derive().compile()


@cache
def ball() -> ax.Model:
    """A body that turns about a point."""
    bot = ax.Mechanism("ball")
    body = bot.add_body("body", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("ball", ax.Spherical(), parent=bot.ground, child=body)
    return bot.derive().compile()


def long_chain() -> ax.Mechanism:
    bot = ax.Mechanism("chain")
    holder = bot.ground
    for k in range(1001):
        body = bot.add_body(f"b{k}", mass=1.0, inertia=(1, 1, 1))
        bot.add_joint(f"j{k}", ax.Revolute("y"), parent=holder, child=body)
        holder = body
    return bot


DESCRIBE = {
    "speeds, and equations are written out for at most": lambda: long_chain().derive(),
    "cannot reach its point on the platform": lambda: gallery.build(
        "six_legged_platform", c_M=(0, 0, 9)
    ),
}
DERIVE = {
    "measure 'which' depends on itself": lambda: (
        _measured(lambda s: s["which"]).derive().compile().measures([0.3], [0.0])
    ),
    "independent takes a list of names, got the text 'v'": lambda: arm().derive(independent="v"),
    "cannot decide on; write numpy.where": lambda: (
        _measured(lambda s: 1 if s["hinge"] > 0 else 2).derive().compile().measures([0.3], [0.0])
    ),
}
DERIVE |= {
    f"{what}; write numpy.": lambda law=law: ax.simulate(model(), 0.1, input=law)
    for what, law in {
        "int() cannot take for numbers": lambda s: {"hinge": int(s.t)},
        "numpy.piecewise cannot act": lambda s: {"hinge": np.piecewise(s.t, [s.t < 0.3], [1, 2])},
    }.items()
}


def _driven_by(motion):
    mechanism = arm()
    mechanism.prescribe("hinge", motion)
    return mechanism.derive().compile()


DERIVE["prescribe 'hinge', motion: 't % 0.0' divides by zero"] = lambda: _driven_by("t % 0")
COMPILE = {
    "parameters must be 'fixed' or 'free'": lambda: arm().derive().compile(parameters="none"),
    "precision='float32' is for GPUs": lambda: arm().derive().compile(precision="float32"),
    "cannot export 'x.txt'; endings are": lambda: model().export("x.txt"),
    "this model's parameters are fixed": lambda: (
        arm()
        .derive()
        .compile(parameters="fixed")
        .forward_dynamics([0.0], [0.0], parameters={"m": 1})
    ),
    "a kernel is written to a .ptx file": lambda: Kernels("", {}).export("x.txt"),
}
STATES = {
    "'q' has shape (3,), expected (..., 4)": lambda: model().contact_forces(
        [1.0, 2.0, 3.0], {"v": 1.0}
    ),
    "q has the speed": lambda: model().forward_dynamics({"phi_dot": 1.0}, [0.0, 0.0]),
    "start: q, or (q, nu), of sizes 4 and 2 is needed, got (1,)": lambda: ax.assemble(
        model(), [1.0]
    ),
    "of sizes 4 and 2 is needed, got (1,), (1,)": lambda: ax.simulate(
        model(), 1.0, start=([0.0], [0.0])
    ),
    "start: the quaternion": lambda: ax.simulate(ball(), 1.0, start=([1, 1, 0, 0], [0, 0, 0])),
    "direction must be -1, 0 or 1": lambda: ax.simulate(
        model(), 1.0, events=ax.Event("e", "x", direction=2)
    ),
    "two events are called 'e'": lambda: ax.simulate(
        model(), 1.0, events=[ax.Event("e", "x"), ax.Event("e", "y")]
    ),
}
MOTIONS = {
    "times: give the times": lambda: ax.inverse_dynamics(pendulum(), {"hinge": "t"}),
    "times: two or more finite times are needed": lambda: ax.inverse_dynamics(
        pendulum(), {"hinge": [0.0]}, times=[0.0]
    ),
    "samples are too few; splines of order": lambda: ax.inverse_dynamics(
        pendulum(), {"hinge": [0.0, 1.0]}, times=[0.0, 1.0]
    ),
    "independent speeds: give 1 more signal of time, such as": lambda: ax.inverse_dynamics(
        model(), {"theta": "t"}, times=1.0
    ),
    "a measure of speed, and a motion is given by coordinates": lambda: ax.inverse_dynamics(
        _measured(lambda s: s["hinge.rate"]).derive().compile(), {"which": "t"}, times=1.0
    ),
}
SOLVE = {
    "'x': a grid takes a list of values": lambda: ax.sweep(
        model(), 1.0, start={"x": np.zeros((2, 2))}
    ),
    "expected a pair such as ('max', 'pitch')": lambda: ax.sweep(
        model(), 1.0, start={"x": [0.0]}, outputs={"far": "x"}
    ),
    "parallel_lines: lead must be >= 0 m": lambda: ax.paths.parallel_lines(
        1.0, 1.0, duration=1.0, lead=-1.0
    ),
    "velocity has no direction; give heading": lambda: ax.paths.along("0", "0", 1.0)([0.0]),
    "inputs: a list of names is needed": lambda: ax.linearize(model(), inputs="tau_drive"),
    "s: a list of names is needed, got 'w'": lambda: ax.linearize(model(), states="w"),
    "reduced: a state is named twice": lambda: linear().reduced(["w", "w"]),
    "reduced: these states depend on others": lambda: linear().reduced(["x"]),
    "this model is already in steps of": lambda: linear().discretized(0.1).discretized(0.1),
    "R: a weight > 0 is needed for tau_steer too": lambda: (
        linear().reduced(["phi_dot", "w"]).lqr(Q=1.0, R={"tau_drive": 1.0})
    ),
}
SOLVE |= {
    text: lambda options=options: ax.simulate(
        model(), **{"duration": 0.01, "method": "rk4", "step": 1e-3, **options}
    )
    for text, options in {
        "save_every: 1e-12 s makes 1e+10 samples": {"save_every": 1e-12},
        "step: 1e-18 s is too short at t = 0.01 s": {"step": 1e-18},
        "duration: 0.01 s is too short at t = 1e+16 s": {"t0": 1e16},
        "step: 0.001 s makes 1e+13 steps": {"duration": 1e10},
    }.items()
}
RESULTS = {
    "a Python function, which a file cannot hold": lambda: _measured(abs).save("x.toml"),
    "indexed by a column's name or a list of names": lambda: run()[0],
    "the sweep has no output 'far'": lambda: Sweep({}, {}, np.array([True]), {})["far"],
    "with_columns has no column 'y'": lambda: run().with_columns({"a": 0.0}, units={"y": "m"}),
    "the file of a plot ends in": lambda: run().plot("v", save="a.txt"),
    "the scene of 'unicycle' has no point 'tip'": lambda: check_trails(model().scene, ["tip"]),
    "does not know the model that made it": lambda: dataclasses.replace(run(), origin=None).view(),
}
FILES = {
    "its description is not JSON": lambda: parse_json("{"),
    "it has no system, expected": lambda: Case.of({"id": "a"}, 1),
    "time: '1e999' is no number": lambda: Quantity.of("x@1e999"),
    "hold: no motor acts on 'hinge'": lambda: read_holds({"hinge": 0.0}, arm().derive(), {}),
    "'four_bar' cannot be built with": lambda: Built("four_bar", ["theta1=[1,2]"]).mechanism(),
}
TABLES = {
    "is empty; its first line should name the columns": "\n",
    "has two columns 'a'": "time,a,a\n0,1,2\n",
    "is not a table": 'time,a\n0,"1\n',
}


def _measured(function: Any) -> ax.Mechanism:
    bot = arm()
    bot.measure("which", function, unit="1")
    return bot


@pytest.mark.parametrize(
    ("text", "call"),
    [
        item
        for group in (DESCRIBE, DERIVE, COMPILE, STATES, MOTIONS, SOLVE, RESULTS, FILES)
        for item in group.items()
    ],
)
def test_text(text, call):
    with pytest.raises(ax.errors.AxodeError) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("text", TABLES)
def test_text_of_a_table(text, tmp_path):
    path = tmp_path / "motion.csv"
    path.write_text(TABLES[text])
    with pytest.raises(FileError) as caught:
        load_columns(path)
    assert text in str(caught.value)


def test_columns_of_different_lengths(tmp_path):
    np.savez(tmp_path / "motion.npz", time=np.zeros(3), a=np.zeros(2))
    with pytest.raises(FileError, match="the columns differ in length"):
        load_columns(tmp_path / "motion.npz")


def test_independent_speeds_that_depend_on_each_other():
    with pytest.raises(InvalidIndependent, match="v, phi_dot cannot be the independent speeds"):
        gallery.build("unicycle").derive(independent=["v", "phi_dot"])
    with pytest.raises(InvalidIndependent, match="a speed is named twice"):
        gallery.build("unicycle").derive(independent=["v", "v"])


def test_a_wheel_without_symbols():
    class Roller(ax.Omni):
        """A wheel of a class that is registered through its base."""

    assert symbolic_wheel(Roller(0.1), {})
    with pytest.raises(NotApplicable, match="wheels of class AbstractWheel have no symbolic"):
        symbolic_wheel(AbstractWheel(0.1), {})


def test_a_mass_centre_outside_the_shape():
    with pytest.warns(
        PlausibilityWarning, match="is not inside the shape that its inertia is taken from"
    ):
        ax.Mechanism("m").add_body("b", mass=1.0, com=(5, 0, 0), shape=ax.Box((1, 1, 1)))


def test_a_home_that_does_not_close_the_loops():
    linkage = gallery.build("four_bar")
    linkage.set_home({"theta2": -1.3})
    with pytest.warns(RequestNotMetWarning, match="closing the loops moved home"):
        linkage.derive(self_check=False)


def test_a_vehicle_without_wheels_neither_slips_nor_tips():
    model = arm().derive().compile()
    trajectory = ax.simulate(model, 0.02, save_every=0.01)
    with pytest.raises(NotApplicable, match="has no wheels that could slip"):
        ax.feasible(model, trajectory, friction=0.5)
    many = ax.simulate(model, 0.02, start={"hinge": [0.0, 0.1]}, save_every=0.01)
    with pytest.raises(InvalidArgument, match="it has many runs; take one with"):
        ax.feasible(model, many, friction=0.5)


def test_damaged_files_of_models(tmp_path):
    path = tmp_path / "arm.axm"
    arm().derive().compile().save(path)
    with pytest.raises(UnknownName, match="a model from a file has no target 'tpu'"):
        ax.load_model(path, target="tpu")
    for header, size, text in (
        ("{}", 99, "its description is longer than the file"),
        ("{}", 2, "its description has other entries than facts, scene and functions"),
    ):
        body = MAGIC + struct.pack("<II", VERSION, size) + header.encode()
        path.write_bytes(body + hashlib.sha256(body).digest())
        with pytest.raises(FileError, match=text):
            ax.load_model(path)
    path.write_bytes(MAGIC)
    with pytest.raises(FileError, match="is truncated; save the model again"):
        ax.load_model(path)


def test_arrays_that_hold_no_numbers(tmp_path):
    np.savez(tmp_path / "motion.npz", time=np.array([1j]))
    with pytest.raises(FileError, match="holds complex128, not numbers"):
        load_columns(tmp_path / "motion.npz")


def test_a_machine_without_a_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NotApplicable, match="running on a GPU needs CuPy: pip install"):
        cupy()
    monkeypatch.setattr("axode.runtime.device.own_capability", lambda: "5.0")
    with pytest.raises(NotApplicable, match="this GPU has compute capability"):
        check_capability("7.5", "7.8")
