"""All URDF files of some folders against Pinocchio: `python -m tests.peers.soak_robots FOLDER...`.

Without folders, those of example-robot-data. Each file that Pinocchio reads and that has a joint
to move is loaded with its base fixed and floating; poses, mass centre, mass matrix, inverse and
direct dynamics are compared at a random state. Exits with 1 if any file is refused or differs.
"""

import argparse
import hashlib
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pinocchio as pin

import axode as ax
from tests.peers.robots import (
    QUANTITIES,
    NotReadByPinocchio,
    Robot,
    packaged_robots,
    read_by_pinocchio,
)
from tests.peers.trees import relative_error

TOLERANCE = 1e-9
NO_INERTIA = 1e-11  # smallest eigenvalue of the scaled mass matrix


def is_singular(path, base):
    """Whether Pinocchio's mass matrix is singular too, so that it has no direct dynamics."""
    theirs = read_by_pinocchio(path, base)
    q = pin.integrate(theirs, pin.neutral(theirs), np.linspace(0.2, 0.9, theirs.nv))
    M = pin.crba(theirs, theirs.createData(), q)
    M = np.triu(M) + np.triu(M, 1).T
    scale = np.sqrt(np.abs(np.diag(M)).clip(1e-300))
    return bool(np.abs(np.linalg.eigvalsh(M / np.outer(scale, scale))).min() < NO_INERTIA)


def compare(path, base):
    """A word about one file, and what is worth printing."""
    try:
        robot = Robot(path, base)
    except ax.InvalidArgument as error:
        return ("a world that cannot float" if is_singular(path, base) else "refused"), str(error)
    errors = {name: float(relative_error(*getattr(robot, name)())) for name in QUANTITIES[:-1]}
    outcome = "agree"
    try:
        errors[QUANTITIES[-1]] = float(relative_error(*robot.direct_dynamics()))
    except ax.MechanismError as error:
        if not is_singular(path, base):
            return "refused", str(error)
        outcome = "agree, without direct dynamics in either"
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    said = f"{robot.theirs.nv} dof, {worst} {errors[worst]:.1e}"
    return (outcome if errors[worst] < TOLERANCE else "differ"), said


def distinct(folders):
    """The URDF files in folders, each text once."""
    seen = set()
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.urdf")):
            key = hashlib.sha256(path.read_bytes()).digest()
            if key not in seen:
                seen.add(key)
                yield path


def main():
    """Compare all, print what is not alike, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--bases", default="fixed,floating")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    folders = options.folders or [packaged_robots() or sys.exit("no example-robot-data here")]
    found: Counter[str] = Counter()
    for path in distinct(folders):
        try:
            if read_by_pinocchio(path, "fixed").nv == 0:
                continue
        except NotReadByPinocchio:
            found["not read by Pinocchio"] += 1
            continue
        for base in options.bases.split(","):
            start = time.perf_counter()
            outcome, said = compare(path, base)
            found[outcome] += 1
            if options.verbose or outcome in ("refused", "differ"):
                seconds = time.perf_counter() - start
                print(f"{outcome}: {path}, {base}: {said} ({seconds:.1f} s)", flush=True)
    for outcome, count in sorted(found.items()):
        print(f"{count:5d}  {outcome}")
    return 1 if found["refused"] or found["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
