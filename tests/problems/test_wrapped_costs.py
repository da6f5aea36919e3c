"""Costs of runs inside PyTorch and JAX."""

import sys
from functools import cache

import numpy as np
import pytest

import axode as ax

NAMES = ["kp", "M", "start.theta3"]
AT = {"kp": 3.0, "M": 4.0, "start.theta3": 0.3}
SAME = 1e-12


@cache
def model():
    return ax.gallery.build("wheeled_pendulum").derive().compile()


def cost(**options):
    law = ax.Law(lambda s, kp: {"M1": kp * s["theta3"] + 0.5 * s["theta3_dot"]}, kp=2.0)
    given = {"start": {"theta3": 0.2}, "input": law, "step": 0.02} | options
    running, final = (lambda s: s["theta3"] * s["theta3"]), (lambda s: s["x"])
    return ax.Cost(model(), 0.2, running=running, final=final, **given)


def sampled():
    return cost(input=ax.Sampled(np.ones((3, 2)), 0.1))


@pytest.mark.slow
def test_pytorch():
    torch = pytest.importorskip("torch", reason="`make test-all` installs it")
    f, expected = cost().torch_function(NAMES), ax.gradient(cost(), AT)

    def tensor(value):
        return torch.tensor(value, dtype=torch.float64, requires_grad=True)

    at = [tensor(value) for value in AT.values()]
    with torch.no_grad():
        assert f(*at).item() == pytest.approx(float(expected.value), rel=SAME)
    f(at[0], **dict(zip(NAMES[1:], at[1:], strict=True))).backward()
    for name, value in zip(NAMES, at, strict=True):
        assert value.grad.item() == pytest.approx(float(expected[name]), rel=SAME)
    many = [tensor([[3.0], [2.0]]), tensor([4.0, 5.0]), tensor(0.3)]
    assert f(*many).shape == (2, 2)
    assert torch.autograd.gradcheck(f, tuple(many), fast_mode=True)
    by_samples = sampled().torch_function(["M1", "M"])
    assert torch.autograd.gradcheck(
        by_samples, (tensor([0.1, 0.2, 0.3]), tensor([4.0, 5.0])), fast_mode=True
    )


def test_weights_of_pytorch_may_be_sparse():
    torch = pytest.importorskip("torch", reason="`make test-all` installs it")
    f = cost().torch_function("kp")
    at = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([0.0, 3.0], dtype=torch.float64)
    (expected,) = torch.autograd.grad(f(at), at, weights)
    (found,) = torch.autograd.grad(f(at), at, weights.to_sparse())
    assert torch.equal(found, expected) and found[1] != 0


@pytest.mark.slow
def test_transforms_of_pytorch():
    torch = pytest.importorskip("torch", reason="`make test-all` installs it")
    f, both = cost().torch_function("kp"), torch.tensor([3.0, 2.0], dtype=torch.float64)
    expected = ax.gradient(cost(), {"kp": both.numpy()})
    value, slope = (torch.from_numpy(np.array(x)) for x in (expected.value, expected["kp"]))
    vmap, grad = torch.func.vmap, torch.func.grad
    torch.testing.assert_close(vmap(f)(both), value, rtol=SAME, atol=0)
    torch.testing.assert_close(vmap(grad(f))(both), slope, rtol=SAME, atol=0)
    torch.testing.assert_close(grad(lambda k: vmap(f)(k).sum())(both), slope, rtol=SAME, atol=0)
    torch.testing.assert_close(torch.func.jacrev(f)(both), torch.diag(slope), rtol=SAME, atol=0)
    with pytest.raises(ax.NotApplicable, match="a cost has no second derivatives in PyTorch"):
        grad(grad(f))(both[0])
    kp = both[0].clone().requires_grad_()
    (first,) = torch.autograd.grad(f(kp), kp, create_graph=True)
    with pytest.raises(ax.NotApplicable, match="no second derivatives"):
        first.backward()


@pytest.mark.slow
def test_jax():
    jax = pytest.importorskip("jax", reason="`make test-all` installs it")
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    try:
        f, expected = cost().jax_function(NAMES), ax.gradient(cost(), AT)
        assert float(f(**AT)) == pytest.approx(float(expected.value), rel=SAME)
        check_grads(f, (np.array([[3.0], [2.0]]), np.array([4.0, 5.0]), 0.3), 1, modes=["rev"])
        found = jax.jit(jax.grad(lambda kp: f(kp, 4.0, 0.3)))(3.0)
        assert float(found) == pytest.approx(float(expected["kp"]), rel=SAME)
        both = jax.vmap(jax.grad(lambda kp: f(kp, 4.0, 0.3)))(np.array([3.0, 2.0]))
        assert float(both[0]) == pytest.approx(float(expected["kp"]), rel=SAME)
        by_samples = sampled().jax_function(["M1", "M"])
        check_grads(by_samples, (np.array([0.1, 0.2, 0.3]), 4.0), 1, modes=["rev"])
    finally:
        jax.config.update("jax_enable_x64", False)


def test_what_is_refused(monkeypatch):
    pytest.importorskip("torch", reason="`make test-all` installs it")
    f = cost().torch_function(NAMES)
    assert "TorchCost(kp, M, start.theta3) of Cost('wheeled_pendulum'" in repr(f)
    for given, named in (((1.0, 2.0), {}), ((1.0, 2.0), {"kp": 1.0}), ((1, 2, 3, 4), {})):
        with pytest.raises(ax.InvalidArgument, match=r"the cost takes kp, M, start\.theta3, each"):
            f(*given, **named)
    with pytest.raises(ax.UnknownName, match="kd"):
        cost().torch_function("kd")
    with pytest.raises(ax.InvalidArgument, match="kp: expected numbers, got 'fast'"):
        f("fast", 2.0, 3.0)
    with pytest.raises(ax.InvalidArgument, match=r"M: expected numbers, got .*real"):
        f(1.0, np.array(2.0 + 1j), 3.0)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ax.NotApplicable, match="tensors need PyTorch"):
        f(1.0, 2.0, 3.0)
