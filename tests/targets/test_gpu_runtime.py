"""Kernels as a machine with a GPU runs them, on an emulated one: calls, copies, pieces, errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import axode as ax
from axode.codegen.targets import ptx
from axode.runtime import cuda, device, staging
from axode.runtime.arrays import as_array
from axode.runtime.launch import GpuLimits, launch_geometry, resident
from emulated_gpu import DeviceArray, install

ROUNDING = 1e-12
H200 = GpuLimits(132)


@pytest.fixture
def gpu(monkeypatch):
    return install(monkeypatch)


@cache
def equations():
    return ax.gallery.build("caster_robot").derive()


@cache
def model():
    return equations().compile(parameters="fixed")


def states(runs):
    rng = np.random.default_rng(0)
    return np.repeat(model().home[np.newaxis], runs, axis=0), rng.normal(size=(runs, 2))


# functions of models ------------------------------------------------------------------------------


def test_a_model_on_the_gpu_takes_what_one_on_the_cpu_takes(gpu):
    there = equations().compile("cuda", parameters="fixed")
    q, nu = states(6)
    expected = model().forward_dynamics(q, nu)
    np.testing.assert_allclose(there.forward_dynamics(q, nu), expected, rtol=ROUNDING)
    np.testing.assert_allclose(there.forward_dynamics(q[0], nu[0]), expected[0], rtol=ROUNDING)
    grid = there.forward_dynamics(q[:2, np.newaxis], nu[:3])
    assert grid.shape == (2, 3, 2)
    assert there.mass_matrix(q).shape == (6, 2, 2)


def test_arrays_on_the_gpu_stay_there_and_numpy_arrays_come_back(gpu):
    there = equations().compile("cuda", parameters="fixed")
    q, nu = states(3)
    assert type(there.forward_dynamics(q, nu)) is np.ndarray
    stays = there.forward_dynamics(gpu.asarray(q), gpu.asarray(nu), gpu.asarray(np.zeros(2)))
    assert isinstance(stays, DeviceArray)


def test_single_precision_is_asked_for(gpu):
    single = equations().compile("cuda", parameters="fixed", precision="float32")
    assert "cuda, float32" in repr(single)
    q, nu = states(4)
    got, expected = single.forward_dynamics(q, nu), model().forward_dynamics(q, nu)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())
    assert not np.allclose(got, expected, rtol=1e-12, atol=0)  # it is what it says


def test_single_precision_is_for_gpus():
    with pytest.raises(ax.NotApplicable, match="target='cuda'"):
        equations().compile(precision="float32")
    with pytest.raises(ax.UnknownName, match="float64, float32"):
        equations().compile("cuda", precision="half")


def test_numpy_arrays_go_in_pieces_that_overlap(gpu, monkeypatch):
    there = equations().compile("cuda", parameters="fixed")
    q, nu = states(40)
    whole = there.forward_dynamics(q, nu)
    gpu.launches.clear()
    size = 8 * (11 * 10 + 2)  # bytes of ten samples and an input
    monkeypatch.setattr(staging, "PIECES", (size, size))
    out = np.empty((40, 2))
    assert there.forward_dynamics(q, nu, out=out) is out
    np.testing.assert_array_equal(out, whole)
    assert [launch.runs for launch in gpu.launches] == [10, 10, 10, 10]
    scattered = np.empty((2, 40)).T
    there.forward_dynamics(q, nu, out=scattered)
    np.testing.assert_array_equal(scattered, whole)
    with pytest.raises(ax.InvalidArgument, match=r"out has shape \(3, 2\), expected \(40, 2\)"):
        there.forward_dynamics(q, nu, out=out[:3])


def test_a_call_on_the_gpu_is_one_launch_and_nothing_else(gpu):
    """No waiting, no copies and, after the first call with `out`, no allocation."""
    there = equations().compile("cuda", parameters="fixed")
    q, nu = (gpu.asarray(a) for a in states(6))
    out = gpu.empty((6, 2))
    there.forward_dynamics(q, nu, out=out)
    gpu.launches.clear()
    before = gpu.waits, len(gpu.copies), len(gpu.allocated)
    assert there.forward_dynamics(q, nu, out=out) is out
    assert (gpu.waits, len(gpu.copies), len(gpu.allocated)) == before
    assert len(gpu.launches) == 1
    np.testing.assert_allclose(out, model().forward_dynamics(*states(6)), rtol=ROUNDING)


def test_any_layout_is_read_and_written_without_copies(gpu):
    there = equations().compile("cuda", parameters="fixed")
    q, nu = states(6)
    expected = model().forward_dynamics(q, nu)
    turned = gpu.asarray(q.T.copy()).T, gpu.asarray(np.repeat(nu, 2, axis=0))[::2]
    out = gpu.empty((2, 6)).T
    allocated = len(gpu.allocated)
    there.forward_dynamics(*turned, out=out)
    np.testing.assert_allclose(out, expected, rtol=ROUNDING)
    grid = gpu.asarray(q).reshape(2, 3, 7), gpu.asarray(nu).reshape(2, 3, 2)
    out = gpu.empty((2, 3, 2))
    there.forward_dynamics(*grid, out=out)
    np.testing.assert_allclose(out.reshape(6, 2), expected, rtol=ROUNDING)
    assert len(gpu.allocated) <= allocated + 1  # the second result of this test
    spread = there.forward_dynamics(gpu.asarray(q)[:2, np.newaxis], gpu.asarray(nu)[:3])
    expected = model().forward_dynamics(q[:2, np.newaxis], nu[:3])
    np.testing.assert_allclose(spread, expected, rtol=ROUNDING)


def test_results_go_to_arrays_of_other_kinds(gpu):
    there = equations().compile("cuda", parameters="fixed", precision="float32")
    q, nu = states(4)
    expected = model().forward_dynamics(q, nu)
    near = 1e-5 * np.abs(expected).max()
    wide = gpu.empty((4, 2))
    np.testing.assert_allclose(there.forward_dynamics(q, nu, out=wide), expected, atol=near)
    here = np.empty((4, 2))
    there.forward_dynamics(gpu.asarray(q), nu, out=here)
    np.testing.assert_allclose(here, expected, atol=near)
    mixed = there.forward_dynamics(gpu.asarray(q), nu)
    np.testing.assert_allclose(mixed, expected, atol=near)
    with pytest.raises(ax.InvalidArgument, match=r"out has shape \(3, 2\), expected \(4, 2\)"):
        there.forward_dynamics(gpu.asarray(q), nu, out=wide[:3])


class Tensor:
    """An array with the interface of PyTorch's tensors."""

    __module__ = "torch"
    is_cuda, requires_grad = True, False

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, f"torch.{array.dtype}"

    def element_size(self):
        return self.array.itemsize

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data


