"""Triangles to pixels, as machine code."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.lowering.raster_ir import LANES, VERTEX, VIEW, resolve_module, triangles_module
from axode.codegen.targets.jit import load

Floats = npt.NDArray[np.float32]
Colours = npt.NDArray[np.uint32]
ALIGNMENT = 64  # bytes


class PixelBuffer:
    """Colours and nearness of pixels, in rows that are whole vectors.

    Attributes:
        width, height: In pixels, `width` rounded up to whole vectors.
        nearness: One over the depth of what is seen; zero where nothing is: (height, width).
        colours: Red, green and blue in the low bytes, one in the highest where something is seen.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = whole_vectors(width), height
        self.nearness: Floats = aligned((height, self.width), np.float32)
        self.colours: Colours = aligned((height, self.width), np.uint32)

    def clear(self) -> None:
        """Clear the picture."""
        self.nearness.fill(0.0)
        self.colours.fill(0)

    def draw(self, vertices: Floats, corners: npt.NDArray[np.int32]) -> None:
        """Draw triangles, hidden by what is nearer.

        Args:
            vertices: Column and row in pixels, nearness, red, green and blue from 0 to 255: (n, 6).
            corners: Three vertices of each triangle, and whether its back is drawn too: (m, 4).
        """
        vertices = np.ascontiguousarray(vertices, np.float32).reshape(-1, VERTEX)
        corners = np.ascontiguousarray(corners, np.int32).reshape(-1, 4)
        if not len(corners):
            return
        lowest, highest = corners[:, :3].min(), corners[:, :3].max()
        if lowest < 0 or highest >= len(vertices):
            raise IndexError(f"corners {lowest} to {highest} of {len(vertices)} vertices")
        _compiled("triangles")(
            vertices.ctypes.data, corners.ctypes.data, len(corners), self.nearness.ctypes.data,
            self.colours.ctypes.data, self.width, self.height,
        )  # fmt: skip


def resolve(
    fine: PixelBuffer, shade: Floats, view: Mapping[str, float], result: Colours
) -> Colours:
    """Average four pixels to one, over a floor with lines and the sky.

    Args:
        fine: Twice as wide and high as the result.
        shade: How far the sun is hidden from the floor, 0 to 1, as large as the result.
        view: The numbers of `VIEW`.
        result: Colours, as of a `PixelBuffer`; changed.
    """
    height, width = result.shape
    if (fine.height, fine.width) != (2 * height, 2 * width) or shade.shape != result.shape:
        raise ValueError(f"{fine.height} x {fine.width} pixels are not twice {height} x {width}")
    numbers = np.array([view[name] for name in VIEW], np.float32)
    _compiled("resolve")(
        fine.colours.ctypes.data, shade.ctypes.data, numbers.ctypes.data, result.ctypes.data,
        width, height,
    )  # fmt: skip
    return result


def whole_vectors(width: int) -> int:
    """Round a number of pixels up to whole vectors."""
    return -(-width // LANES) * LANES


def aligned(shape: tuple[int, int], kind: Any) -> npt.NDArray[Any]:
    """Make an array of zeros that starts where vectors can be loaded."""
    size = shape[0] * shape[1] * np.dtype(kind).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % ALIGNMENT
    return memory[first : first + size].view(kind).reshape(shape)


_SIGNATURES = {"triangles": (triangles_module, "ppippii"), "resolve": (resolve_module, "ppppii")}
_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int64}


@functools.cache
def _compiled(entry: str) -> Callable[..., None]:
    """The machine code of one of the functions; it runs without Python's lock."""
    write, letters = _SIGNATURES[entry]
    code = load(f"raster {entry}", f"raster {entry}", entry, write)
    call = ctypes.CFUNCTYPE(None, *(_TYPES[letter] for letter in letters))(code.address)
    call.code = code  # type: ignore[attr-defined]  # as long as it may be called
    return call
