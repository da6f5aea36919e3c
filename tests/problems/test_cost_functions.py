"""Costs as functions of PyTorch and JAX, which check the gradients by differences of their own."""

import numpy as np
import pytest

import axode as ax

CRANK = {"theta1": 0.8, "theta1_dot": 1.0}
TORQUES = np.array([0.1, 0.2, 0.3])


@pytest.fixture(scope="module")
def costs() -> dict[str, ax.Cost]:
    """Of a batch with shared variables, and of samples."""
    model = ax.gallery.build("four_bar").derive().compile()
    samples = ax.Sampled({"tau": TORQUES}, 0.04, between="linear")
    parts = {"start": CRANK, "running": "theta2**2", "final": "theta1_dot**2", "step": 5e-3}
    return {
        "batch": ax.Cost(model, 0.1, input={"tau": TORQUES}, **parts),
        "samples": ax.Cost(model, 0.1, input=samples, **parts),
    }


def test_pytorch(costs):
    torch = pytest.importorskip("torch")

    def tensor(x):
        return torch.tensor(x, dtype=torch.float64, requires_grad=True)

    given = [tensor(TORQUES), tensor(0.5), tensor(0.8)]
    function = costs["batch"].torch_function("tau", "m2", "start.theta1")
    assert torch.autograd.gradcheck(function, given) and "TorchCost(tau, m2" in repr(function)
    assert torch.autograd.gradcheck(costs["samples"].torch_function("tau"), given[:1])
    one = [x.detach().clone().requires_grad_() for x in given]
    function(one[0], one[1], 0.8).mean().backward()
    found = ax.gradient(costs["batch"], ["tau", "m2"])
    assert one[0].grad.numpy() == pytest.approx(found["tau"] / 3)
    assert float(one[1].grad) == pytest.approx(found["m2"].mean())
    with torch.no_grad():  # nothing is differentiated
        assert function(*given).numpy() == pytest.approx(found.value)
    assert function(*(x.detach().float() for x in given)).dtype == torch.float32


def test_jax(costs):
    jax = pytest.importorskip("jax")
    from jax.test_util import check_grads

    function = costs["batch"].jax_function("tau", "m2", "start.theta1")
    assert "JaxCost(tau, m2" in repr(function)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        given = (TORQUES, 0.5, 0.8)
        check_grads(lambda *x: function(*x), given, order=1, modes=["rev"], rtol=1e-5)
        check_grads(costs["samples"].jax_function("tau"), given[:1], 1, ["rev"], rtol=1e-5)
        slope = jax.jit(jax.grad(lambda *x: function(*x).sum(), argnums=1))(*given)
    assert float(slope) == pytest.approx(ax.gradient(costs["batch"], "m2")["m2"].sum())


def test_names_are_checked(costs):
    pytest.importorskip("torch")
    with pytest.raises(ax.errors.UnknownName, match="has no variable 'm9'"):
        costs["batch"].torch_function("m9")
