"""Choose blocks and threads per block: all of the chip, as far as registers suffice."""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32  # threads that go together on every NVIDIA GPU
BLOCKS = (64, 128, 256)  # threads per block that are considered
REGISTER_UNIT = 8  # registers per thread are allocated in multiples of this


@dataclass(frozen=True)
class GpuLimits:
    """What a GPU has.

    Attributes:
        multiprocessors: Parts that each work on blocks of their own.
        registers: Registers of each part.
        threads: That each part can hold.
    """

    multiprocessors: int
    registers: int = 65536
    threads: int = 2048


def resident(chip: GpuLimits, registers: int, block: int) -> int:
    """Threads that one multiprocessor holds at once, in blocks of a size."""
    each = -(-max(registers, 1) // REGISTER_UNIT) * REGISTER_UNIT
    warps = min(chip.registers // (each * WARP), chip.threads // WARP)
    return warps * WARP // block * block


def launch_geometry(runs: int, registers: int, chip: GpuLimits) -> tuple[int, int]:
    """Number of blocks, and of threads per block.

    The block that keeps most threads on the chip, the smaller of equals; a batch too small to fill
    it is spread over all multiprocessors in smaller blocks.
    """
    block = max(BLOCKS, key=lambda size: (resident(chip, registers, size), -size))
    share = -(-runs // chip.multiprocessors)
    block = min(block, max(WARP, -(-share // WARP) * WARP))
    return -(-runs // block), block
