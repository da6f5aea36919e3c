"""Whole runs on the GPU from an exported kernel: starts in, states out, nothing else needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from axode.errors import InvalidArgument
from axode.runtime import device
from axode.runtime.cuda import GpuKernel, cupy, soa

ROUNDING = 1e-9  # of a step: a duration that is a whole number of steps may miss it by this


class GpuRollout:
    """Fixed steps of many runs.

    Args:
        kernel: A kernel of whole runs.
        model: Names and defaults, from the header.
    """

    def __init__(self, kernel: GpuKernel, model: Mapping[str, Any]) -> None:
        self.kernel, self.model = kernel, dict(model)

    def __repr__(self) -> str:
        sizes = self.kernel.header["state"]
        return f"GpuRollout of {sizes['q']} coordinates, {sizes['nu']} speeds: {self.kernel!r}"

    def __call__(
        self,
        q: Any,
        nu: Any,
        *,
        duration: float,
        step: float,
        save_every: float | None = None,
        u: Any = None,
        p: Any = None,
        t0: float = 0.0,
        stream: Any = None,
    ) -> tuple[Any, Any]:
        """States at equal intervals, and their times.

        Args:
            q, nu: Coordinates and independent speeds, (runs, size); NumPy's or on the GPU.
            duration: How long [s].
            step: Length of a step [s]; made a little shorter where it does not fit.
            save_every: Time between saved states [s]; only the last unless given.
            u: Inputs held over the run, (inputs,) or (runs, inputs); zero unless given.
            p: Free parameters, (size,) or (runs, size); the model's defaults unless given.
            t0: Time at the start [s].
            stream: Stream of CuPy or PyTorch, or its address; CuPy's current one unless given.

        Returns:
            Times (rows,), and q, nu and the works supplied and dissipated, (runs, rows, size), both
            without the start. They stay on the GPU if the start was there.
        """
        if not (duration > 0 and step > 0 and (save_every is None or save_every > 0)):
            raise InvalidArgument("duration, step and save_every must be > 0 s")
        every = duration if save_every is None else min(save_every, duration)
        save_steps = max(1, math.ceil(every / step - ROUNDING))
        h = every / save_steps
        n_steps = max(1, math.ceil(duration / h - ROUNDING))
        rows = -(-n_steps // save_steps)
        stays = hasattr(q, "__cuda_array_interface__")
        numbers = {
            "h": h,
            "n_steps": n_steps,
            "save_steps": save_steps,
            "t0": t0,
            "t_end": t0 + duration,
            "least_pivot": 0.0,
        }
        with device.on_stream(stream), device.MemoryGuard(self.kernel.header["name"]):
            states = self._run(q, nu, u, p, numbers, rows)
            result = states if stays else cupy().asnumpy(states)
        times = t0 + h * save_steps * np.arange(1, rows + 1)
        times[-1] = t0 + duration
        return times, result

    def _run(self, q: Any, nu: Any, u: Any, p: Any, numbers: Mapping[str, float], rows: int) -> Any:
        cp, header, dtype = cupy(), self.kernel.header, self.kernel.dtype
        q, nu = (cp.asarray(a, dtype=dtype) for a in (q, nu))
        sizes = {**header["state"], **header["given"]}
        for name, array in (("q", q), ("nu", nu)):
            if array.ndim != 2 or array.shape != (q.shape[0], sizes[name]):
                raise InvalidArgument(
                    f"'{name}' has shape {array.shape}, expected (runs, {sizes[name]})"
                )
        given = {"u": np.zeros(sizes["u"]) if u is None else u} if "u" in sizes else {}
        if "p" in sizes:
            given["p"] = list(self.model["parameters"].values()) if p is None else p
        given = {name: cp.asarray(a, dtype=dtype) for name, a in given.items()}
        given |= {
            n: cp.asarray(np.array([x]), dtype=dtype) for n, x in numbers.items() if n in sizes
        }
        width, runs = header["tables"]["out"], int(q.shape[0])
        result = cp.empty((runs, rows, width), dtype=dtype)
        piece = device.piece_of(runs, 2 * dtype.itemsize * (sum(sizes.values()) + rows * width))
        for first in range(0, runs, piece):
            part = slice(first, min(first + piece, runs))
            count = part.stop - part.start
            buffers = {n: cp.zeros((s, count), dtype=dtype).T for n, s in header["state"].items()}
            buffers |= {"q": soa(q[part], dtype), "nu": soa(nu[part], dtype)}
            buffers["t"][...] = numbers["t0"]
            own = {n: a if a.ndim == 1 else soa(a[part], dtype) for n, a in given.items()}
            out = cp.full((width, rows, count), math.nan, dtype=dtype).transpose(2, 1, 0)
            self.kernel({**buffers, **own}, {"out": out})
            result[part] = out
        return result