def test_calls_on_the_same_places_see_new_numbers(gpu):
    """Launches that are kept know places, never copies of what was there."""
    there = equations().compile("cuda", parameters="fixed")
    q, nu = states(6)
    q_there, nu_there, out = gpu.asarray(q), gpu.asarray(nu), gpu.empty((6, 2))
    narrow = gpu.asarray(nu.astype(np.float32))
    for k in range(3):
        nu_there[...] = nu + k
        there.forward_dynamics(q_there, nu_there, [0.1 * k, 0.2], out=out)
        expected = model().forward_dynamics(q, nu + k, [0.1 * k, 0.2])
        np.testing.assert_allclose(out, expected, rtol=ROUNDING)
        narrow[...] = nu + k
        there.forward_dynamics(q_there, narrow, out=out)
        expected = model().forward_dynamics(q, nu + k)
        np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_launches_are_prepared_for_repeated_calls(files, gpu):
    direct = cuda.load(files).function("forward_dynamics")
    q, nu = (gpu.asarray(a) for a in states(3))
    out = gpu.empty((3, 2))
    launch = direct.prepare(q, nu, gpu.asarray(np.zeros(2)), out=out)
    gpu.launches.clear()
    launch()
    launch(31)
    assert [made.stream for made in gpu.launches] == [0, 31]
    np.testing.assert_allclose(out, model().forward_dynamics(*states(3)), rtol=ROUNDING)
    with pytest.raises(ax.InvalidArgument, match="out must be a float64 array on the GPU"):
        direct.prepare(q, nu, gpu.asarray(np.zeros(2)), out=np.zeros((3, 2)))


