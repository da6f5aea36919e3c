"""Texts of errors that need more than a call: files, kernels, cases, configurations."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from importlib.resources import files

import numpy as np
import pytest

import axode as ax
from axode.cli import run as run_cli
from axode.cli.trajectories import load_columns
from axode.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from axode.literature.acceptance.adapters import adapter_of
from axode.literature.acceptance.case_runs import Answers, Holding, Run, read_holds
from axode.literature.acceptance.cases import Case, Quantity
from axode.model.model_file import MAGIC
from axode.model.model_parts import facts_of
from axode.runtime import device
from emulated_gpu import install


@cache
def unicycle() -> ax.Model:
    return ax.gallery.build("unicycle").derive().compile()


# files --------------------------------------------------------------------------------------------


def test_too_many_samples_or_steps_are_refused(capsys):
    assert run_cli(["simulate", "unicycle", "--time", "1", "--every", "1e-12"]) == 1
    assert "1e+12 samples, and at most" in capsys.readouterr().err


def test_arrays_that_are_no_numbers(tmp_path):
    np.savez(tmp_path / "words.npz", t=np.array(["a", "b"]))
    with pytest.raises(FileError, match="is not a file of NumPy's that holds arrays of numbers"):
        load_columns(tmp_path / "words.npz")


def test_functions_of_a_model_that_do_not_fill_its_file(tmp_path):
    path = tmp_path / "m.axm"
    unicycle().save(path, ["energy"])
    body = path.read_bytes()[: -hashlib.sha256().digest_size]
    body += b"\0\0"
    path.write_bytes(body + hashlib.sha256(body).digest())
    assert body.startswith(MAGIC)
    with pytest.raises(FileError, match="the functions do not fill the file"):
        ax.load_model(path)


# kernels ------------------------------------------------------------------------------------------


def test_kernels_of_a_file_are_asked_for_by_their_kind(monkeypatch, tmp_path):
    install(monkeypatch)
    from axode.runtime import cuda

    unicycle().export(tmp_path / "u.ptx", ["energy"], rollout="rk4")
    file = cuda.load(tmp_path / "u.ptx")
    with pytest.raises(UnknownName, match="this file has no kernel 'nothing'"):
        file["nothing"]
    with pytest.raises(InvalidArgument, match="is no function; use rollout"):
        file.function("rk4")
    with pytest.raises(InvalidArgument, match="is not a rollout; use function"):
        file.rollout("energy")
    kernel = file["rk4"]
    with pytest.raises(InvalidArgument, match="buffers needed: "):
        kernel({}, {}, budget=1)
    state, size = next(iter(kernel.header["state"].items()))
    there = device.side_by_side(np.zeros((2, size)), kernel.dtype)
    with pytest.raises(InvalidArgument, match=r"numbers per run\) is missing"):
        kernel({state: there}, {}, budget=1)
    with pytest.raises(InvalidArgument, match="axes, got"):
        kernel({state: there[np.newaxis, np.newaxis]}, {}, budget=1)


def test_a_gpu_that_cannot_be_used(monkeypatch):
    gpu = install(monkeypatch)
    error = gpu.cuda.runtime.CUDARuntimeError

    def fail():
        raise error("no driver")

    monkeypatch.setattr(gpu.cuda.runtime, "getDeviceCount", fail)
    with pytest.raises(NotApplicable, match="CuPy cannot use a GPU here: no driver"):
        device.cupy()


# configurations -----------------------------------------------------------------------------------


def test_a_loop_that_no_guess_closes():
    model = ax.gallery.build("four_bar").derive().compile()
    fixed = list(model.coordinates)
    with pytest.raises(ax.LoopNotClosed, match="Give a nearer guess, fix fewer coordinates"):
        ax.assemble(model, dict.fromkeys(fixed, 0.3), fix=fixed)


def test_a_trajectory_of_another_model_is_open():
    model = ax.gallery.build("four_bar").derive().compile()
    run = ax.simulate(model, 0.02, start={"theta2": 0.9}, save_every=0.01)
    bent = dataclasses.replace(run, values=run.values + 0.1)
    with pytest.raises(InvalidArgument, match="it does not belong to model"):
        ax.inverse_dynamics(model, bent)


def test_a_wheel_that_lies_flat_along_a_motion():
    model = ax.gallery.build("rolling_disk").derive().compile()
    q = np.repeat(model.home[np.newaxis], 3, axis=0)
    flat = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    quaternion = list(facts_of(model).quaternions[0])
    q[:, quaternion] = flat
    from axode.model.conditions import Conditions
    from axode.problems.inverse.inverse import require_regular

    with pytest.raises(ax.SingularConfiguration, match="lies flat on the ground, so that no point"):
        require_regular(model, q, Conditions(np.zeros(3)), None)


@cache
def arm() -> ax.Model:
    bot = ax.Mechanism("arm")
    upper, lower = (
        bot.add_body(name, mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
        for name in ("upper", "lower")
    )
    bot.add_joint("shoulder", ax.Revolute("z"), parent=bot.ground, child=upper)
    bot.add_joint("elbow", ax.Revolute("z"), parent=upper, child=lower, at=(0.4, 0, 0))
    bot.measure("turning", lambda s: s["shoulder.rate"] + 0.1 * s["elbow.rate"], unit="rad/s")
    bot.measure("root", lambda s: np.sqrt(s["elbow"]), unit="")
    return bot.derive().compile()


def test_a_speed_that_can_be_had_in_several_ways():
    with pytest.warns(
        ax.RequestNotMetWarning, match="can be had in several ways, and this one has shoulder"
    ):
        ax.assemble(arm(), {"turning": 1.0})


def test_outputs_without_a_derivative():
    with pytest.raises(InvalidArgument, match="has no derivative at this point; choose another"):
        ax.linearize(arm(), outputs=["root"])


def test_no_linear_model_where_constraints_lose_rank():
    bot = ax.Mechanism("parallelogram")
    crank, coupler, rocker = (
        bot.add_body(name, mass=1.0, com=(length / 2, 0, 0), inertia=(0.1, 0.1, 0.1))
        for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.0))
    )
    pin = ax.Revolute("z")
    bot.add_joint("a", pin, parent=bot.ground, child=crank)
    bot.add_joint("b", pin, parent=crank, child=coupler, at=(1, 0, 0))
    bot.add_joint("d", pin, parent=bot.ground, child=rocker, at=(2, 0, 0))
    bot.add_loop("c", pin, parent=coupler, child=rocker, at=(2, 0, 0), child_at=(1, 0, 0))
    bot.set_home(a=0.7, b=-0.7, d=0.7)
    model = bot.derive().compile()
    with pytest.raises(ax.SingularConfiguration, match="cannot be linearized there: the config"):
        ax.linearize(model, np.zeros(3))


def test_platforms_need_six_freedoms():
    from axode.symbolic.formulations.legs import find_platform, require_six_freedoms

    system = ax.gallery.build("flight_simulator").derive(self_check=False).system
    fewer = dataclasses.replace(
        system, independent=system.independent[:5]
    )  # as for legs in parallel planes
    with pytest.raises(NotApplicable, match="formulation 'legs' takes platforms with six freedoms"):
        require_six_freedoms(fewer, find_platform(system))


def test_a_name_is_swept_once():
    from axode.problems.sweep.sample_arguments import plan_samples

    with pytest.raises(InvalidArgument, match="is swept twice, now as parameter; a coordinate"):
        plan_samples({"start": {"x": [1.0, 2.0]}, "parameter": {"x": [1.0]}})


# acceptance cases ---------------------------------------------------------------------------------


@cache
def printed_case(name: str) -> Case:
    """One of the cases that come with the package."""
    found = json.loads((files("axode.literature.acceptance") / "cases_open.json").read_text())
    items = found if isinstance(found, list) else found["cases"]
    return Case.of(next(item for item in items if item["id"] == name), 0)


def adapter(name: str, **changes):
    case = printed_case(name)
    for field, values in changes.items():
        case = dataclasses.replace(case, **{field: {**getattr(case, field), **values}})
    return adapter_of(case.system)(case)


def test_quantities_that_a_case_cannot_have():
    caster = adapter("A3-1")
    with pytest.raises(UnknownName, match="has no quantity 'nothing'"):
        caster.of("nothing", caster.initial)
    with pytest.raises(InvalidArgument, match="the case has no t_end, hence no run"):
        Answers(caster.case).of(Quantity("phi", at=1.0))
    with pytest.raises(InvalidArgument, match="a run needs t_end > 0, got"):
        Run(caster)
    steep = adapter("A3-1", parameters={"d": 5.0})
    with pytest.raises(InvalidArgument, match="no caster angle is steady: the trail exceeds"):
        steep.of("steady_caster_psi", steep.initial)


def test_times_outside_of_a_case():
    case = adapter("A4-4", input={"t_end": 0.01})
    run = Run(case)
    with pytest.raises(InvalidArgument, match="s is outside the run, which ends at"):
        run.at(1.0)
    with pytest.raises(InvalidArgument, match="no time of the run lies from"):
        run.extreme(Quantity("phi", extreme="max", between=(0.5, 0.7)))
    with pytest.raises(InvalidArgument, match="numbers and has no extreme"):
        run.extreme(Quantity("theta_dot", extreme="max"))


def test_paths_that_a_case_cannot_follow():
    with pytest.raises(InvalidArgument, match=r"forward_axis: expected \+j or -j, got"):
        adapter("B3-1", state={"forward_axis": "k"}).start()
    with pytest.raises(InvalidArgument, match="the mass centre cannot follow a circle of"):
        adapter("B3-1", state={"path_radius_of_mass_centre": 1e-6}).start()


def test_coordinates_are_held_where_they_are():
    case = adapter("C1-1")
    holds = read_holds({"phi1": 1.0, "until": 1.0}, case.equations, case.holders)
    with pytest.raises(InvalidArgument, match="is to be kept at"):
        Holding(case.equations, holds).check(case.initial.q, case.initial.nu, 0.0)
