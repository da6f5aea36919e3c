"""Builds and runs the C++ loop around Pinocchio's algorithms, where that is possible.

Needs a C++ compiler, the headers in the `pin` wheel and Eigen (on Debian: libeigen3-dev). Whatever
is missing, `Skipped` says so and how to get it; nothing else depends on this folder.

    python -m benchmarks.peers.pinocchio_native.build
"""

from __future__ import annotations

import hashlib
import platform as platform_module
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.mechanisms import arm, platform
from benchmarks.peers.pinocchio_model import PinocchioPeer, pinocchio_peer
from benchmarks.states import random_states
from benchmarks.timing import Times

HERE = Path(__file__).parent
BUILT = HERE.parents[2] / "out" / "benchmarks"
EIGEN = (Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3"))
# Optimised for this processor, and header-only: the library in the wheel is built for any x86-64,
# and Eigen's alignment must be the same throughout a program.
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-march=native", "-w", "-DWITH_LCABA")
# Measured on Zen 4: with 512-bit vectors Eigen's small matrices make constraintDynamics a third
# slower. A peer gets the flags that suit it.
X86_FLAGS = ("-mno-avx512f",)
# What Pinocchio's variants of joints and loops need of Boost.
DEFINITIONS = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)
TOLERANCE = 1e-9  # of results from C++ against results from Python: other instructions, rounding
ITERATED_TOLERANCE = 1e-5  # with mu > 0
EXACT = (
    "rnea",
    "aba",
    "computeRNEADerivatives",
    "computeABADerivatives",
    "constraintDynamics",
    "constraintDynamicsDerivatives",
)
INVERSE = ("rnea", "computeRNEADerivatives")
State = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, v, and v_dot or forces


class Skipped(Exception):
    """Why the native loop cannot be built here, and what would help."""


def build() -> Path:
    """The program, built if this version of it is not there yet.

    Raises:
        Skipped: if a compiler or headers are missing or the compiler refuses.
    """
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise Skipped("no C++ compiler found; on Debian: apt install g++")
    prefix = _wheel_prefix()
    eigen = next((path for path in EIGEN if path.is_dir()), None)
    if eigen is None:
        raise Skipped("no Eigen headers found; on Debian: apt install libeigen3-dev")
    library = prefix / "lib"
    flags = (*FLAGS, *(X86_FLAGS if platform_module.machine() in ("x86_64", "AMD64") else ()))
    command = [
        compiler,
        *flags,
        *DEFINITIONS,
        f"-I{prefix / 'include'}",
        f"-I{eigen}",
        str(HERE / "loop.cpp"),
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-lboost_serialization",
    ]
    text = (HERE / "loop.cpp").read_text() + " ".join(command) + _pinocchio_version()
    program = BUILT / f"pinocchio_loop_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not program.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        print("building the C++ loop around Pinocchio (a few minutes, once)", file=sys.stderr)
        done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"{compiler} refused:\n{done.stderr[:2000]}")
    return program


def _wheel_prefix() -> Path:
    """Where the `pin` wheel keeps headers and libraries."""
    import pinocchio

    for folder in Path(pinocchio.__file__).parents:
        if folder.name == "cmeel.prefix" and (folder / "include" / "pinocchio").is_dir():
            return folder
    raise Skipped("this Pinocchio has no headers beside it; pip install pin")


def _pinocchio_version() -> str:
    import pinocchio

    return str(pinocchio.__version__)


class NativeLoop:
    """Pinocchio's algorithms from C++ for some states, given and answered in Axode's order.

    Trees: `rnea` (the third vector being accelerations) and `aba` (being forces); trees with loops:
    `constraintDynamics`, its proximal kind, and `lcaba`. Derivatives of the first three: the value
    is what is answered.
    """

    def __init__(self, peer: PinocchioPeer, states: Sequence[State]) -> None:
        """Writes the problem, runs it once and compares the answers with those from Python.

        Raises:
            Skipped: as `build`.
        """
        self.program = build()
        self.peer, self.states = peer, states
        self._folder = tempfile.TemporaryDirectory()
        self._files = [str(Path(self._folder.name) / name) for name in ("model", "problem", "out")]
        peer.model.saveToBinary(self._files[0])
        Path(self._files[1]).write_text("\n".join(_problem(peer, states)))
        self.errors: dict[str, float] = {}
        self.times(1)

    def times(self, repetitions: int) -> dict[str, list[float]]:
        """Seconds a call of every algorithm, in each repetition."""
        command = [str(self.program), *self._files, str(repetitions)]
        subprocess.run(command, check=True)
        lines = Path(self._files[2]).read_text().splitlines()
        found = {}
        while lines:
            name, *nanoseconds = lines[0].split()
            count = len(self.states)
            if name not in self.errors:
                rows = np.array([line.split() for line in lines[1 : 1 + count]], dtype=float)
                self.errors[name] = self._error(name, np.array([self.peer.back(r) for r in rows]))
            found[name] = [1e-9 * float(x) for x in nanoseconds]
            lines = lines[1 + count :]
        return found

    def _error(self, name: str, answers: np.ndarray) -> float:
        """The loop computes what the same library computes from Python."""
        errors = []
        for answer, (q, v, x) in zip(answers, self.states, strict=True):
            if name in INVERSE:
                wanted = self.peer.inverse_dynamics(q, v, x)
            else:
                wanted, _ = self.peer.direct_dynamics(q, v, x)
            errors.append(np.abs(answer - wanted).max() / np.abs(wanted).max())
        error = float(max(errors))
        limit = TOLERANCE if name in EXACT else ITERATED_TOLERANCE
        assert error < limit, f"{name} from C++ and from Python differ by {error:.3g}"
        return error


def _problem(peer: PinocchioPeer, states: Sequence[State]) -> Iterator[str]:
    """The text that loop.cpp reads."""
    yield f"{len(states)} {len(peer.loops)}"
    for loop in peer.loops:
        for joint, pose in (
            (loop.joint1_id, loop.joint1_placement),
            (loop.joint2_id, loop.joint2_placement),
        ):
            yield f"{joint} {_text(pose.rotation)} {_text(pose.translation)}"
    for q, v, x in states:
        yield f"{_text(peer.q(q))} {_text(peer.v(v))} {_text(peer.v(x))}"


def _text(x: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(x))


def main() -> None:
    """Build, time the arm and the platform, say what came out."""
    for label, mechanism in (("7-dof arm", arm()), ("6-UPS platform", platform())):
        states = random_states(mechanism, mechanism.derive().compile("interpreter"), 16)
        rows = list(zip(states.q, states.v, states.force, strict=True))
        try:
            times = NativeLoop(pinocchio_peer(mechanism), rows).times(9)
        except Skipped as reason:
            print(f"skipped: {reason}")
            return
        for name, seconds in times.items():
            shown = Times(tuple(seconds)).text("ns", 0)
            print(f"{label:<16}{name:<28}{shown} ns per call")


if __name__ == "__main__":
    main()
