"""Postures of random platforms on six legs by Bertini 2, against those that Axode found.

    python -m benchmarks.kinematics --peer out/platforms.npz
    python benchmarks/peers/bertini_platforms.py out/platforms.npz out/bertini.json [0 100]

Runs where `bertini` and NumPy are installed; Axode is not needed. Bertini tracks the 128 paths of a
total degree homotopy of seven quadrics, with the power series endgame, in double precision: 40 ends
are postures, the others lie where q = 0, at infinity of the chart. About 10 s per platform;
platforms that the results hold already are not solved again.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bertini
import numpy as np

NAMES = ("x", "y", "z", "g0", "g1", "g2", "g3")  # q = (1, x, y, z), and g
AGREEMENT = 1e-6  # of a root, relative to its size
AT_INFINITY = 1e-3  # |q| / |(q, g)| of ends that are not postures
ENDGAMES = ("PowerSeries", "PowerSeries", "Cauchy")  # in turn, where they disagree


def leg(a: np.ndarray, b: np.ndarray, square: float) -> np.ndarray:
    """Symmetric matrix of |q b - a q + g|^2 - square |q|^2 in (1, x, y, z, g)."""
    rows = np.zeros((4, 8))
    apart, both = b - a, b + a
    rows[0, 1:5] = [*-apart, 1]
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        rows[k + 1, [0, 1 + i, 1 + j, 5 + k]] = [apart[k], both[j], -both[i], 1]
    matrix = rows.T @ rows
    matrix[:4, :4] -= square * np.eye(4)
    return matrix


def polynomial(matrix: np.ndarray) -> str:
    """A quadric as Bertini reads it; a minus at the beginning would negate all of it.

    The last square has the factor one.
    """
    names, terms = ("", *NAMES), []
    for i in reversed(range(8)):
        for j in range(i, 8):
            factor = matrix[i, j] * (1 if i == j else 2)
            if factor:
                factors = [f"{abs(factor):.17f}", *filter(None, (names[i], names[j]))]
                terms.append(("-" if factor < 0 else "+") + " " + "*".join(factors))
    return " ".join(terms).removeprefix("+ ")


def system(parameters: np.ndarray) -> str:
    """The seven quadrics of a platform."""
    a, b = parameters[:18].reshape(6, 3), parameters[18:36].reshape(6, 3)
    functions = [polynomial(leg(a[i], b[i], parameters[36 + i])) for i in range(6)]
    functions.append("g0 + x*g1 + y*g2 + z*g3")
    named = " ".join(f"f{k} = {text};" for k, text in enumerate(functions))
    declared = ", ".join(f"f{k}" for k in range(len(functions)))
    return f"function {declared}; variable_group {', '.join(NAMES)}; {named}"


def solve(parameters: np.ndarray, endgame: str) -> tuple[np.ndarray, int]:
    """Roots (q, g) that Bertini finds, and how many of its paths end at infinity."""
    kind = f"ZeroDim{endgame}DoublePrecisionTotalDegree"
    solver = getattr(bertini.nag_algorithm, kind)(bertini.parse.system(system(parameters)))
    solver.solve()
    reached = [np.ravel(end) for end in solver.solutions()]
    ends = np.array([[complex(v) for v in end] for end in reached if len(end) == 8])  # not failed
    part = np.linalg.norm(ends[:, :4], axis=1) / np.linalg.norm(ends, axis=1)
    return ends[part > AT_INFINITY], int((part <= AT_INFINITY).sum())


def compare(roots: np.ndarray, found: np.ndarray) -> tuple[int, float]:
    """Match two lists of homogeneous roots one to one, and find the largest angle between them."""
    roots, found = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (roots, found))
    shares = found @ roots.conj().T  # of each root in each end
    angles = np.linalg.norm(found[:, np.newaxis] - shares[..., np.newaxis] * roots, axis=2).T
    nearest = angles.argmin(axis=1)
    matched = np.unique(nearest[angles.min(axis=1) < AGREEMENT])
    return len(matched), float(angles.min(axis=1).max())


def main() -> None:
    """Solve and compare all platforms of a file."""
    data, target = np.load(sys.argv[1]), Path(sys.argv[2])
    rows: list[dict[str, Any]] = json.loads(target.read_text())["rows"] if target.exists() else []
    done = {row["platform"] for row in rows}
    first, last = map(int, sys.argv[3:5] or (0, len(data["roots"])))
    for number in sorted({*range(first, last)} - done):
        parameters, roots = data["parameters"][number], data["roots"][number]
        began = time.process_time()
        for endgame in ENDGAMES:
            found, infinite = solve(parameters, endgame)
            matched, apart = compare(roots, found)
            if len(found) == matched == len(roots):
                break
        rows.append(
            {
                "platform": number,
                "axode": len(roots),
                "bertini": len(found),
                "at infinity": infinite,
                "matched": matched,
                "largest angle": apart,
                "endgame": endgame,
                "CPU seconds": time.process_time() - began,
            }
        )
        print(rows[-1], flush=True)
        agree = sum(row["axode"] == row["bertini"] == row["matched"] for row in rows)
        summary = {
            "platforms": len(rows),
            "agree": agree,
            "largest angle": max(row["largest angle"] for row in rows),
            "CPU seconds": sum(row["CPU seconds"] for row in rows),
        }
        about = {"bertini": version("bertini"), "agreement": AGREEMENT}
        target.write_text(json.dumps({**about, "summary": summary, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
