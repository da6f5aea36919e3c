"""Model files that were made to do harm are refused by an error of ours, and harm nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.tape import MAX_PORTS, Port, Tape, TapeFileError
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.fastcall import FastCall
from tests.targets import functions, hostile

MUTANTS = 250
FUNCTIONS = [
    "forward_dynamics",
    "energy",
    "state_rate",
    "rates",
    "joint_speeds",
    "projection",
    "measures",
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "cart.axm"
    hostile.cart().derive().compile(parameters="free").save(path)
    return path.read_bytes()


@pytest.fixture
def refusal(tmp_path: Path):
    """The error that a model file raises, as text."""

    def read(data: bytes) -> str:
        path = tmp_path / "crafted.axm"
        path.write_bytes(data)
        with pytest.raises(ax.FileError) as caught:
            ax.load_model(path)
        return str(caught.value)

    return read


def tape() -> Tape:
    return Tape.from_casadi(functions.planar_chain(2))


CRASH = """
import threading
import numpy as np
from dataclasses import replace
from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import AxodeError
from tests.targets import functions

t = Tape.from_casadi(functions.planar_chain(2))
t = replace(t, inputs=t.inputs + (Port("q", (2,)),) * 600_000)
def attack():
    try:
        read = Tape.from_bytes(t.to_bytes())
        a = np.zeros(2)
        CompiledFunction(read)(*(a for _ in read.inputs))
    except AxodeError as error:
        print(type(error).__name__)
attack()
thread = threading.Thread(target=attack)
thread.start()
thread.join()
"""


@pytest.mark.slow
def test_many_ports_do_not_reach_the_stack():
    """A table of 600 000 addresses ended the process, or wrote over another thread's arrays."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(CRASH)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )
    assert (done.returncode, done.stdout) == (0, "TapeFileError\n" * 2), done.stderr[-2000:]


