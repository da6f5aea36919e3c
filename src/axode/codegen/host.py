"""This computer: the processor that code is generated for, and threads that a call may use."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from numbers import Integral

from axode.errors import InvalidArgument, shortened


@dataclass(frozen=True)
class Host:
    """The processor that code is generated for.

    Attributes:
        triple: LLVM's name of the platform.
        cpu: LLVM's name of the processor.
        features: Its instruction sets, LLVM's notation.
        lanes: Doubles in one vector register.
    """

    triple: str
    cpu: str
    features: str
    lanes: int


@functools.cache
def host() -> Host:
    """This computer's processor."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    # Measured: eight lanes beat four on AVX-512, four beat eight on AVX2.
    lanes = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    return Host(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        lanes=lanes,
    )


def check_threads(threads: int) -> None:
    """Raise for anything but a whole number of threads."""
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise InvalidArgument(
            f"threads: must be a whole number > 0, got {shortened(threads)}; leave it out to use "
            "as many as a batch is worth"
        )
