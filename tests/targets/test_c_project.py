"""CMake projects of C: warnings, self-test, steps, single precision, stack, mistakes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from axode.codegen.tape.rounding_bounds import evaluate_rounded, rounding_bounds
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.c import NUMBERS, c_code
from axode.exports.c_project import sample_arguments
from axode.exports.c_step import CStep
from benchmarks.cortex_m.board import (
    AARCH64,
    ARM,
    BOARD,
    costs,
    has_tools,
    run_on_aarch64,
    run_on_board,
)
from tests.targets import functions
from tests.targets.test_c import CC, every_kind, needs_cc
from variants import further

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion")
SINGLE = ("-Wdouble-promotion", "-Wfloat-conversion", "-Wunsuffixed-float-constants")
SAME_METHOD = 1e-12  # the same steps of the same method, in another order of operations
FUNCTIONS = ["forward_dynamics", "inverse_dynamics"]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
UNSUFFIXED = re.compile(r"(?<![\w.])\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)(?!f)\b(?!f)")


@pytest.fixture(scope="module")
def linkage():
    return ax.gallery.build("four_bar").derive().compile(parameters="fixed")


@pytest.fixture(scope="module")
def projects(linkage, tmp_path_factory):
    """A linkage in both precisions."""
    folder = tmp_path_factory.mktemp("projects")
    for precision, name in (("float64", "bars"), ("float32", "single")):
        made = linkage.export(f"{folder / name}/", FUNCTIONS, precision=precision)
        assert [str(path.relative_to(folder / name)) for path in made] == [
            *("CMakeLists.txt", "README.md", f"include/{name}.h", f"src/{name}.c"),
            *(f"src/{name}_step.c", "src/fixed_step.h", "tests/self_test.c"),
        ]
    return folder


def library(folder, name):
    """The functions of a project, loaded."""
    target = folder / f"{name}.so"
    sources = sorted((folder / "src").glob("*.c"))
    command = [CC, "-std=c99", "-O1", "-shared", "-fPIC", f"-I{folder / 'include'}", *sources]
    subprocess.run([*command, "-o", target, "-lm"], check=True)
    return ctypes.CDLL(str(target))


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


# compilers ---------------------------------------------------------------------------------------


@needs_cc
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["bars", "single"])
def test_the_self_test_passes_and_nothing_is_warned_of(projects, name, compiler, tmp_path):
    folder, program = projects / name, tmp_path / "test"
    single = SINGLE if name == "single" else ()
    if compiler == "clang":
        single = single[:2]
    sources = [*(folder / "src").glob("*.c"), folder / "tests" / "self_test.c"]
    command = [compiler, *WARNINGS, *single, "-O1", f"-I{folder / 'include'}", *sources]
    subprocess.run([*command, "-o", program, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    names = [f"{name}_{function}" for function in (*FUNCTIONS, "step")]
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert [line.partition(": 0 wrong, ")[0] for line in lines] == names


@needs_cc
def test_the_ending_alone_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = ax.gallery.build("unicycle").derive().compile("interpreter")
    with pytest.raises(ax.errors.InvalidArgument, match=r"'c' is the ending of a file; name it"):
        model.export("c")
    assert not list(tmp_path.iterdir())
    model.export("c/")
    assert (tmp_path / "c").is_dir()


def test_the_self_test_finds_a_wrong_step(projects, tmp_path):
    folder = tmp_path / "bars"
    shutil.copytree(projects / "bars", folder)
    core = folder / "src" / "fixed_step.h"
    core.write_text(
        core.read_text().replace("(real)2 * (k2[i] + k3[i])", "(real)2 * k2[i] + k3[i]")
    )
    sources = [*(folder / "src").glob("*.c"), folder / "tests" / "self_test.c"]
    command = [CC, f"-I{folder / 'include'}", *sources, "-o", tmp_path / "test", "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "bars_forward_dynamics: 0 wrong" in done.stdout
    assert "bars_step: 0 wrong" not in done.stdout


@needs_cc
@pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake")
def test_cmake_builds_tests_and_installs(projects, tmp_path):
    build, place = tmp_path / "build", tmp_path / "place"

    def call(*command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call("cmake", "-S", projects / "single", "-B", build, f"-DCMAKE_INSTALL_PREFIX={place}")
    call("cmake", "--build", build)
    assert "100% tests passed" in call("ctest", "--test-dir", build)
    call("cmake", "--install", build)
    (config,) = place.rglob("single-config.cmake")
    assert "add_library(single::single STATIC IMPORTED)" in config.read_text()
    assert (place / "include" / "single.h").is_file() and list(place.rglob("libsingle.a"))


CONSUMER = """cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C CXX)
find_package(bars 1.0 REQUIRED)
add_subdirectory({single} single)
add_executable(user user.cpp)
target_link_libraries(user PRIVATE bars::bars single::single)
"""
PROGRAM = """#include <bars.h>
#include <single.h>
int main()
{
    double q[3] = {0.5, 0.5, 0.5}, nu[1] = {0.0}, u[1] = {0.0};
    float x[3] = {0.5f, 0.5f, 0.5f};
    return bars_close(q) | bars_step(q, nu, u, 1e-3) | single_close(x);
}
"""


@needs_cc
@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake")
def test_other_projects_find_it_from_cpp(projects, tmp_path):
    place, user = tmp_path / "place", tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(CONSUMER.format(single=projects / "single"))
    (user / "user.cpp").write_text(PROGRAM)
    for command in (
        ["cmake", "-S", projects / "bars", "-B", tmp_path / "b", f"-DCMAKE_INSTALL_PREFIX={place}"],
        ["cmake", "--build", tmp_path / "b", "--target", "install"],
        ["cmake", "-S", user, "-B", tmp_path / "u", f"-DCMAKE_PREFIX_PATH={place}"],
        ["cmake", "--build", tmp_path / "u"],
        [tmp_path / "u" / "user"],
    ):
        subprocess.run(command, check=True, capture_output=True)


@needs_cc
@pytest.mark.skipif("gcc" not in COMPILERS, reason="-fstack-usage is gcc's")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_stacks_are_as_small_as_stated(projects, level, tmp_path):
    folder = projects / "single"
    sources = sorted((folder / "src").glob("*.c"))
    command = ["gcc", "-std=c99", level, "-fno-inline", "-fstack-usage", f"-I{folder / 'include'}"]
    subprocess.run([*command, "-c", *sources], check=True, cwd=tmp_path)
    frames = {}
    for file in tmp_path.glob("*.su"):
        for line in file.read_text().splitlines():
            place, size, kind = line.split("\t")
            frames[place.rpartition(":")[2].partition(".")[0]] = int(size)
            assert kind == "static"
    header = (folder / "include" / "single.h").read_text()
    stated = dict(re.findall(r"/\* (single_\w+):.*?Stack: at most (\d+) bytes", header, re.S))
    deepest = max(frames[f"model_{name}"] for name in ("flow", "projection", "pivots"))
    frames["single_step"] += frames["make_step"] + max(frames["rk4"], frames["project"]) + deepest
    assert set(stated) == {f"single_{name}" for name in (*FUNCTIONS, "step")}
    assert all(frames[name] <= int(limit) for name, limit in stated.items())


@pytest.mark.skipif(not has_tools(ARM, BOARD[0]), reason="no tools for a Cortex-M4F")
@pytest.mark.parametrize("name", ["single", further("bars")])
def test_it_runs_on_a_cortex_m4f(projects, linkage, name, tmp_path):
    folder = tmp_path / name
    shutil.copytree(projects / name, folder)
    printed = run_on_board(folder, [folder / "tests" / "self_test.c"], "self_test")
    assert printed.count(": 0 wrong, ") == 3
    precision = "float32" if name == "single" else "float64"
    found = costs(folder, linkage, FUNCTIONS, precision)
    # at least an instruction per operation
    operations = {function: linkage.operations(function) for function in FUNCTIONS}
    assert all(found[function].instructions >= n for function, n in operations.items())
    assert found["step"].instructions > 4 * operations["forward_dynamics"]
    stated = re.findall(r"Stack: at most (\d+)", (folder / "include" / f"{name}.h").read_text())
    library = 512  # bytes of the mathematical library
    assert all(c.stack <= int(n) + library for c, n in zip(found.values(), stated, strict=True))


@pytest.mark.soak
@pytest.mark.skipif(not has_tools(*AARCH64), reason="no tools for aarch64")
@pytest.mark.parametrize("name", ["bars", "single"])
def test_it_runs_on_aarch64_with_fused_products(projects, name, tmp_path):
    folder = tmp_path / name
    shutil.copytree(projects / name, folder)
    assert run_on_aarch64(folder).count(": 0 wrong, ") == 3


def test_nothing_in_single_precision_is_double(projects):
    texts = [path.read_text() for path in (projects / "single").rglob("*.[ch]")]
    for text in texts:
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        assert "double" not in code and not UNSUFFIXED.search(code)
    assert UNSUFFIXED.search("a = 0.1;") and UNSUFFIXED.search("b = 1e-5;")
    joined = "".join(texts)
    assert "sinf(" in joined and "malloc" not in joined


def test_a_file_in_single_precision(linkage, tmp_path):
    linkage.export(tmp_path / "arm.c", precision="float32")
    assert "const float *q" in (tmp_path / "arm.h").read_text()
    assert "sinf(" in (tmp_path / "arm.c").read_text()
    with pytest.raises(ax.InvalidArgument, match=r"precision: only C and \.ptx files have one"):
        linkage.export(tmp_path / "arm.axm", precision="float32")


def test_constants_in_single_precision():
    literal = NUMBERS["float32"].literal
    assert [literal(x) for x in (0.1, -2.0, 1e-300, -1e-42, 1e300)] == [
        *("0.1f", "(-2.0f)", "1.1754944e-38f", "(-1.1754944e-38f)", "INFINITY")
    ]
    assert literal(0.0) == "0.0f" and NUMBERS["float64"].literal(1e-300) == "1e-300"


@needs_cc
def test_every_operation_in_single_precision(tmp_path):
    _, source, test = c_code(every_kind(), precision="float32").write(tmp_path)
    flags = [*WARNINGS, "-Wdouble-promotion", "-Wno-float-equal"]
    subprocess.run([CC, *flags, source, test, "-o", tmp_path / "t", "-lm"], check=True)
    done = subprocess.run([tmp_path / "t"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# steps -------------------------------------------------------------------------------------------


@needs_cc
def test_steps_are_those_of_simulate(linkage, projects):
    step = library(projects / "bars", "steps").bars_step
    state = ax.assemble(linkage, {"theta1_dot": 1.0})
    q, nu, u = state.q.copy(), state.nu.copy(), np.array([0.05])
    for _ in range(100):
        assert step(pointer(q), pointer(nu), pointer(u), ctypes.c_double(1e-3)) == 0
    options = {"start": {"theta1_dot": 1.0}, "input": {"tau": 0.05}}
    motion = ax.simulate(linkage, 0.1, method="rk4", step=1e-3, **options)
    assert q == pytest.approx(
        [motion[n][-1] for n in linkage.coordinates], rel=SAME_METHOD, abs=SAME_METHOD
    )
    assert nu == pytest.approx(
        [motion[n][-1] for n in linkage.independent], rel=SAME_METHOD, abs=SAME_METHOD
    )
    before = q.copy(), nu.copy()
    push = pointer(np.array([np.nan]))
    assert step(pointer(q), pointer(nu), push, ctypes.c_double(1e-3)) == 1
    assert q.tolist() == before[0].tolist() and nu.tolist() == before[1].tolist()


@needs_cc
def test_audited_steps_report_the_error_that_simulate_finds(linkage, projects):
    class Audit(ctypes.Structure):
        _fields_ = [(n, ctypes.c_double) for n in ("due", "energy_error", "smallest_pivot")]
        _fields_ += [("begun", ctypes.c_int)]

    functions_in_c = library(projects / "bars", "audit")
    state, found = ax.assemble(linkage, {"theta1_dot": 5.0}), []
    for step, audited in (("bars_audited_step", True), ("bars_step", False)):
        q, nu, u, audit = state.q.copy(), state.nu.copy(), np.array([0.05]), Audit()
        given = (pointer(q), pointer(nu), pointer(u), ctypes.c_double(0.04))
        for _ in range(5):
            assert functions_in_c[step](*given, *[ctypes.byref(audit)] * audited) == 0
        found.append((q, nu, audit))
    (q, nu, audit), (same, alike, _) = found
    assert q.tolist() == same.tolist() and nu.tolist() == alike.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ax.errors.RunsInaccurateWarning)
        run = ax.simulate(
            linkage, 0.2, start={"theta1_dot": 5.0}, input={"tau": 0.05}, method="rk4", step=0.04
        )
    assert abs(run["error"][-1]) > 1e-9
    assert audit.energy_error == pytest.approx(run["error"][-1], rel=1e-4)
    assert 0 < audit.smallest_pivot <= 1


@needs_cc
def test_impossible_parameters_are_found(tmp_path):
    model = ax.gallery.build("unicycle").derive().compile()
    model.export(tmp_path / "unicycle", [])
    check = library(tmp_path / "unicycle", "checked").unicycle_check
    header = (tmp_path / "unicycle" / "include" / "unicycle.h").read_text()
    for name in model.parameters:
        for factor in (1.0, -1.0, 0.0):
            given = {name: factor * model.parameters[name]}
            p = model.parameter_vector(given)
            try:
                ax.simulate(model, 1e-3, parameters=given)
                possible = True
            except ax.InvalidArgument:
                possible = False
            number = check(pointer(p))
            assert (number == 0) == possible, given
            assert possible or f"{number}: " in header


@needs_cc
def test_loops_are_closed_and_singularities_reported(projects, linkage):
    functions_in_c = library(projects / "single", "closing")
    q = np.add(linkage.home, (0.0, 0.1, -0.1)).astype(np.float32)
    assert functions_in_c.single_close(pointer(q)) == 0
    assert np.abs(linkage.residual(q.astype(float))).max() < 1e-6
    far = np.array([np.nan, 0.0, 0.0], np.float32)
    assert functions_in_c.single_close(pointer(far)) == 1 and np.isnan(far[0])
    singular = np.array([0.5, 0.3, 1e-4], np.float32)  # the coupler and the rocker in line
    nu, u = np.array([-3.0], np.float32), np.zeros(1, np.float32)
    h = ctypes.c_float(1e-2)
    assert functions_in_c.single_step(pointer(singular), pointer(nu), pointer(u), h) != 0
    assert singular[2] == np.float32(1e-4)


@needs_cc
def test_time_and_parameters_are_arguments_where_there_are_any(tmp_path):
    arm = ax.Mechanism("led arm")
    mass = ax.Parameter("m", 1.0)
    link = arm.add_body("link", mass=mass, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    tip = arm.add_body("tip", mass=mass, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    arm.add_joint("a", ax.Revolute("y"), parent=arm.ground, child=link)
    arm.add_joint("b", ax.Revolute("y"), parent=link, child=tip, at=(1.0, 0, 0))
    arm.prescribe("a", lambda t: 0.3 * t**2)
    model = arm.derive().compile()
    model.export(tmp_path / "test", ["energy"], prefix="led_")  # CMake has a target test
    header = (tmp_path / "test" / "include" / "test_model.h").read_text()
    (signature,) = re.findall(r"int led_step\((.*)\);", header)
    assert "double t" in signature and "const double *p" in signature and "p[0]  m, de" in header
    step = library(tmp_path / "test", "led").led_step
    q, nu, p = model.home.copy(), np.zeros(len(model.independent)), np.ones(1)
    named = {"q": q, "nu": nu, "p": p, "u": np.zeros(1)}
    for k in range(20):
        given = [named.get(a.split("*")[-1]) for a in signature.split(", ")[:-1]]
        time = ctypes.c_double(0.01 * k)
        passed = [time if array is None else pointer(array) for array in given]
        assert step(*passed, ctypes.c_double(0.01)) == 0
    motion = ax.simulate(model, 0.2, method="rk4", step=0.01)
    assert q == pytest.approx([motion[n][-1] for n in model.coordinates], rel=1e-10, abs=1e-10)


# rounding ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["planar", "arm", "solve", "every"])
def test_bounds_hold_and_are_not_idle(name):
    made = {
        "planar": lambda: functions.planar_chain(3),
        "arm": functions.spatial_arm,
        "solve": functions.factored_solve,
        "every": functions.every_operation,
    }
    tape = Tape.from_casadi(made[name]())
    rng = np.random.default_rng(1)
    samples = rounding_bounds(
        tape, [rng.normal(size=(64, *p.shape)) for p in tape.inputs], "float32"
    )
    found = evaluate_rounded(tape, samples.inputs, "float32")
    errors = [np.abs(a - b) for a, b in zip(found, samples.results, strict=True)]
    relative, bound = samples.relative(errors), samples.relative(samples.bounds)
    sure = bound < 0.1
    assert np.count_nonzero(sure) > 32 and (relative <= 1.5 * bound)[sure].all()
    assert np.median(relative[sure] / bound[sure]) > 1e-3


def test_the_bound_of_a_sum_is_the_textbooks():
    """N. J. Higham, Accuracy and Stability, (4.4): u times the partial sums."""
    import casadi as ca

    x = ca.SX.sym("x", 4)
    tape = Tape.from_casadi(ca.Function("total", [x], [((x[0] + x[1]) + x[2]) + x[3]]))
    values = np.array([[1.0, 2.0, -3.0, 0.5]])
    (bound,) = rounding_bounds(tape, [values], "float32").bounds
    assert bound[0] == pytest.approx(2.0**-24 * (3.0 + 0.0 + 0.5), rel=1e-12)


def test_sampled_states_close(linkage):
    states = sample_arguments(linkage, 50)
    assert np.abs(linkage.residual(states["q"])).max() < 1e-9
    assert np.ptp(states["q"], axis=0).min() > 0.1


def test_checked_steps_of_tiny_robots_are_short():
    size = 1e-3
    robot = ax.Mechanism("tiny")
    for name, parent in (("crank", "ground"), ("coupler", "crank"), ("rocker", "ground")):
        robot.add_body(name, mass=size**3, com=(size, 0, 0), inertia=(size**5,) * 3)
        at = (2.5 * size if name == "rocker" else size if name == "coupler" else 0, 0, 0)
        robot.add_joint(name, ax.Revolute("y"), parent=parent, child=name, at=at)
    ends = {"at": (2.5 * size, 0, 0), "child_at": (2 * size, 0, 0)}
    robot.add_loop("pin", ax.Revolute("y"), parent="coupler", child="rocker", **ends)
    robot.set_home(crank=-1.2, coupler=0.8, rocker=-1.6)
    robot.add_motor("drive", "crank")
    model = robot.derive(self_check=False).compile("interpreter")
    step = CStep(model, "tiny_", "float64")
    samples = step.samples(sample_arguments(model, 16))
    moved = step.tape.evaluate(*samples)[0] - samples[1][:, :3]
    assert 1e-3 < np.abs(moved).max() < 0.5


def test_the_command_line_writes_a_project(tmp_path, capsys):
    folder = tmp_path / "robot"
    command = ["export", "unicycle", "--to", f"{folder}/", "--precision", "float32"]
    assert run([*command, "--prefix", "left_"]) == 0
    assert "robot.h" in capsys.readouterr().out
    assert "int left_step(float *q" in (folder / "include" / "robot.h").read_text()
    assert run([*command, "--fmi", "3.0"]) == 2
    assert "it is for .fmu files" in capsys.readouterr().err


# mistakes ----------------------------------------------------------------------------------------


def test_a_foreign_project_is_not_overwritten(linkage, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("project(mine)\n")
    with pytest.raises(ax.FileError, match=r"has a CMakeLists\.txt that Axode did not write"):
        linkage.export(tmp_path)
    assert (tmp_path / "CMakeLists.txt").read_text() == "project(mine)\n"
    (tmp_path / "file").write_text("")
    with pytest.raises(ax.FileError, match=r"cannot write '.*file/"):
        linkage.export(tmp_path / "file")
