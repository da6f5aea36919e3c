"""Check everything that runs on a GPU against stored results of the CPU, on this machine.

    python benchmarks/gpu/check.py out/gpu

Needs NumPy, CuPy and llvmlite, not CasADi; PyTorch and JAX are tried where they are installed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import axode as ax
from axode.model.model_parts import model_on_cpu
from axode.runtime import cuda, device, staging

AGREEMENT = {"float64": 1e-9, "float32": 1e-3}  # relative to the largest result
RUNS_AGREE = {"float64": 1e-6, "float32": 2e-2}  # steps pile differences up
MILLION = 2**20
OUTPUTS: dict[str, dict[str, Any]] = {
    "caster_robot": {
        "turn": ("max", "phi"),
        "far": ("last", "C.x"),
        "error": ("largest", "error"),
        "effort": ("integral", "kinetic"),
        "back": ("crossing", "theta3_dot"),
    },
    "four_bar": {"turn": ("max", "theta3"), "error": ("largest", "error")},
    "rolling_disk": {"turn": ("max", "base.roll"), "error": ("largest", "error")},
}
METHODS = ("rk4", "dopri5", "radau9", "rodas5p")


def error(got: Any, expected: np.ndarray) -> float:
    """Largest difference against the largest number."""
    size = np.fmax.reduce(np.abs(expected), axis=None)
    return float(np.fmax.reduce(np.abs(cp.asnumpy(got) - expected), axis=None) / size)


def told(what: str, difference: float, allowed: float) -> None:
    """Print and judge a difference."""
    assert difference < allowed, f"{what}: {difference:.1e}, allowed {allowed:.0e}"
    print(f"  {what}: {difference:.1e}", flush=True)


def check_models(folder: Path) -> None:
    """Models read from files: NumPy in and out, arrays that stay there, single samples, pieces."""
    for path in sorted(folder.glob("*.axm")):
        if path.stem.startswith("whole"):
            continue
        data = np.load(path.with_suffix(".npz"))
        given = [data[name] for name in ("q", "nu", "u")]
        for precision, allowed in AGREEMENT.items():
            model = ax.load_model(path, target="cuda", precision=precision)
            got = model.forward_dynamics(*given)
            told(f"{path.stem} {precision}", error(got, data["expected"]), allowed)
            there = model.forward_dynamics(*(cp.asarray(a) for a in given))
            assert isinstance(there, cp.ndarray) and got.dtype == precision
            assert error(there, got) == 0.0
            one = model.forward_dynamics(*(a[0] for a in given))
            assert error(one, data["expected"][0]) < allowed
    sizes, staging.PIECES = staging.PIECES, (2**14, 2**14)
    pieces = model.forward_dynamics(*given)
    staging.PIECES = sizes
    assert error(pieces, got) == 0.0


def check_others(folder: Path) -> None:
    """Exported kernels on arrays of CuPy, PyTorch and JAX, on streams of their own."""
    direct, data = cuda.load(folder / "arm.ptx"), np.load(folder / "arm.npz")
    print(direct)
    kernel = direct["forward_dynamics"]
    given = {name: data[name] for name in ("q", "nu", "u")}

    def run(make: Any, out: Any, stream: Any, kind: str) -> None:
        arrays = {name: make(value) for name, value in given.items()}
        kernel({**arrays, "out.forward_dynamics": out}, stream=stream)
        cp.cuda.Device().synchronize()
        told(f"arrays of {kind}", error(cp.asarray(out), data["expected"]), 1e-9)

    with cp.cuda.Stream(non_blocking=True) as stream:
        run(cp.asarray, cp.zeros_like(cp.asarray(data["expected"])), stream, "CuPy, own stream")
    try:
        import torch
    except ImportError:
        print("  no PyTorch here")
    else:
        out = torch.zeros(data["expected"].shape, dtype=torch.float64, device="cuda")
        torch.cuda.synchronize()
        own = torch.cuda.Stream()
        with torch.cuda.stream(own):
            run(lambda a: torch.as_tensor(a, device="cuda"), out, own, "PyTorch, own stream")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory too
    try:
        import jax
    except ImportError:
        print("  no JAX here")
        return
    jax.config.update("jax_enable_x64", True)
    function = direct.function("forward_dynamics")
    made = function(*(jax.device_put(a).block_until_ready() for a in given.values()))
    told("arrays of JAX", error(made, data["expected"]), 1e-9)


def check_derivatives(folder: Path) -> None:
    """Gradients and Hessians against the CPU's, and tensors that PyTorch differentiates."""
    for name in ("pendulum", "caster", "arm"):
        model, data = (
            ax.load_model(folder / f"{name}.axm", target="cuda"),
            np.load(folder / f"{name}.npz"),
        )
        given = [data[argument][:64] for argument in ("q", "nu", "u")]
        weights = np.random.default_rng(0).normal(size=data["expected"][:64].shape)
        expected = model_on_cpu(model).vjp("forward_dynamics", weights, *given)
        arrays = [cp.asarray(a) for a in (weights, *given)]
        for argument, got in model.vjp("forward_dynamics", *arrays).items():
            if got.size:
                told(f"{name}, gradient by {argument}", error(got, expected[argument]), 1e-9)
        by = ("q", "nu")
        hessian = model_on_cpu(model).hessian("forward_dynamics", weights, *given, by=by)
        found = model.hessian("forward_dynamics", *arrays, by=by)
        told(f"{name}, Hessian", error(found, hessian), 1e-9)
        try:
            import torch
        except ImportError:
            print("  no PyTorch here")
            continue
        function = model.torch_function("forward_dynamics")
        tensors = [torch.tensor(a, device="cuda", requires_grad=True) for a in given]
        with torch.cuda.stream(torch.cuda.Stream()):
            function(*tensors).backward(torch.tensor(weights, device="cuda"))
        torch.cuda.synchronize()
        for argument, tensor in zip(("q", "nu", "u"), tensors, strict=True):
            if tensor.numel():
                told(
                    f"{name}, PyTorch {argument}",
                    error(tensor.grad.cpu(), expected[argument]),
                    1e-9,
                )
        single = [tensor[0].detach().requires_grad_(True) for tensor in tensors]
        assert torch.autograd.gradcheck(function, tuple(single), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, tuple(single))


