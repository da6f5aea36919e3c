"""Fuzzers for long runs: trajectories, re-signed model files, command lines.

`make soak` runs each for ten minutes; whatever is not an error of Axode's own fails, endless trials
and those that take all memory too, and the input that did it is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import axode as ax
from axode.cli import run as command
from axode.cli.trajectories import load_columns
from tests.targets import hostile

MEMORY = 8 << 30  # [bytes] of address space for the whole process
PATIENCE = 60.0  # [s] of processor time for one trial
WORDS = [
    "check",
    "simulate",
    "derive",
    "export",
    "linearize",
    "inverse",
    "report",
    "gallery",
    "four_bar",
    "unicycle",
    "robot.toml",
    "run.npz",
    "--time",
    "0.01",
    "--out",
    "--to",
    "x.json",
    "x.c",
    "-1",
    "--start",
    "theta1=0.1",
    "--input",
    "tau=nan",
    "--json",
    "--parameter",
    "m=1e400",
    "\x1b[2J",
    "",
]


def model_files(dice: random.Random, folder: Path) -> None:
    """Read and use a model file with something changed and its checksums right."""
    path, sound = folder / "robot.axm", folder / "sound.axm"
    if not sound.exists():
        hostile.cart().derive().compile(parameters="free").save(sound)
    path.write_bytes(hostile.mutant(sound.read_bytes(), dice))
    model = ax.load_model(path)
    model.forward_dynamics(model.home, np.zeros(len(model.independent)))
    ax.simulate(model, 0.01, method="rk4", step=1e-3)
    assert model.scene.spacing > 0


def trajectory_files(dice: random.Random, folder: Path) -> None:
    """Read a trajectory, or a table, with a few bytes changed."""
    ending = dice.choice([".npz", ".parquet", ".csv"])
    sound, path = folder / f"sound{ending}", folder / f"run{ending}"
    if not sound.exists():
        run = ax.simulate(hostile.cart().derive().compile(), 0.1)
        run.save(sound) if ending != ".csv" else sound.write_text("time,slide\n0,0\n1,0.5\n")
    data = bytearray(sound.read_bytes())
    for _ in range(dice.randrange(1, 6)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(data[: dice.randrange(len(data))] if dice.random() < 0.2 else data)
    load_columns(path)


def command_lines(dice: random.Random, folder: Path) -> None:
    """Type words at random, in a folder with a few files."""
    sink = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
    ):
        code = command([dice.choice(WORDS) for _ in range(dice.randrange(6))])
    assert code in (0, 1, 2), code
    assert "Traceback" not in sink.getvalue() and "\x1b[2J" not in sink.getvalue()


FUZZERS: dict[str, Callable[[random.Random, Path], None]] = {
    fuzzer.__name__: fuzzer for fuzzer in (model_files, trajectory_files, command_lines)
}


def give_up(number: int, frame: object) -> None:
    """Raise in a trial that has taken its processor time."""
    raise TimeoutError(f"not done after {PATIENCE:g} s")


def soak(name: str, seconds: float, seed: int) -> bool:
    """Run one fuzzer; print its counts, and keep what broke it."""
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{name}-"))
    dice, outcomes, faults = random.Random(seed), Counter[str](), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            FUZZERS[name](dice, folder)
            outcomes["accepted"] += 1
        except ax.AxodeError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            faults += 1
            print(f"{name}: {type(error).__name__}: {error}; its input is in {folder}")
            (folder / "fault.txt").write_text("".join(traceback.format_exception(error)))
            folder = Path(tempfile.mkdtemp(prefix=f"soak-{name}-"))
    signal.setitimer(signal.ITIMER_PROF, 0)
    counts = ", ".join(f"{count} {word}" for word, count in outcomes.most_common())
    print(f"{name}: {outcomes.total() + faults} trials, {counts}, {faults} faults", flush=True)
    return not faults


def main() -> None:
    """Run the fuzzers that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FUZZERS)}; all unless given")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, give_up)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    sound = [soak(name, 60 * given.minutes, given.seed) for name in given.names or FUZZERS]
    sys.exit(0 if all(sound) else 1)


if __name__ == "__main__":
    main()