def test_tensors_are_used_on_the_current_stream_of_pytorch(gpu, monkeypatch):
    torch = SimpleNamespace(
        cuda=SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=55))
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    there = equations().compile("cuda", parameters="fixed")
    q, nu = states(5)
    out = np.zeros((5, 2))
    gpu.launches.clear()
    there.forward_dynamics(Tensor(q), Tensor(nu), out=Tensor(out))
    np.testing.assert_allclose(out, model().forward_dynamics(q, nu), rtol=ROUNDING)
    assert [launch.stream for launch in gpu.launches] == [55]


def test_arrays_are_handed_to_other_libraries(gpu, monkeypatch):
    array = gpu.zeros(3)
    assert isinstance(as_array(array, "cupy"), DeviceArray)
    taken = SimpleNamespace(from_dlpack=lambda a: ("torch", a))
    monkeypatch.setitem(sys.modules, "torch.utils", SimpleNamespace(dlpack=taken))
    monkeypatch.setitem(sys.modules, "torch.utils.dlpack", taken)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    assert as_array(array, "torch")[0] == "torch"
    monkeypatch.setitem(sys.modules, "jax.dlpack", None)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ax.NotApplicable, match="asarray='jax' needs the package jax"):
        as_array(array, "jax")
    with pytest.raises(ax.UnknownName, match="asarray has no library 'numpy'"):
        as_array(array, "numpy")


