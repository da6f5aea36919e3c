"""C99 output: golden text, self-test, agreement with the tape, awkward names."""

from __future__ import annotations

import ctypes
import math
import platform
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets.c import HeaderText, c_code, c_library
from tests.targets import functions
from tests.targets.agreement import MANY, assert_agree, interpreter, largest_terms, samples
from tests.targets.emulated.__main__ import Processor
from variants import further

GOLDEN = Path(__file__).parent / "golden"


def native_compiler() -> str | None:
    """Return the C compiler of this machine; an emulated Python may find that of its host."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    done = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True)
    return compiler if done.stdout.startswith(platform.machine()) else None


CC = native_compiler()
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler for this machine")
NUMBER = re.compile(r"\b\d+\.\d+(?:e[+-]?\d+)?\b")
REMEDY = "run: pytest tests/targets/test_c.py --update"
FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1")

EXAMPLES = {
    "every_operation": functions.every_operation,
    "planar": lambda: functions.planar_chain(3),
    "arm": functions.spatial_arm,
    "solve": functions.factored_solve,
}


def every_kind() -> Tape:
    """Each kind of operation once, on the same two numbers."""
    builder = TapeBuilder()
    x, y = builder.input(0, 0), builder.input(1, 1)
    results = [
        builder.apply(kind, *(x, y, builder.constant(-0.5))[: ARITY[kind]])
        for kind in Kind
        if kind not in LEAVES
    ]
    results += [builder.constant(c) for c in (np.inf, -np.inf, np.nan, 0.1)]
    inputs = (Port("x", ()), Port("left.torque", (2,)))
    return Tape.build("every_kind", inputs, (Port("out", (len(results),)),), builder, results)


def library(tape: Tape, folder: Path):
    """The C function of a tape, loaded, called for a batch."""
    code = c_code(tape)
    _, source, _ = code.write(folder)
    target = folder / "lib.so"
    subprocess.run([CC, *FLAGS, "-shared", "-fPIC", source, "-o", target, "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(target)), code.name)
    function.restype = None
    function.argtypes = [ctypes.c_void_p] * (len(tape.inputs) + len(tape.outputs))

    def call(*arrays):
        count = len(arrays[0])
        outputs = [np.empty((count, *port.shape)) for port in tape.outputs]
        every = [*arrays, *outputs]
        places = [(a.ctypes.data, a[0].nbytes) for a in every]
        for k in range(count):
            function(*(start + k * step for start, step in places))
        return outputs

    return call


@pytest.mark.parametrize("suffix", [".h", ".c", "_test.c"])
def test_golden(suffix, update):
    code = c_code(every_kind())
    text = {".h": code.header, ".c": code.source, "_test.c": code.self_test}[suffix]
    path = GOLDEN / f"every_kind{suffix}"
    if update:
        path.write_text(text)
    wanted = path.read_text()
    assert NUMBER.sub("x", text) == NUMBER.sub("x", wanted), REMEDY
    # the last digits of what a self-test expects are those of this machine's functions
    pairs = zip(NUMBER.findall(text), NUMBER.findall(wanted), strict=True)
    assert all(math.isclose(float(a), float(b), rel_tol=1e-14) for a, b in pairs), REMEDY


@needs_cc
@pytest.mark.parametrize("name", [*EXAMPLES, "every_kind"])
def test_self_test_passes(name, tmp_path):
    tape = every_kind() if name == "every_kind" else Tape.from_casadi(EXAMPLES[name]())
    _, source, test = c_code(tape).write(tmp_path)
    program = tmp_path / "test"
    subprocess.run([CC, *FLAGS, source, test, "-o", program, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(f"{tape.name}: 0 wrong, ")


@needs_cc
def test_self_test_finds_a_wrong_result(tmp_path):
    tape = Tape.from_casadi(functions.planar_chain(2))
    _, source, test = c_code(tape).write(tmp_path)
    source.write_text(source.read_text().replace("sin(", "cos("))
    program = tmp_path / "test"
    subprocess.run([CC, *FLAGS, source, test, "-o", program, "-lm"], check=True)
    assert subprocess.run([program], capture_output=True, check=False).returncode == 1


@needs_cc
def test_runs_on_emulated_processors_know_what_passed(tmp_path):
    """`make test-emulated` once took every result for a failure; here without an emulator."""
    here = Processor(compiler=(CC, *FLAGS), last=("-lm",), emulator=("env",), packages="")
    code = c_code(Tape.from_casadi(functions.planar_chain(2)))
    passed, output = here.run(code, tmp_path)
    assert passed and "0 wrong" in output
    broken = replace(code, source=code.source.replace("sin(", "cos("))
    assert not here.run(broken, tmp_path)[0]
    assert not here.run(replace(code, source="nonsense"), tmp_path)[0]


@needs_cc
@pytest.mark.parametrize("times", [1, further(5)])
@pytest.mark.parametrize("name", EXAMPLES)
def test_c_agrees_with_the_interpreter(name, times, tmp_path):
    source = EXAMPLES[name]()
    tape = Tape.from_casadi(source)
    arrays = samples(tape, times * MANY[name])
    expected = interpreter(source, arrays)
    got = library(tape, tmp_path)(*arrays)
    assert_agree(got, expected, tape, name, largest_terms(tape, arrays))


@needs_cc
def test_output_may_be_an_input(tmp_path):
    x = ca.SX.sym("x", 3)
    tape = Tape.from_casadi(ca.Function("turn", [x], [ca.vertcat(x[1], x[2], x[0])]))
    code = c_code(tape)
    _, source, _ = code.write(tmp_path)
    target = tmp_path / "lib.so"
    subprocess.run([CC, *FLAGS, "-shared", "-fPIC", source, "-o", target], check=True)
    array = np.array([1.0, 2.0, 3.0])
    ctypes.CDLL(str(target)).turn(*[ctypes.c_void_p(array.ctypes.data)] * 2)
    assert array.tolist() == [2.0, 3.0, 1.0]


@needs_cc
def test_awkward_names_become_c_names(tmp_path):
    builder = TapeBuilder()
    names = ("left.torque", "left_torque", "double", "v1", "2nd", "sin")
    inputs = tuple(Port(name, ()) for name in names)
    total = builder.input(0, 0)
    for k in range(1, len(names)):
        total = builder.apply(Kind.ADD, total, builder.input(k, 0))
    total = builder.apply(Kind.ADD, total, builder.apply(Kind.SIN, builder.constant(0.0)))
    tape = Tape.build("model 1*/", inputs, (Port("double", ()),), builder, [total])
    code = c_code(tape)
    assert code.name == "model_1__"
    call = library(tape, tmp_path)
    assert call(*(np.array([10.0**k]) for k in range(6)))[0] == 111111


def test_an_exported_header_names_every_entry(tmp_path):
    bot = ax.Mechanism("arm")
    bot.add_body("link", mass=ax.Parameter("load", 2.0), inertia=(1, 1, 1))
    bot.add_joint("el*/bow", ax.Revolute("y"), parent="ground", child="link", at=(0, 0, 1))
    bot.add_motor("push", "el*/bow")
    bot.derive().compile().export(tmp_path / "arm.c", ["energy"])
    legend = (tmp_path / "arm.h").read_text().partition("*/")[0]
    assert [line.split()[1:] for line in legend.splitlines()[1:-1]] == [
        ["q[0]", "el*", "/bow"],
        ["nu[0]", "el*", "/bow.rate"],
        ["u[0]", "push.torque"],
        ["p[0]", "load"],
    ]


SPLICES = [
    "a*\\\n/ int evil;",
    "b??/",
    "c*??/\n/ int evil;",
    "d\\",
    "/* e",
    "f*\u2028/",
    "g\x1b[2J",
    "h*" + "/ int evil;",
    "???/",
    "i\rint evil;",
    "//j",
]


@needs_cc
@pytest.mark.parametrize("trigraphs", [[], ["-trigraphs"]])
def test_no_name_leaves_its_comment(tmp_path, trigraphs):
    """Names of files that other programs wrote; lines joined by a backslash ended a comment."""
    tape = Tape.from_casadi(functions.planar_chain(2))
    inputs = tuple(
        Port(f"{name}{k}", port.shape)
        for k, (name, port) in enumerate(zip(SPLICES, tape.inputs, strict=False))
    )
    evil = replace(tape, inputs=inputs, name="*/ int evil; /*")
    header, source = c_library(
        "robot", [evil], HeaderText("\\\n*/ int evil;", {"q": SPLICES, "u": SPLICES})
    )
    (tmp_path / "robot.h").write_text(header)
    (tmp_path / "robot.c").write_text(source)
    subprocess.run(
        [CC, *FLAGS, *trigraphs, "-c", "robot.c", "-o", "robot.o"], check=True, cwd=tmp_path
    )
    done = subprocess.run(
        [CC, "-E", "-P", *trigraphs, "robot.c"],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "robot_" in done.stdout and "evil" not in done.stdout.replace("int_evil", "")


@pytest.mark.parametrize("stem", ['a"b', "a\\", "a\nb", "a??/"])
def test_file_names_that_cannot_be_included_are_refused(stem):
    tape = Tape.from_casadi(functions.planar_chain(2))
    with pytest.raises(ax.InvalidArgument, match="cannot be written in an #include"):
        c_library(stem, [tape])


def one_link(mass: float) -> ax.Model:
    bot = ax.Mechanism("arm")
    bot.add_body("link", mass=mass, inertia=(1, 1, 1), com=(0.5, 0, 0))
    bot.add_joint("elbow", ax.Revolute("y"), parent="ground", child="link")
    bot.add_motor("push", "elbow")
    return bot.derive().compile(parameters="fixed")


@needs_cc
def test_two_exported_files_link_into_one_program(tmp_path):
    """Each function begins with its file's name, and gives the numbers of its own model."""
    models = {"light": one_link(1.0), "heavy": one_link(9.0)}
    for name, model in models.items():
        model.export(tmp_path / f"{name}.c", ["forward_dynamics", "energy"])
    target = tmp_path / "both.so"
    sources = [tmp_path / f"{name}.c" for name in models]
    subprocess.run(
        [CC, *FLAGS, "-Wshadow", "-shared", "-fPIC", *sources, "-o", target, "-lm"], check=True
    )
    both = ctypes.CDLL(str(target))
    for name, model in models.items():
        q, nu, u, result = (np.array([value]) for value in (0.3, 0.0, 2.0, 0.0))
        getattr(both, f"{name}_forward_dynamics")(
            *(ctypes.c_void_p(array.ctypes.data) for array in (q, nu, u, result))
        )
        assert result == pytest.approx(model.forward_dynamics(q, nu, u))


def test_names_in_c_begin_as_asked(tmp_path):
    model = one_link(1.0)
    for prefix in ("", "left_"):
        model.export(tmp_path / "arm.c", ["energy"], prefix=prefix)
        code = model.c_code("energy", prefix=prefix)
        assert code.name == f"{prefix}energy"
        signature = f"void {prefix}energy(const double *q, const double *nu, double *result);"
        assert signature in (tmp_path / "arm.h").read_text()
        assert signature in code.header
    with pytest.raises(ax.InvalidArgument, match="'2nd arm' cannot begin a name in C"):
        model.export(tmp_path / "arm.c", prefix="2nd arm")
    with pytest.raises(ax.InvalidArgument, match="only C has names to begin"):
        model.export(tmp_path / "arm.axm", prefix="arm_")


def test_header_tells_shapes_and_operations():
    header = c_code(Tape.from_casadi(functions.planar_chain(2))).header
    assert "q[2]" in header and "mass[2 x 2]" in header and "operations" in header