@pytest.mark.parametrize("count", [60, 64, 65, 200])
def test_functions_of_many_arrays_still_run(count):
    """On both sides of what the fast way has room for."""
    t = tape()
    ports = tuple(Port(f"x{k}", (3,)) for k in range(count - len(t.inputs)))
    wide = CompiledFunction(replace(t, inputs=t.inputs + ports))
    values = [np.full(2, 0.1 * k) for k in range(len(t.inputs))]
    extra = [np.zeros(3) for _ in ports]
    for got, expected in zip(wide(*values, *extra), CompiledFunction(t)(*values), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_more_ports_than_can_be_compiled_are_refused():
    t = tape()
    many = replace(t, inputs=t.inputs + tuple(Port(f"x{k}", ()) for k in range(2 * MAX_PORTS)))
    with pytest.raises(ax.NotApplicable, match="at most 512 can be compiled"):
        CompiledFunction(many).prepare(batch=False)


@pytest.mark.parametrize("shape", [(1, 1, 1000), (1, 2, 3, 4), (1, 1, 1, 1, 2000)])
def test_arrays_of_many_axes_are_compared_whole(shape):
    """The third length was compared with the flags of the next array: 257 passed for any."""
    t = tape()
    inputs = (Port("a", shape), Port("b", (2,)), *t.inputs)
    operands = t.operands.copy()
    operands[t.kinds == 0, 0] += 2
    call = FastCall(replace(t, inputs=inputs, operands=operands), 1).call
    others = [np.zeros(port.shape) for port in (*inputs[1:], *t.outputs)]
    assert call(np.zeros((*shape[:-1], 257)), *others) == 0


CRAFTED = {
    "the same name twice": (
        lambda t: replace(t, inputs=(t.inputs[0], t.inputs[0], *t.inputs[2:])),
        "has inputs of the same name",
    ),
    "too many ports": (
        lambda t: replace(t, inputs=t.inputs + tuple(Port(f"x{k}", ()) for k in range(MAX_PORTS))),
        "inputs, expected at most 256",
    ),
    "a huge input": (
        lambda t: replace(t, inputs=(*t.inputs, Port("x", (1 << 25,)))),
        "inputs of more than 1048576 numbers",
    ),
    "a shape that no array has": (
        lambda t: replace(t, outputs=(*t.outputs, Port("x", (0, 1 << 62)))),
        "impossible shape",
    ),
    "a negative length": (
        lambda t: replace(t, outputs=(*t.outputs, Port("x", (-1, 0)))),
        "impossible shape",
    ),
    "an operand that is not used": (
        lambda t: replace(t, operands=_with_unused(t)),
        "values that do not exist",
    ),
    "an escape sequence": (lambda t: replace(t, name="\x1b[2J"), "expected printable text"),
}


def _with_unused(t: Tape) -> np.ndarray:
    operands = t.operands.copy()
    operands[np.flatnonzero(t.kinds > 1)[-1], 2] = 10**6
    return operands


@pytest.mark.parametrize("case", CRAFTED)
def test_crafted_tapes_are_refused(case):
    craft, message = CRAFTED[case]
    with pytest.raises(TapeFileError, match=message):
        Tape.from_bytes(craft(tape()).to_bytes())


def test_pivots_are_not_more_than_solves(saved, refusal):
    """Code that compared a million of them took a gigabyte, from a file of four megabytes."""
    header, blobs = hostile.split(saved)
    place = [name for name, _ in header["functions"]].index("pivots")
    pivots = Tape.from_bytes(blobs[place])
    kinds, operands = np.zeros(1, np.uint8), np.array([[0, 0, -1]], np.int32)  # the first input
    results, ports = np.zeros(1 << 20, np.int32), (Port("pivots", (1 << 20,)),)
    made = replace(pivots, kinds=kinds, operands=operands, results=results, outputs=ports)
    blobs[place] = made.to_bytes()
    header["functions"][place][1] = len(blobs[place])
    assert "pivots gives (1048576,), the names ask for 0 to 2" in refusal(
        hostile.joined(header, blobs)
    )


def test_an_intact_file_is_read(saved, tmp_path):
    header, blobs = hostile.split(saved)
    path = tmp_path / "again.axm"
    path.write_bytes(hostile.joined(header, blobs))
    use(ax.load_model(path))


NAMES = ["x*\\\n/ int evil(void);", "\x1b]0;owned\x07", "", "[0]", "a\u202eb", "\ud800"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["coordinates", "inputs", "bodies", "parameters"])
def test_names_obey_the_rules_of_mechanism_files(saved, refusal, kind, name):
    header, blobs = hostile.split(saved)
    entry = header["facts"][kind]
    entry[0] = [name, 1.0] if kind == "parameters" else name
    message = refusal(hostile.joined(header, blobs))
    assert "printable text" in message or "begin with a bracket" in message
    assert message.isprintable()


def test_the_scene_is_that_of_the_model(saved, refusal):
    header, blobs = hostile.split(saved)
    header["scene"]["solids"][0]["body"] = "elsewhere"
    assert "its scene has parts of bodies that are not there" in refusal(
        hostile.joined(header, blobs)
    )


def test_a_file_of_other_parts_is_refused(saved, refusal):
    header, blobs = hostile.split(saved)
    del header["scene"]
    message = refusal(hostile.joined(header, blobs))
    assert "its description has other entries than facts, scene and functions" in message


def use(model: ax.Model) -> None:
    """What any user does with a model that was read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function in model.functions:
            model.operations(function)
        model.forward_dynamics(model.home, np.zeros(len(model.independent)))
        ax.simulate(model, 0.01, method="rk4", step=1e-3)
        assert repr(model).isprintable()
        assert model.scene.spacing > 0


@pytest.mark.slow
def test_only_our_own_errors_come_out(saved, tmp_path):
    """Mutants of a file, signed again, raise errors of Axode's own or can be used."""
    dice = random.Random(13)
    path, outcomes = tmp_path / "mutant.axm", Counter[str]()
    for number in range(MUTANTS):
        path.write_bytes(hostile.mutant(saved, dice))
        try:
            use(ax.load_model(path))
            outcomes["used"] += 1
        except ax.AxodeError as error:
            outcomes[type(error).__name__] += 1
            assert str(error).replace("\n", "").isprintable(), number
        except Exception as error:
            pytest.fail(f"mutant {number}: {type(error).__name__}: {error}")
    assert outcomes["FileError"] > MUTANTS / 3 and outcomes["used"] > 3, outcomes