def check_jax(folder: Path) -> None:
    """Programs of JAX on the GPU: values, gradients and steps, on its own memory."""
    try:
        import jax
    except ImportError:
        print("  no JAX here")
        return
    jax.config.update("jax_enable_x64", True)
    for name in ("pendulum", "arm"):
        model = ax.load_model(folder / f"{name}.axm", target="cuda")
        data = np.load(folder / f"{name}.npz")
        given = [data[argument][:64] for argument in ("q", "nu", "u")]
        compiled = jax.jit(model.jax_function("forward_dynamics"))
        there = list(map(jax.device_put, given))
        found = compiled(*there)
        assert {d.platform for d in found.devices()} == {"gpu"}
        told(f"{name}, JAX", error(cp.from_dlpack(found), data["expected"][:64]), 1e-9)
        weights = np.random.default_rng(0).normal(size=found.shape)
        expected = model_on_cpu(model).vjp("forward_dynamics", weights, *given)
        pull_back = jax.vjp(compiled, *there)[1]
        gradient = cp.from_dlpack(pull_back(jax.device_put(weights))[0])
        told(f"{name}, JAX, gradient by q", error(gradient, expected["q"]), 1e-9)
        for count in (1, len(data["q"])):
            many = [jax.device_put(data[argument][:count]) for argument in ("q", "nu", "u")]
            compiled(*many).block_until_ready()
            began = time.perf_counter()
            for _ in range(100):
                found = compiled(*many)
            found.block_until_ready()
            took = (time.perf_counter() - began) / 100
            print(f"  {name}, JAX, {count} states: {1e6 * took:.0f} us a call")


def check_handing(folder: Path) -> None:
    """Calls captured in a graph, and results in the hands of other libraries."""
    model = ax.load_model(folder / "arm.axm", target="cuda")
    data = np.load(folder / "arm.npz")
    there = [cp.asarray(data[name]) for name in ("q", "nu", "u")]
    out = cp.zeros_like(cp.asarray(data["expected"]))
    with cp.cuda.Stream(non_blocking=True) as stream:
        model.forward_dynamics(*there, out=out)
        stream.begin_capture()
        model.forward_dynamics(*there, out=out)
        graph = stream.end_capture()
        stream.synchronize()
        out[...] = 0.0
        graph.launch(stream)
        stream.synchronize()
    told("a captured call", error(out, data["expected"]), 1e-9)
    robot = ax.load_model(folder / "whole_caster_robot.axm")
    for library in ("torch", "jax"):
        try:
            handed = cuda.as_array(out, library)
        except ax.NotApplicable:
            print(f"  no {library} here")
            continue
        assert type(handed).__module__.startswith(library)
        start = {"theta1_dot": [0.5, 1.0]}
        made = ax.sweep(robot, 0.1, start=start, target="cuda", asarray=library)
        known = ax.sweep(robot, 0.1, start=start)["phi"]
        told(f"a sweep handed to {library}", error(cp.from_dlpack(made["phi"]), known), 1e-6)


