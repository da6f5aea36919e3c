"""Builds and runs the C++ loop around Pinocchio's algorithms, where that is possible.

Needs a C++ compiler, the headers in the `pin` wheel and Eigen (on Debian: libeigen3-dev). Whatever
is missing, `Skipped` says so and how to get it; nothing else depends on this folder.

    python -m benchmarks.peers.pinocchio_native.build
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import axode as ax
from benchmarks.mechanisms import arm, platform, platform_coordinates
from benchmarks.peers.pinocchio_model import PinocchioPeer, pinocchio_peer

HERE = Path(__file__).parent
BUILT = HERE.parents[2] / "out" / "benchmarks"
EIGEN = (Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3"))
# Optimised for this processor, and header-only: the library in the wheel is built for any x86-64,
# and Eigen's alignment must be the same throughout a program.
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-march=native", "-w", "-DWITH_LCABA")
# What Pinocchio's variants of joints and loops need of Boost.
DEFINITIONS = ("-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
               "-DBOOST_FUSION_INVOKE_MAX_ARITY=12")  # fmt: skip
TOLERANCE = 1e-10  # of results from C++ against results from Python: other instructions, rounding
LCABA_TOLERANCE = 1e-6  # it iterates with mu > 0
State = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, v, and v_dot or forces


class Skipped(Exception):
    """Why the native loop cannot be built here, and what would help."""


@dataclass(frozen=True)
class Timed:
    """One algorithm: nanoseconds a call in each repetition, and its results."""

    nanoseconds: tuple[float, ...]
    results: np.ndarray

    @property
    def median(self) -> float:
        return float(np.median(self.nanoseconds))

    @property
    def spread(self) -> float:
        """Slowest over fastest repetition, less one."""
        return max(self.nanoseconds) / min(self.nanoseconds) - 1


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
    command = [compiler, *FLAGS, *DEFINITIONS, f"-I{prefix / 'include'}", f"-I{eigen}",
               str(HERE / "loop.cpp"), f"-L{library}", f"-Wl,-rpath,{library}",
               "-lboost_serialization"]  # fmt: skip
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


def native_times(peer: PinocchioPeer, states: Sequence[State]) -> dict[str, Timed]:
    """Time Pinocchio's algorithms for the states, given and answered in Axode's order.

    Trees: `rnea` (the third vector being accelerations) and `aba` (being forces); trees with loops:
    `constraintDynamics` and `lcaba`.

    Raises:
        Skipped: as `build`.
    """
    program = build()
    with tempfile.TemporaryDirectory() as folder:
        model, problem, results = (Path(folder) / name for name in ("model", "problem", "results"))
        peer.model.saveToBinary(str(model))
        problem.write_text("\n".join(_problem(peer, states)))
        subprocess.run([str(program), str(model), str(problem), str(results)], check=True)
        lines = results.read_text().splitlines()
    found = {}
    while lines:
        name, *times = lines[0].split()
        rows = np.array([line.split() for line in lines[1 : 1 + len(states)]], dtype=float)
        answers = np.array([peer.back(row) for row in rows])
        _compare(name, answers, peer, states)
        found[name] = Timed(tuple(map(float, times)), answers)
        lines = lines[1 + len(states) :]
    return found


def _compare(name: str, answers: np.ndarray, peer: PinocchioPeer, states: Sequence[State]) -> None:
    """The loop computes what the same library computes from Python."""
    for answer, (q, v, x) in zip(answers, states, strict=True):
        if name == "rnea":
            wanted = peer.inverse_dynamics(q, v, x)
        else:
            wanted, _ = peer.direct_dynamics(q, v, x)
        error = np.abs(answer - wanted).max() / np.abs(wanted).max()
        limit = LCABA_TOLERANCE if name == "lcaba" else TOLERANCE
        assert error < limit, f"{name} from C++ and from Python differ by {error:.3g}"


def _problem(peer: PinocchioPeer, states: Sequence[State]) -> Iterator[str]:
    """The text that loop.cpp reads."""
    yield f"{len(states)} {len(peer.loops)} 0.0"
    for loop in peer.loops:
        for joint, pose in ((loop.joint1_id, loop.joint1_placement),
                            (loop.joint2_id, loop.joint2_placement)):  # fmt: skip
            yield f"{joint} {_text(pose.rotation)} {_text(pose.translation)}"
    for q, v, x in states:
        yield f"{_text(peer.q(q))} {_text(peer.v(v))} {_text(peer.v(x))}"


def _text(x: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(x))


def arm_states(count: int = 16) -> list[State]:
    """Random states of the seven-joint arm."""
    rng = np.random.default_rng(0)
    return [tuple(rng.uniform(-2, 2, (3, 7))) for _ in range(count)]


def platform_states(legs: int = 6, count: int = 16) -> list[State]:
    """States that close the platform's loops, and forces along its legs."""
    mechanism = platform(legs)
    model = mechanism.derive().compile("interpreter")
    rng = np.random.default_rng(0)
    states: list[State] = []
    for _ in range(count):
        quaternion = np.array([1.0, *rng.uniform(-0.1, 0.1, 3)])
        position = np.array([0.0, 0.0, 0.7]) + rng.uniform(-0.08, 0.08, 3)
        named = platform_coordinates(legs, position, quaternion / np.linalg.norm(quaternion))
        q = np.array([named[name] for name in model.coordinates])
        v = model.speeds(q, rng.uniform(-1, 1, len(model.independent)))
        force = np.zeros_like(v)
        force[[model.speed_names.index(f"leg{k}.rate") for k in range(legs)]] = rng.uniform(
            -50, 50, legs)  # fmt: skip
        states.append((q, v, force))
    return states


def native_subjects() -> list[tuple[str, ax.Mechanism, list[State]]]:
    """What is timed: label, mechanism and states."""
    return [("7-dof arm", arm(), arm_states()), ("6-UPS platform", platform(), platform_states())]


def main() -> None:
    """Build, time the arm and the platform, say what came out."""
    for label, mechanism, states in native_subjects():
        try:
            times = native_times(pinocchio_peer(mechanism), states)
        except Skipped as reason:
            print(f"skipped: {reason}")
            return
        for name, timed in times.items():
            print(f"{label:<16}{name:<20}{timed.median:>9.0f} ns a call, spread {timed.spread:.0%}")


if __name__ == "__main__":
    main()
