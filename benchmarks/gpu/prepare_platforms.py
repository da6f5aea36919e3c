"""Write what `track_platforms.py` needs on a machine with a GPU, into a folder.

    python -m benchmarks.gpu.prepare_platforms out/platforms

The folder holds the equations of platforms on six legs as tapes, their start sets, and the roots
that the CPU finds for some random platforms. No CasADi is needed where it is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from axode.kinematics.polynomials.solve_family import solve_family, start_set
from benchmarks.platform_numbers import dietmaier, platforms
from benchmarks.platforms import gough_stewart

KNOWN = 500  # platforms that the CPU solves
STARTS = 6  # start sets: one for each attempt
SEED = 2026


def main() -> None:
    """Prepare everything."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/platforms").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    family = gough_stewart()
    sets = [start_set(family, number) for number in range(STARTS)]
    targets = np.concatenate(
        [dietmaier()[np.newaxis], platforms(KNOWN, np.random.default_rng(SEED))]
    )
    found = solve_family(family, targets)
    assert (found.count == 40).all()
    (folder / "residual.tape").write_bytes(family.residual_tape.to_bytes())
    (folder / "jacobian.tape").write_bytes(family.jacobian_tape.to_bytes())
    np.savez(
        folder / "known.npz",
        key=family.key,
        targets=targets,
        roots=found.roots,
        seed=SEED,
        start_roots=np.stack([one.roots for one in sets]),
        start_parameters=np.stack([one.parameters for one in sets]),
    )
    print(f"everything is in {folder}")


if __name__ == "__main__":
    main()
