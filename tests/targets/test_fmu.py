"""FMUs: the archive, its numbers against the model's own, starts of loops, and FMPy's verdict."""

from __future__ import annotations

import ctypes
import subprocess
import warnings
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.exports.fmu_description import base_unit, fmu_functions, unit_of_rate
from axode.model.model_parts import facts_of
from benchmarks.fmu_steps import count_steps
from tests.targets.fmu_driver import Unit, dependencies
from tests.targets.test_c import CC, FLAGS, needs_cc
from variants import further

pytestmark = needs_cc
VERSIONS = ("2.0", "3.0")
START = {"theta3": 0.3, "surge": 0.4, "psi_dot": 0.2}
PUSH = {"M1": 0.2, "M2": -0.1}
SAME_METHOD = 1e-12  # the same steps of the same method, in another order of operations
EXACT = 1e-10  # of derivatives, relative to their largest
CLOSE = 1e-8  # what different integrators may differ by
PROPOSED = 1e-7  # what CVODE leaves at a relative tolerance of 1e-10 per step
LARGEST = 300_000  # bytes


def pendulum():
    return ax.gallery.build("wheeled_pendulum").derive().compile()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The wheeled pendulum, moving, in both versions, with its model."""
    folder, model = tmp_path_factory.mktemp("units"), pendulum()
    paths = {v: folder / f"pendulum{v[0]}.fmu" for v in VERSIONS}
    for version, path in paths.items():
        assert model.export(path, fmi=version, start=START) == (path,)
    return model, paths


@pytest.fixture(scope="module")
def four_bar(tmp_path_factory):
    """A four-bar linkage for FMI 3, with its model."""
    path = tmp_path_factory.mktemp("loops") / "four bar.fmu"
    model = ax.gallery.build("four_bar").derive().compile()
    model.export(path, fmi="3.0", outputs=["theta2", "theta3_dot", "hinge4.x.force"])
    return model, path


def sources_only(model, path, monkeypatch, **options):
    """An FMU without its binary, as a machine without a compiler writes it."""
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(ax.OmissionWarning, match="holds sources and no binary: no C compiler"):
        model.export(path, **options)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


# the archive -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_archive_is_small_and_whole(files, version):
    path = files[1][version]
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (binary,) = (name for name in names if name.startswith("binaries/"))
        assert b"libpython" not in archive.read(binary)
    wanted = {"modelDescription.xml", "documentation/index.html", "sources/model.c"}
    assert wanted <= set(names)
    assert ("sources/buildDescription.xml" in names) == (version == "3.0")
    assert path.stat().st_size <= LARGEST


def test_the_same_model_gives_the_same_file(tmp_path, monkeypatch):
    model = ax.gallery.build("unicycle").derive().compile()
    first = sources_only(model, tmp_path / "u.fmu", monkeypatch)
    saved = (tmp_path / "u.fmu").read_bytes()
    model.save(tmp_path / "u.axm")
    again = sources_only(ax.load_model(tmp_path / "u.axm"), tmp_path / "u.fmu", monkeypatch)
    assert again == first and (tmp_path / "u.fmu").read_bytes() == saved
    assert not any(name.startswith("binaries/") for name in first)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["four_bar", "unicycle"])
def test_sources_compile_without_a_warning(name, version, tmp_path, monkeypatch):
    model = ax.gallery.build(name).derive().compile(parameters="fixed")
    texts = sources_only(model, tmp_path / "r.fmu", monkeypatch, fmi=version)
    for member, text in texts.items():
        if member.startswith("sources/"):
            (tmp_path / Path(member).name).write_text(text)
    prefix = f"-DFMI{version[0]}_FUNCTION_PREFIX=left_"
    for source in tmp_path.glob("*.c"):
        command = [CC, *FLAGS, "-O0", prefix, "-c", source, "-o", tmp_path / "r.o"]
        subprocess.run(command, check=True)
    symbols = (tmp_path / "r.o").read_bytes()
    assert b"left_fmi" in symbols or b"r_rate" in symbols


def test_a_compiler_that_fails_leaves_the_sources(tmp_path, monkeypatch):
    broken = tmp_path / "cc"
    machine = subprocess.run([CC, "-dumpmachine"], capture_output=True, text=True, check=True)
    broken.write_text(
        f"#!/bin/sh\n[ $1 = -dumpmachine ] && echo {machine.stdout.strip()} && exit\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    model = ax.gallery.build("unicycle").derive().compile()
    with pytest.warns(ax.OmissionWarning, match="cc failed: no reason"):
        model.export(tmp_path / "u.fmu")
    assert zipfile.is_zipfile(tmp_path / "u.fmu")


def test_names_and_kinds_of_variables(tmp_path, monkeypatch):
    arm = ax.Mechanism("arm")
    mass, length = ax.Parameter("m", 1.0), ax.Parameter("j", 0.5)
    link = arm.add_body("link", mass=mass, com=(length, 0, 0), inertia=(0.1, 0.1, 0.1))
    arm.add_joint("j", ax.Revolute("y"), parent=arm.ground, child=link)
    arm.add_motor("torque", "j")
    model = arm.derive().compile()
    texts = sources_only(model, tmp_path / "1 arm.fmu", monkeypatch, fmi="3.0")
    root = ET.fromstring(texts["modelDescription.xml"])
    kinds = {v.get("name"): v.get("causality") for v in root.find("ModelVariables")}
    assert kinds["j"] == "output" and kinds["parameter.j"] == "parameter"
    assert (
        kinds["m"] == "parameter"
        and kinds[model.inputs[0]] == "input"
        and kinds["der(j)"] == "local"
    )
    assert root.find("CoSimulation").get("modelIdentifier") == "m_1_arm"
    shown = sources_only(model, tmp_path / "a.fmu", monkeypatch, outputs=["kinetic"])
    root = ET.fromstring(shown["modelDescription.xml"])
    outputs = [v.get("name") for v in root.iter("ScalarVariable") if v.get("causality") == "output"]
    assert (
        outputs == ["kinetic", "smallest_pivot", "energy_error"]
        and root.get("numberOfEventIndicators") == "0"
    )


def test_units():
    assert base_unit("kg m^2/s2") == base_unit("J") == {"kg": 1, "m": 2, "s": -2}
    assert base_unit("N m") == base_unit("W s") and base_unit("furlong") is None
    rates = [unit_of_rate(unit) for unit in ("", "rad", "m/s", "rad/s2", "N/m")]
    assert rates == ["1/s", "rad/s", "m/s2", "rad/s3", "N/m/s"]


def test_time_is_an_argument_and_its_jumps_are_indicated(tmp_path):
    arm = ax.Mechanism("led arm")
    link = arm.add_body("link", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    tip = arm.add_body("tip", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    arm.add_joint("a", ax.Revolute("y"), parent=arm.ground, child=link)
    arm.add_joint("b", ax.Revolute("y"), parent=link, child=tip, at=(1.0, 0, 0))
    arm.prescribe("a", lambda t: np.where(t < 0.25, 0.0, 0.3 * (t - 0.25) ** 2))
    model = arm.derive().compile()
    model.export(tmp_path / "led.fmu")
    unit = Unit(tmp_path / "led.fmu", cosimulation=False)
    assert unit.root.get("numberOfEventIndicators") == "1" and unit.start() == 0
    (rate,) = (f"der({name})" for name in model.independent)
    assert "time" in dependencies(unit, rate)
    signs = []
    for t in (0.2, 0.3):
        g = ctypes.c_double()
        unit.call("SetTime", ctypes.c_double(t))
        assert unit.call("GetEventIndicators", ctypes.byref(g), ctypes.c_size_t(1)) == 0
        signs.append(np.sign(g.value))
    assert sorted(signs) == [-1, 1]
    assert unit.get("event_indicator[1]") == g.value
    expected = model.forward_dynamics(model.home, [0.0], [], t=0.3)
    assert unit.get(rate) == pytest.approx(expected, rel=1e-12)


# numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_are_those_of_simulate(files, version):
    model, paths = files
    unit = Unit(paths[version])
    assert unit.start(**PUSH) == 0
    for k in range(50):  # of ten internal steps each
        assert unit.step(0.01 * k, 0.01) == 0
    run = ax.simulate(model, 0.5, start=START, input=PUSH, method="rk4", step=1e-3)
    names = [n for n, v in unit.variables.items() if v.get("causality") == "output"]
    assert {"x", "phi1_dot", "theta1", "kinetic", "wheel1.contact.x"} <= set(names)
    names = [name for name in names if name not in ("smallest_pivot", "energy_error")]
    expected = np.array([run[name][-1] for name in names])
    assert unit.get(*names) == pytest.approx(expected, rel=SAME_METHOD, abs=SAME_METHOD)
    assert unit.get("time") == 0.5


def test_the_program_in_c_makes_the_same_steps(files, tmp_path):
    model = files[0]
    rate, x = count_steps(model, START, 1000, tmp_path)
    run = ax.simulate(model, 0.1, start=START, method="rk4", step=1e-4)
    assert rate > 0 and x == pytest.approx(run["x"][-1], rel=SAME_METHOD, abs=SAME_METHOD)


def test_inputs_are_cut_to_the_limits_of_motors():
    bot = ax.Mechanism("limited")
    bot.add_body("a", mass=1.0, inertia=(1, 1, 1))
    bot.add_body("b", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("free", ax.Prismatic("x"), parent="ground", child="a")
    bot.add_joint("slide", ax.Prismatic("x"), parent="a", child="b")
    bot.add_motor("strong", "free")
    bot.add_motor("weak", "slide", limit=2.0)
    model = bot.derive().compile("interpreter")
    rate = fmu_functions(model, ()).rate
    for u in ((3.0, 1.5), (3.0, 5.0), (-3.0, -5.0)):
        (x,) = rate.evaluate([0.0], np.zeros(4), np.array(u), np.zeros(0))
        limited = np.array([u[0], np.clip(u[1], -2.0, 2.0)])
        expected = model.forward_dynamics(model.home, np.zeros(2), limited)
        assert np.allclose(x[2:], expected, rtol=1e-12)
    (x,) = rate.evaluate([0.0], np.zeros(4), np.array([0.0, np.nan]), np.zeros(0))
    assert np.isnan(x).any()


@pytest.mark.parametrize("version", VERSIONS)
def test_directional_derivatives_are_the_models(files, version):
    model, paths = files
    unit = Unit(paths[version], cosimulation=False)
    assert unit.start(**PUSH) == 0
    q, nu = (unit.get(*names) for names in (model.coordinates, model.independent))
    u = list(PUSH.values())
    rates = [f"der({name})" for name in model.independent]
    for argument, names in (("q", model.coordinates), ("nu", model.independent)):
        seed = np.linspace(-1.0, 1.3, len(names))
        expected = model.jacobian("forward_dynamics", argument, q, nu, u) @ seed
        found = unit.derivative(rates, names, seed)
        assert found == pytest.approx(expected, abs=EXACT * (1 + np.abs(expected).max()))
    parameters = list(model.parameters)
    seed = np.linspace(1.0, -0.5, len(parameters))
    expected = model.jacobian("forward_dynamics", "p", q, nu, u) @ seed
    found = unit.derivative(rates, parameters, seed)
    assert found == pytest.approx(expected, abs=EXACT * (1 + np.abs(expected).max()))
    assert unit.derivative(["kinetic", "x", "x"], ["x", "M1"], [2.0, 1.0]).tolist() == [0, 2, 2]
    if version == "3.0":  # against the directions, one by one
        unknowns, knowns = [*rates, "kinetic", "x"], [*model.coordinates, "M1", *parameters]
        weights = np.linspace(0.5, 2.0, len(unknowns))
        columns = [unit.derivative(unknowns, [name], [1.0]) @ weights for name in knowns]
        found = unit.adjoint(unknowns, knowns, weights)
        assert found == pytest.approx(columns, rel=EXACT, abs=EXACT * np.abs(columns).max())
    on = dependencies(unit, "kinetic")
    assert {"theta3", "surge", "psi_dot"} <= set(on) and not {"x", "psi", "M1", "time"} & set(on)
    assert "M1" in dependencies(unit, "der(surge)") and dependencies(unit, "x") == ["x"]


@pytest.mark.parametrize("version", VERSIONS)
def test_states_are_saved_restored_and_reset(files, version):
    unit = Unit(files[1][version])
    assert unit.start(**PUSH) == 0
    saved, word = ctypes.c_void_p(), "FMUstate" if version == "2.0" else "FMUState"
    unit.step(0.0, 0.1)
    before = unit.get("x", "theta3", "time")
    assert unit.call(f"Get{word}", ctypes.byref(saved)) == 0
    size = ctypes.c_size_t()
    assert unit.call(f"Serialized{word}Size", saved, ctypes.byref(size)) == 0
    data = ctypes.create_string_buffer(size.value)
    assert unit.call(f"Serialize{word}", saved, data, size) == 0
    unit.step(0.1, 0.1)
    after = unit.get("x", "theta3")
    assert unit.call(f"Free{word}", ctypes.byref(saved)) == 0 and not saved.value
    back = f"DeSerialize{word}" if version == "2.0" else f"Deserialize{word}"
    assert unit.call(back, data, ctypes.c_size_t(size.value - 1), ctypes.byref(saved)) == 3
    assert unit.call(back, data, size, ctypes.byref(saved)) == 0
    assert unit.call(f"Set{word}", saved) == 0
    assert unit.get("x", "theta3", "time").tolist() == before.tolist()
    unit.step(0.1, 0.1)
    assert unit.get("x", "theta3").tolist() == after.tolist()
    assert unit.call("Reset") == 0 and unit.start() == 0
    assert unit.get("theta3", "M1", "time").tolist() == [0.3, 0.0, 0.0]
    unit.call("FreeInstance")


@pytest.mark.slow
def test_what_cannot_be_set_is_refused(files, four_bar):
    unit = Unit(files[1]["3.0"])
    assert unit.set(time=1.0) == 3 and unit.messages[-1].startswith("this variable is computed")
    assert unit.set(internal_step=0.0) == 3 and unit.set(M1=np.nan) == 3
    assert unit.step(0.0, 0.1) == 3  # before initialization
    assert unit.start(r=0.31) == 0
    assert unit.set(m=0.6) == 0 and unit.set(x=1.0) == 3  # tunable; a state of co-simulation
    assert unit.step(0.0, -0.1) == 3 and unit.step(0.0, np.inf) == 3
    unit = Unit(four_bar[1])
    assert unit.start() == 0 and unit.set(m2=0.4) == 0
    assert unit.set(a2=0.11) == 3  # it would open the loop
    assert unit.messages[-1] == "this variable can be set until initialization ends"


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_impossible_parameters_are_refused_as_by_simulate(files, version, tmp_path):
    """A principal moment of -0.0375 was simulated; a model from a file knows the checks too."""
    model, paths = files
    model.save(tmp_path / "saved.axm")
    ax.load_model(tmp_path / "saved.axm").export(tmp_path / "again.fmu", fmi=version, start=START)
    for path in (paths[version], tmp_path / "again.fmu"):
        for wrong in ({"m": -1.0}, {"r": 0.0}, {"J1": -0.0375}, {"J2": 0.9}):
            with pytest.raises(ax.InvalidArgument):
                ax.simulate(model, 0.1, parameters=wrong)
            unit = Unit(path)
            assert unit.start(**wrong) == 3
            if version == "3.0":  # the driver hands no logger to FMI 2
                assert unit.messages[-1].startswith("impossible parameters: ")
        unit = Unit(path)
        assert unit.start() == 0 and unit.set(m=-0.5) == 3  # tunable, while it runs
        assert unit.get("m")[0] > 0 and unit.step(0.0, 0.01) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_report_their_energy_error_and_the_smallest_pivot(files, version, tmp_path):
    model, paths = files
    rough = tmp_path / "rough.fmu"
    model.export(rough, fmi=version, start=START, step=0.05)
    for path, step in ((paths[version], 1e-3), (rough, 0.05)):
        unit = Unit(path)
        assert unit.start(**PUSH) == 0
        for k in range(10):
            assert unit.get("energy_error")[0] == pytest.approx(0.0, abs=1e-12) or k
            assert unit.step(0.05 * k, 0.05) == 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ax.errors.RunsInaccurateWarning)
            run = ax.simulate(model, 0.5, start=START, input=PUSH, method="rk4", step=step)
        error, pivot = unit.get("energy_error", "smallest_pivot")
        assert error == pytest.approx(run["error"][-1], rel=1e-6, abs=1e-12)
        assert 0.0 < pivot <= 1.0
    assert abs(error) > 1e-9  # steps of 50 ms
    before = error
    assert unit.set(m=0.9) == 0  # another mass is no error of the steps
    assert unit.get("energy_error")[0] == pytest.approx(before, rel=1e-9)


# loops -------------------------------------------------------------------------------------------


def test_loops_are_closed_at_other_parameters(four_bar):
    model, path = four_bar
    unit = Unit(path)
    assert len(unit.root.findall("ModelStructure/EventIndicator")) == 1
    longer = {"a1": 0.41, "a3": 0.34}
    assert unit.start(theta1_dot=1.0, tau=0.05, **longer) == 0
    q = unit.get("theta1", "theta2", "theta3")
    assert np.abs(model.residual(q, parameters=longer)).max() < 1e-12
    for k in range(20):
        assert unit.step(0.01 * k, 0.01) == 0
    begin = dict(zip(model.coordinates, q, strict=True)) | {"theta1_dot": 1.0}
    options = {"start": begin, "input": {"tau": 0.05}, "parameters": longer}
    run = ax.simulate(model, 0.2, method="rk4", step=1e-3, **options)
    names = ["theta2", "theta3_dot", "hinge4.x.force"]
    expected = np.array([run[name][-1] for name in names])
    assert unit.get(*names) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    q = unit.get("theta1", "theta2", "theta3")
    assert np.abs(model.residual(q, parameters=longer)).max() < 1e-10


def test_a_loop_that_cannot_close_is_reported(four_bar):
    unit = Unit(four_bar[1])
    assert unit.start(a1=5.0) == 3
    assert unit.messages[-1].startswith("the start values and parameters do not close the loops")


def test_steps_end_where_the_independent_speeds_do(four_bar):
    unit, k = Unit(four_bar[1]), 0
    assert unit.start(a1=0.56, theta1_dot=2.0, tau=0.1) == 0
    while (status := unit.step(0.01 * k, 0.01)) == 0 and not unit.flags[1].value and k < 500:
        k += 1
    assert status == 0 and unit.flags[1].value  # no crank of this linkage turns fully
    assert "do not determine the others" in unit.messages[-1]
    assert unit.get("time") == pytest.approx(0.01 * k) and unit.step(0.01 * k, 0.01) == 3


def test_drift_is_corrected_at_events(four_bar):
    model, path = four_bar
    unit = Unit(path, cosimulation=False)
    assert unit.start() == 0
    flags = [ctypes.c_bool() for _ in range(2)]
    step = (ctypes.c_bool(True), *map(ctypes.byref, flags))
    assert unit.call("CompletedIntegratorStep", *step) == 0 and not flags[0].value
    unit.set(theta2=unit.get("theta2")[0] + 1e-4)
    assert unit.call("CompletedIntegratorStep", *step) == 0 and flags[0].value
    info = [ctypes.c_bool() for _ in range(5)]
    assert unit.call("UpdateDiscreteStates", *map(ctypes.byref, (*info, ctypes.c_double()))) == 0
    assert [flag.value for flag in info] == [False, False, False, True, False]
    q = unit.get("theta1", "theta2", "theta3")
    assert np.abs(model.residual(q)).max() < 1e-12


# mistakes ----------------------------------------------------------------------------------------


def test_mistakes_are_named(tmp_path):
    model = ax.gallery.build("unicycle").derive().compile()
    with pytest.raises(ax.InvalidArgument, match=r"fmi: only an .fmu file takes it, not 'u.c'"):
        model.export(tmp_path / "u.c", fmi="2.0")
    with pytest.raises(ax.InvalidArgument, match=r"an .fmu file has outputs instead: outputs="):
        model.export(tmp_path / "u.fmu", ["forward_dynamics"])
    with pytest.raises(ax.InvalidArgument, match="step: expected a positive number of seconds"):
        model.export(tmp_path / "u.fmu", step=0.0)
    with pytest.raises(ax.UnknownName, match="has no output 'supplied'"):
        model.export(tmp_path / "u.fmu", outputs=["x", "supplied"])
    with pytest.raises(ax.UnknownName, match="speedo"):
        model.export(tmp_path / "u.fmu", outputs=["speedo"])
    with pytest.raises(ax.UnknownName, match=r"has no version of FMI '1\.0'"):
        model.export(tmp_path / "u.fmu", fmi="1.0")
    with pytest.raises(ax.UnknownName, match=r"Versions of FMI: 2\.0, 3\.0"):
        model.export(tmp_path / "u.fmu", fmi="4.0")


# FMPy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_fmpy_validates_and_simulates_it(files, four_bar, version):
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    model, paths = files
    path = str(paths[version])
    assert validate_fmu(path) == [] and validate_fmu(str(four_bar[1])) == []
    run = ax.simulate(model, 1.0, start=START, input=PUSH, rtol=1e-12, atol=1e-12)
    names = [*model.coordinates, *model.independent, "theta1", "kinetic"]
    for kind in ("ModelExchange", "CoSimulation"):
        found = fmpy.simulate_fmu(
            path,
            fmi_type=kind,
            stop_time=1.0,
            output_interval=0.05,
            relative_tolerance=1e-12,
            start_values=PUSH,
            output=names,
        )
        for signal in names:
            assert abs(found[signal][-1] - run[signal][-1]) <= CLOSE, (kind, signal)
        found = fmpy.simulate_fmu(
            path,
            fmi_type=kind,
            stop_time=1.0,
            output_interval=0.05,
            start_values=PUSH,
            output=names,
        )
        for signal in names:  # at the tolerance that the description proposes
            assert abs(found[signal][-1] - run[signal][-1]) <= PROPOSED, (kind, signal)


@pytest.mark.parametrize("name", [further("flight_simulator"), further("planar_3rrr")])
@pytest.mark.parametrize("version", VERSIONS)
def test_fmpy_simulates_platforms_on_legs(name, version, tmp_path):
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    model = ax.gallery.build(name).derive().compile()
    names = [*model.coordinates, *model.independent, "kinetic"]
    start = {model.independent[0]: 0.05, model.independent[1]: -0.03}
    motors = list(model.inputs[: facts_of(model).motors])
    held = model.inverse_dynamics(model.home)[: len(motors)]
    push = {motor: float(force) for motor, force in zip(motors, held, strict=True)}
    path = str(tmp_path / "platform.fmu")
    model.export(path, fmi=version, start=start)
    assert validate_fmu(path) == []
    run = ax.simulate(model, 0.3, start=start, input=push, rtol=1e-12, atol=1e-12)
    for kind in ("ModelExchange", "CoSimulation"):
        options = {"stop_time": 0.3, "output_interval": 0.05, "relative_tolerance": 1e-12}
        found = fmpy.simulate_fmu(path, fmi_type=kind, start_values=push, output=names, **options)
        for signal in names:
            assert abs(found[signal][-1] - run[signal][-1]) <= CLOSE, (kind, signal)