def test_kernels_are_assembled_once_and_kept(gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        there = equations().compile("cuda", parameters="fixed")
        there.forward_dynamics(*states(1))
    assert gpu.assembled == 1
    gpu.registers = 240  # of runs: they are assembled again, with fewer registers
    ax.simulate(model(), 0.01, method="rk4", step=1e-2, target="cuda")
    assert gpu.assembled == 3
    monkeypatch.setattr(ptx, "_emit", None)  # the text is kept as well
    equations().compile("cuda", parameters="fixed").forward_dynamics(*states(1))


# files --------------------------------------------------------------------------------------------


@pytest.fixture
def files(gpu, tmp_path):
    model().export(tmp_path / "cart.ptx", ["forward_dynamics", "mass_matrix"], rollout="rk4")
    return tmp_path / "cart.ptx"


def test_an_exported_file_says_what_it_holds(files):
    header = json.loads(files.with_suffix(".json").read_text())
    assert list(header["kernels"]) == ["forward_dynamics", "mass_matrix", "rk4"]
    assert header["kernels"]["mass_matrix"]["shape"] == [2, 2]
    assert header["model"]["coordinates"] == list(model().coordinates)
    loaded = cuda.load(files)
    assert "registers per thread, 0 bytes spilled" in repr(loaded)
    with pytest.raises(ax.UnknownName, match="Kernels: forward_dynamics"):
        loaded["nothing"]
    with pytest.raises(ax.InvalidArgument, match=r"rollout\('rk4'\)"):
        loaded.function("rk4")


def test_exported_functions_give_the_models_numbers(files):
    q, nu = states(5)
    u = np.full((5, 2), 0.1)
    direct = cuda.load(files).function("forward_dynamics")
    np.testing.assert_allclose(direct(q, nu, u), model().forward_dynamics(q, nu, u), rtol=ROUNDING)
    with pytest.raises(ax.InvalidArgument, match="takes q, nu, u; got 1"):
        direct(q)


def test_exported_runs_end_where_simulated_ones_do(files):
    q, nu = states(5)
    times, saved = cuda.load(files).rollout()(q, nu, duration=0.1, step=1e-2, save_every=0.02)
    run = ax.simulate(model(), 0.1, start=(q, nu), method="rk4", step=1e-2, save_every=0.02)
    np.testing.assert_allclose(times, run.time[1:])
    expected = run[list(model().coordinates)].values[:, 1:]
    np.testing.assert_allclose(saved[..., :7], expected, rtol=ROUNDING, atol=ROUNDING)
    assert saved.shape == (5, 5, 7 + 2 + 2)
    with pytest.raises(ax.InvalidArgument, match=r"expected \(runs, 2\)"):
        cuda.load(files).rollout()(q, nu[:, :1], duration=0.1, step=1e-2)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_exported_runs_take_parameters_inputs_and_pieces(gpu, tmp_path, precision):
    m = equations().compile()
    m.export(tmp_path / "cart.ptx", [], rollout="rk4", precision=precision)
    run = cuda.load(tmp_path / "cart.ptx").rollout()
    q, nu = states(6)
    p = np.repeat(m.parameter_vector()[np.newaxis], 6, axis=0)
    p[:, 0] = np.linspace(5, 20, 6)
    u = np.array([0.2, -0.1])
    _, saved = run(q, nu, u=u, p=p, duration=0.05, step=1e-2)
    expected = ax.simulate(
        m,
        0.05,
        start=(q, nu),
        parameters={"mp": p[:, 0]},
        input=u,
        method="rk4",
        step=1e-2,
        save_every=0.05,
    )
    loose = 1e-12 if precision == "float64" else 1e-5
    assert saved.shape[1] == 1 and saved.dtype == precision
    np.testing.assert_allclose(saved[:, 0, 2], expected["phi"][:, -1], rtol=loose, atol=loose)
    gpu.launches.clear()
    gpu.free = 3 * 2 * saved.itemsize * 80  # some three runs
    _, pieces = run(q, nu, u=u, p=p, duration=0.05, step=1e-2)
    assert len(gpu.launches) > 1
    np.testing.assert_array_equal(pieces, saved)
    _, usual = run(q, nu, duration=0.05, step=1e-2)
    assert not np.allclose(usual, saved)


def test_arrays_of_others_are_written_where_they_are(gpu, files):
    """PyTorch and JAX hand over arrays by one of two protocols; neither needs a copy."""
    kernel = cuda.load(files)["forward_dynamics"]
    q, nu = (gpu.asarray(a) for a in states(3))
    out = np.zeros((3, 2))
    by_dlpack = SimpleNamespace(__dlpack__=out.__dlpack__, __dlpack_device__=out.__dlpack_device__)
    kernel({"q": q, "nu": nu, "u": gpu.asarray(np.zeros(2)), "out.forward_dynamics": by_dlpack})
    np.testing.assert_allclose(out, model().forward_dynamics(*states(3)), rtol=ROUNDING)
    with pytest.raises(ax.InvalidArgument, match="must be an array on the GPU"):
        kernel({"q": [0.0] * 7})
    with pytest.raises(ax.InvalidArgument, match="must be float64"):
        kernel({"q": gpu.asarray(np.zeros((3, 7), dtype=np.float32))})


@pytest.mark.parametrize("stream", [77, SimpleNamespace(cuda_stream=77)])
def test_kernels_run_on_the_callers_stream(gpu, files, stream):
    direct = cuda.load(files).function("forward_dynamics")
    q, nu = (gpu.asarray(a) for a in states(2))
    gpu.launches.clear()
    direct(q, nu, np.zeros(2))
    direct(q, nu, np.zeros(2), stream=stream)
    assert [launch.stream for launch in gpu.launches] == [0, 77]
    with pytest.raises(ax.InvalidArgument, match="stream: expected one of CuPy or PyTorch"):
        direct(q, nu, np.zeros(2), stream="fast")


def test_c_and_axode_files_are_exported_too(tmp_path):
    source, header = model().export(tmp_path / "cart.c", ["forward_dynamics", "energy"])
    assert '#include "cart.h"' in source.read_text()
    names = re.findall(r"void (\w+)\(", header.read_text())
    assert names == ["cart_forward_dynamics", "cart_energy"]
    (own,) = model().export(tmp_path / "cart.axm", ["energy"])
    assert ax.load_model(own).functions == ("energy",)
    with pytest.raises(ax.InvalidArgument, match=r"endings are \.axm .* \.c .* \.ptx"):
        model().export(tmp_path / "cart.exe")
    with pytest.raises(ax.InvalidArgument, match=r"only a \.ptx file holds whole runs"):
        model().export(tmp_path / "cart.c", rollout="rk4")


BLOCKED = """
import sys
for name in ("casadi", "llvmlite", "scipy", "rich", "typer", "pydantic", "cupy"):
    sys.modules[name] = None
import axode.runtime.cuda as cuda
import axode.runtime.function, axode.runtime.rollout, axode.runtime.host_arrays
try:
    cuda.load(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


def test_exported_kernels_need_neither_casadi_nor_llvm(files):
    done = subprocess.run(
        [sys.executable, "-P", "-c", BLOCKED, str(files)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith("NotApplicable running on a GPU needs CuPy")


# launches and errors ------------------------------------------------------------------------------


def test_registers_decide_how_many_threads_fit():
    assert resident(H200, 32, 128) == 2048
    assert resident(H200, 255, 128) == 256
    assert launch_geometry(10**6, 32, H200)[1] * launch_geometry(10**6, 32, H200)[0] >= 10**6
    for registers in (32, 100, 168, 255):
        _, block = launch_geometry(10**7, registers, H200)
        assert resident(H200, registers, block) == max(
            resident(H200, registers, size) for size in (64, 128, 256)
        )


@pytest.mark.parametrize("runs", [1, 31, 1024, 4224, 10**5])
def test_small_batches_are_spread_over_the_chip(runs):
    blocks, block = launch_geometry(runs, 64, H200)
    assert blocks * block >= runs and block % 32 == 0
    assert blocks >= min(132, -(-runs // 32))


def test_an_older_gpu_or_driver_is_told_what_to_do(monkeypatch, files):
    install(monkeypatch, capability="70")
    with pytest.raises(ax.NotApplicable, match=r"has compute capability 7\.0.*needs 7\.5"):
        cuda.load(files)
    install(monkeypatch, driver=11060)
    with pytest.raises(ax.NotApplicable, match=r"knows CUDA 11\.6, PTX 7\.8 needs 11\.8; update"):
        cuda.load(files)
    refusing = install(monkeypatch)
    refusing.refuses = True
    with pytest.raises(ax.NotApplicable, match=r"driver refuses the kernels.*update the driver"):
        cuda.load(files)


@pytest.mark.parametrize(
    ("version", "needs"),
    [
        ("6.3", (10, 0)),
        ("7.8", (11, 8)),
        ("8.0", (12, 0)),
        ("8.6", (12, 7)),
        ("8.7", (12, 8)),
        ("9.0", (13, 0)),
    ],
)
def test_versions_of_ptx_and_of_drivers(version, needs):
    assert device.cuda_for(version) == needs


def test_full_memory_is_told_with_the_remedy(gpu):
    there = equations().compile("cuda", parameters="fixed")

    def full(*_, **__):
        raise gpu.cuda.memory.OutOfMemoryError("out of memory allocating 8 bytes")

    gpu.empty = full
    with pytest.raises(ax.NotApplicable, match=r"memory is full.*free_all_blocks"):
        there.forward_dynamics(*(gpu.asarray(a) for a in states(3)))


def test_a_missing_gpu_is_told(monkeypatch, gpu):
    gpu.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(ax.NotApplicable, match=r"finds no GPU.*nvidia-smi"):
        equations().compile("cuda").forward_dynamics(*states(1))


def test_old_kernel_files_are_refused(gpu):
    with pytest.raises(ax.errors.FileError, match=r"format 2, expected 3; export them again"):
        cuda.KernelFile("", {"format": 2})
    assert ptx.FORMAT == cuda.FORMAT