def check_runs(folder: Path, name: str) -> None:
    """Simulations and sweeps of models from files, against those of the CPU."""
    data = np.load(folder / f"whole_{name}.npz")
    model = ax.load_model(folder / f"whole_{name}.axm")
    start, columns = (data["q"], data["nu"]), [str(c) for c in data["columns"]]
    for method, precision in (*((m, "float64") for m in METHODS), ("rk4", "float32")):
        began = time.perf_counter()
        run = ax.simulate(
            model,
            0.5,
            start=start,
            method=method,
            save_every=0.1,
            target="cuda",
            precision=precision,
        )
        seconds = time.perf_counter() - began
        values = run[columns].values
        if precision == "float64":  # runs that stop do so at the same sample
            assert (np.isnan(values) == np.isnan(data[method])).all(), (name, method)
        difference = error(values, data[method])
        what = f"{name}, simulate, {method}, {precision} ({seconds:.1f} s, {run.status})"
        told(what, difference, RUNS_AGREE[precision])
    for precision in AGREEMENT:
        made = ax.sweep(
            model, 0.5, start=start, outputs=OUTPUTS[name], target="cuda", precision=precision
        )
        for key, values in made.items():
            if precision == "float32" and key in ("error", "back"):
                continue  # rounding itself, and zeros that are only touched
            known = data[f"sweep.{key}"]
            gap = np.fmax.reduce(np.abs(values - known), axis=None)  # NaN of runs that stopped
            difference = float(gap) if key == "error" else error(values, known)
            told(f"{name}, sweep, {key}, {precision}", difference, RUNS_AGREE[precision])


def check_gradients(folder: Path) -> None:
    """Gradients of runs and sensitivities against those of the CPU."""
    cases = {"caster_robot": ("mp", "theta1_dot", "phi"), "four_bar": ("m2", "theta3", "theta1")}
    for name, (parameter, started, signal) in cases.items():
        model = ax.load_model(folder / f"whole_{name}.axm")
        start = {started: np.linspace(0.2, 1.0, 300)}
        for method in ("rk4", "dopri5"):
            given = {"start": start, "method": method}
            names = [parameter, f"start.{started}"]
            found = []
            for target in ("cpu", "cuda"):
                cost = ax.Cost(
                    model, 0.5, running=f"{signal} ** 2", final=signal, target=target, **given
                )
                run = ax.simulate(model, 0.5, sensitivities=names, target=target, **given)
                slopes = [run.sensitivity(signal, n) for n in names]
                found.append([*ax.gradient(cost, names).values(), *slopes])
            labels = [*(f"gradient by {n}" for n in names), *(f"sensitivity to {n}" for n in names)]
            for label, here, there in zip(labels, *found, strict=True):
                told(f"{name}, {method}, {label}", error(there, here), RUNS_AGREE["float64"])


def check_a_million(folder: Path) -> None:
    """A million runs of which only a few numbers are kept."""
    model = ax.load_model(folder / "whole_caster_robot.axm")
    for target, count in (("cpu", 2**14), ("cuda", MILLION)):
        side = round(count**0.5)
        began = time.perf_counter()
        made = ax.sweep(
            model,
            1.0,
            start={"theta1_dot": np.linspace(-1, 1, side)},
            parameters={"mp": np.linspace(5, 25, side)},
            step=1e-3,
            outputs=OUTPUTS["caster_robot"],
            target=target,
        )
        seconds = time.perf_counter() - began
        assert made.finished.all()
        rate = count * 1000 / made.info["seconds"]
        part = f"{made.info['seconds']:.2f} s compiling and running"
        print(f"  {target}: {count} runs of 1000 steps in {seconds:.1f} s, {part}: {rate:.2e}/s")


def check_errors(folder: Path) -> None:
    """Full memory is told with a remedy."""
    model = ax.load_model(folder / "arm.axm", target="cuda")
    data = np.load(folder / "arm.npz")
    model.forward_dynamics(*(data[name][:1] for name in ("q", "nu", "u")))
    there = [cp.asarray(data[name]) for name in ("q", "nu", "u")]
    pool = cp.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=2**16)
    try:
        model.forward_dynamics(*there)
    except ax.NotApplicable as message:
        print(f"  {message}")
    else:
        raise AssertionError("no error for full memory")
    finally:
        pool.set_limit(size=0)


def main() -> None:
    """All checks, one after the other."""
    folder = Path(sys.argv[1])
    print(f"CuPy {cp.__version__}, compute capability {cuda.own_capability()}, {device.chip()}")
    checks = (check_models, check_others, check_derivatives, check_jax, check_handing, check_errors)
    for check in checks:
        print((check.__doc__ or "").splitlines()[0])
        check(folder)
    print("Whole runs")
    for name in OUTPUTS:
        check_runs(folder, name)
    print("Derivatives of runs")
    check_gradients(folder)
    print("A million runs")
    check_a_million(folder)
    print("all checks passed")


if __name__ == "__main__":
    main()
