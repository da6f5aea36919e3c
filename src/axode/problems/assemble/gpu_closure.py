"""Closure on the GPU: one launch for all runs, on arrays that are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axode.problems.assemble.closure import NEARBY, ClosureSystem
from axode.problems.steps.compiled import Place
from axode.runtime import device
from axode.symbolic.algebra.newton import CLOSED

PLACE = Place("cuda", "float64")


def close_on_gpu(
    system: ClosureSystem,
    guess: Any,
    named: Sequence[int] = (),
    given: Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Close configurations on the GPU; nothing waits for the launch.

    Runs that stay open are those of which `ClosureSystem.find` makes a second attempt, from other
    rows or with fewer coordinates held: give it these, on the CPU.

    Args:
        system: What must vanish.
        guess: One configuration per run, (runs, size), float64; it is kept.
        named: Coordinates that keep their values.
        given: Arrays of the GPU instead of the system's own: time `t`, parameters `p` and values
            of `wanted` measures, one row per run or shared.

    Returns:
        Configurations, (runs, size), and whether each is open, (runs,): arrays of the GPU.
    """
    cp = device.cupy()
    free = [k for k in named if not system.fixed[k]]
    fixed = system.fixed.copy()
    fixed[free] = True
    rollout = system.rollout(fixed, system.first_rows, PLACE, follow=bool(free))
    own = {} if given is None else given
    if not set(rollout.program.given) <= set(own):
        own = {**system.given(np.arange(len(guess))), **own}
    buffers = {name: cp.asarray(own[name]) for name in rollout.program.given}
    for name, size in rollout.program.state.items():
        buffers[name] = cp.zeros((len(guess), size))
    buffers["q"][...] = cp.asarray(guess)
    rollout.kernel(buffers, {})
    error, rest, moved = (buffers[name][:, 0] for name in ("error", "rest", "moved"))
    closed = (error <= CLOSED) & (rest <= system.limit)
    return buffers["q"], ~(closed & (moved <= NEARBY) if free else closed)
