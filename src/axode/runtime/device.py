"""Access the GPU of this machine through CuPy, with errors that name what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from axode.errors import InvalidArgument, NotApplicable, install_command
from axode.runtime.launch import GpuLimits

SHARE_OF_MEMORY = 0.8  # of what is free, for one launch; larger batches go in pieces

_STREAMS: dict[tuple[int, int], Any] = {}

# CUDA version a driver must have for a version of PTX, where the version numbers differ.
_CUDA_OF_PTX = {
    "6.3": (10, 0),
    "6.4": (10, 1),
    "6.5": (10, 2),
    "8.6": (12, 7),
    "8.7": (12, 8),
    "8.8": (12, 9),
}


def cupy() -> Any:
    """Import CuPy, or raise an error that names what is missing: package, driver or GPU."""
    try:
        import cupy as module
    except ImportError:
        raise NotApplicable(
            f"running on a GPU needs CuPy: {install_command('cuda')} (or the cupy package for your "
            "CUDA version)"
        ) from None
    remedy = "check that nvidia-smi lists one, or use target='cpu'"
    try:
        if module.cuda.runtime.getDeviceCount() == 0:
            raise NotApplicable(f"CuPy finds no GPU on this machine; {remedy}")
    except module.cuda.runtime.CUDARuntimeError as error:
        raise NotApplicable(f"CuPy cannot use a GPU here: {error}; {remedy}") from None
    return module


def own_capability() -> str:
    """Compute capability of the current GPU, such as "9.0"."""
    text = str(cupy().cuda.Device().compute_capability)
    return f"{text[:-1]}.{text[-1]}"


def chip() -> GpuLimits:
    """Multiprocessors, registers and threads of the current GPU."""
    known = cupy().cuda.Device().attributes
    return GpuLimits(
        int(known.get("MultiProcessorCount", 1)),
        int(known.get("MaxRegistersPerMultiprocessor", GpuLimits.registers)),
        int(known.get("MaxThreadsPerMultiProcessor", GpuLimits.threads)),
    )


def check_capability(capability: str, ptx: str) -> None:
    """Check that the GPU and its driver can run a kernel, with clearer errors than the driver's.

    Args:
        capability: That a kernel needs.
        ptx: Version of its language, such as "7.8".
    """
    own = own_capability()
    if float(own) < float(capability):
        raise NotApplicable(
            f"this GPU has compute capability {own}, the kernel needs {capability}; export it with "
            f"capability='{own}' or an older one"
        )
    version = int(cupy().cuda.runtime.driverGetVersion())
    has, needs = (version // 1000, version % 1000 // 10), cuda_for(ptx)
    if has < needs:
        raise NotApplicable(
            f"the driver is too old: it knows CUDA {has[0]}.{has[1]}, PTX {ptx} needs "
            f"{needs[0]}.{needs[1]}; update the driver, or export with an older capability"
        )


def assembler_version() -> str:
    """Name what assembles PTX here: what one version has assembled, another might refuse."""
    cp = cupy()
    versions = cp.cuda.runtime.driverGetVersion(), cp.cuda.runtime.runtimeGetVersion()
    return f"driver {versions[0]} runtime {versions[1]}"


def assembled(ptx: str) -> bytes:
    """Code of the current GPU for some PTX, which a driver loads at once; empty if it cannot."""
    cp = cupy()
    try:
        linker = cp.cuda.function.LinkState()
        try:
            linker.add_ptr_data(ptx.encode(), "kernels")
        except TypeError:  # before CuPy 14
            linker.add_ptr_data(ptx, "kernels")
        return bytes(linker.complete())
    except cp.cuda.driver.CUDADriverError:
        return b""  # loading the text gives the reason


def cuda_for(ptx: str) -> tuple[int, int]:
    """The first CUDA version whose driver reads a version of PTX."""
    if not ptx:
        return (0, 0)
    if ptx in _CUDA_OF_PTX:
        return _CUDA_OF_PTX[ptx]
    major, minor = map(int, ptx.split("."))
    return (major + 4, minor)  # 7.x came with CUDA 11.x, 8.x with 12.x, 9.x with 13.x


def stream_address(stream: Any) -> int:
    """Address of a stream of CuPy or PyTorch, or of one given by its address."""
    address = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if not isinstance(address, int):
        raise InvalidArgument(
            f"stream: expected one of CuPy or PyTorch or an address, got {stream!r}"
        )
    return address


@contextmanager
def on_stream(stream: Any) -> Iterator[None]:
    """The caller's stream as CuPy's current one.

    Args:
        stream: Stream of CuPy or PyTorch, its address, or None for CuPy's current one.
    """
    cp = cupy()
    if stream is None or (address := stream_address(stream)) == cp.cuda.get_current_stream().ptr:
        yield
        return
    with cp.cuda.ExternalStream(address):
        yield


@contextmanager
def on_own_stream(number: int, place: int) -> Iterator[None]:
    """Work on a GPU and on one of its streams, apart from those of other threads.

    Args:
        number: Number of the GPU.
        place: Which of the streams; they are kept, as memory is reused on the stream it was on.
    """
    cp = cupy()
    with cp.cuda.Device(number):
        key = number, place
        if key not in _STREAMS:
            _STREAMS[key] = cp.cuda.Stream(non_blocking=True)
        with cp.cuda.ExternalStream(_STREAMS[key].ptr):
            yield


class MemoryGuard:
    """Turn a lack of GPU memory into an error with advice, inside a `with`.

    Args:
        what: What needs the memory.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Nothing is needed: most calls allocate nothing."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and issubclass(kind, cupy().cuda.memory.OutOfMemoryError):
            raise NotApplicable(
                f"the GPU's memory is full ({self._what}): {error}; free arrays that are kept "
                "there (cupy.get_default_memory_pool().free_all_blocks()), or give smaller batches"
            ) from None


def free_bytes() -> int:
    """Memory of the current GPU that is free, with what CuPy keeps for itself."""
    cp = cupy()
    return int(cp.cuda.runtime.memGetInfo()[0] + cp.get_default_memory_pool().free_bytes())


def piece_of(count: int, bytes_per_run: int) -> int:
    """How many runs fit into the GPU's memory at once, `count` at most."""
    free = free_bytes()
    piece = int(SHARE_OF_MEMORY * free / max(bytes_per_run, 1))
    if piece < 1:
        raise NotApplicable(
            f"the GPU has {free / 2**20:.0f} MiB free, one run needs {bytes_per_run / 2**20:.1f} "
            "MiB; free some memory (cupy.get_default_memory_pool().free_all_blocks())"
        )
    return min(max(count, 1), piece)


def side_by_side(array: Any, dtype: Any = np.float64) -> Any:
    """Copy an array to the GPU with its runs, the first axis, next to each other."""
    cp = cupy()
    there = cp.asarray(array, dtype=dtype)
    return there if there.ndim < 2 else cp.ascontiguousarray(there.T).T
