"""Functions of models inside PyTorch and JAX: their own checks of derivatives, batches, errors."""

import sys
import warnings
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import axode as ax
from axode.model.wrappers.array_function import ArrayFunction
from emulated_gpu import install
from variants import slow

SAME = 1e-12


@cache
def model(name="wheeled_pendulum"):
    return ax.gallery.build(name).derive().compile("interpreter")


def state(m, seed=0):
    rng = np.random.default_rng(seed)
    q = m.home + 0.1 * rng.normal(size=m.home.size)
    nu, u = rng.normal(size=len(m.independent)), rng.normal(size=len(m.inputs))
    return q, nu, u, m.parameter_vector()


def rheonomic():
    bot = ax.Mechanism("shaken")
    cart = bot.add_body("cart", mass=1.0, inertia=(1, 1, 1))
    bob = bot.add_body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("hinge", ax.Revolute("y"), parent=cart, child=bob)
    bot.prescribe("slide", lambda t: 0.1 * t * t * t)
    return bot.derive().compile("interpreter")


@pytest.fixture
def jax():
    made = pytest.importorskip("jax", reason="`make test-all` installs it")
    made.config.update("jax_enable_x64", True)
    yield made
    made.config.update("jax_enable_x64", False)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="`make test-all` installs it")


def tensors(torch, *arrays):
    return [torch.from_numpy(np.array(a)).requires_grad_(True) for a in arrays]


# PyTorch ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", slow(["wheeled_pendulum", "four_bar"], "wheeled_pendulum"))
def test_pytorch_checks_first_and_second_derivatives(torch, name):
    """The second ones by finite differences, for which a four-bar changes too steeply."""
    torch.manual_seed(0)
    m = model(name)
    f = m.torch_function("forward_dynamics")
    q, nu, u, p = tensors(torch, *state(m))
    many = torch.stack([q.detach(), q.detach() + 0.1]).requires_grad_(True)

    def call(q, nu, u, p):
        return f(q, nu, u, parameters=p)

    assert torch.autograd.gradcheck(call, (q, nu, u, p), check_forward_ad=True)
    assert torch.autograd.gradcheck(call, (many, nu, u, p))
    if name == "wheeled_pendulum":
        assert torch.autograd.gradgradcheck(call, (many, nu, u, p))


@pytest.mark.slow
def test_functions_of_pytorch_see_through(torch):
    from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

    m = model()
    f = m.torch_function("forward_dynamics")
    q, nu, *_ = state(m)
    x, y = torch.from_numpy(q), torch.from_numpy(nu)
    expected = m.jacobian("forward_dynamics", "q", q, nu)
    np.testing.assert_allclose(jacrev(lambda z: f(z, y))(x), expected, atol=SAME)
    _, change = jvp(lambda z: f(x, z), (y,), (y,))
    np.testing.assert_allclose(change, m.jvp("forward_dynamics", {"nu": nu}, q, nu), atol=SAME)

    def total(q, nu):
        return f(q, nu).sum()

    batch = torch.stack([x, 2 * x])
    each = vmap(grad(total), in_dims=(0, None))(batch, y)
    np.testing.assert_allclose(each[1], grad(total)(2 * x, y), atol=SAME)
    second = m.hessian("forward_dynamics", np.ones(3), q, nu, by=["q"])
    ways = product((jacfwd, jacrev), repeat=2)
    for way in (hessian, *(lambda f, a=a, b=b: a(b(f)) for a, b in ways)):
        np.testing.assert_allclose(way(total)(x, y), second, atol=SAME)
    with pytest.raises(ax.NotApplicable, match="has no third derivatives in PyTorch"):
        jacrev(hessian(total))(x, y)
    with pytest.raises(ax.NotApplicable, match="has no third derivatives in PyTorch"):
        hessian(lambda z: jacrev(total)(z, y).sum())(x)


def test_tensors_are_not_copied_and_keep_their_type(torch, monkeypatch):
    m = model()
    f = m.torch_function("energy")
    q, nu, *_ = (torch.from_numpy(x) for x in state(m))
    seen = []
    call = f.source.call
    monkeypatch.setattr(f.source, "call", lambda *a: seen.extend(a[2]) or call(*a))
    assert f(q, nu).dtype == torch.float64
    assert np.shares_memory(seen[0], q.numpy()) and np.shares_memory(seen[1], nu.numpy())
    assert f(q.float(), nu.float()).dtype == torch.float32
    assert f(q.float(), nu).dtype == torch.float64
    assert f([0.0] * 6).dtype == torch.float64


def test_parameters_and_states_by_name(torch):
    m = model()
    f = m.torch_function("forward_dynamics")
    mass, lean = tensors(torch, 3.0, [0.1, 0.2])
    f({"theta3": lean}, parameters={"M": mass}).sum().backward()
    at = {"theta3": [0.1, 0.2]}
    heavier = m.jvp("forward_dynamics", {"p": {"M": 1.0}}, at, parameters={"M": 3.0})
    assert float(mass.grad) == pytest.approx(heavier.sum(), rel=SAME)
    farther = m.jvp("forward_dynamics", {"q": {"theta3": 1.0}}, at, parameters={"M": 3.0})
    assert lean.grad.tolist() == pytest.approx(farther.sum(axis=-1).tolist(), rel=SAME)


def test_time_and_functions_of_other_shapes(torch):
    m = rheonomic()
    f = m.torch_function("forward_dynamics")
    (t,) = tensors(torch, [1.0, 2.0])
    q = torch.tensor([0.1, 0.2], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda t: f(q, t=t), (t,))
    poses = m.torch_function("poses")
    assert poses(torch.zeros(3, 2)).shape == (3, 2, 4, 4)
    q = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(poses, (q,))


def test_forces_that_statics_cannot_tell_are_nan(torch):
    m = model("differential_drive")
    forces = m.torch_function("contact_forces")
    found = forces(torch.from_numpy(m.home)).numpy()
    expected = m.contact_forces(m.home)
    np.testing.assert_allclose(found, expected, atol=SAME)
    assert np.isnan(found).any()


def test_tensors_on_a_gpu(torch, monkeypatch):
    """On an emulated one: kernels read and write tensors where they are, on PyTorch's stream."""
    gpu = install(monkeypatch)
    there = model().equations.compile("cuda").torch_function("forward_dynamics")
    here = model().torch_function("forward_dynamics")
    q, nu, u, p = state(model())
    q = np.stack([q, 2 * q])
    expected = tensors(torch, q, nu, u, p)
    here(*expected[:3], parameters=expected[3]).square().sum().backward()
    given = tensors(torch, q, nu, u, p)
    stream = SimpleNamespace(cuda_stream=11)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: True))
    with pytest.raises(ax.InvalidArgument, match="the model is for the CPU; use compile"):
        here(*given[:3])
    there(*given[:3], parameters=given[3]).square().sum().backward()
    monkeypatch.undo()
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one.grad, other.grad, atol=SAME)
    assert [launch.stream for launch in gpu.launches] == [11, 11]
    assert not gpu.copies


# JAX ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_jax_checks_first_and_second_derivatives(jax):
    from jax.test_util import check_grads

    m = model()
    f = m.jax_function("forward_dynamics")
    q, nu, u, p = (jax.numpy.asarray(x) for x in state(m))
    many = jax.numpy.stack([q, 1.1 * q])

    def call(q, nu, u, p):
        return f(q, nu, u, parameters=p)

    check_grads(f, (many, nu, u), order=2)
    check_grads(jax.jit(call), (q, nu, u, p), order=1)


@pytest.mark.slow
def test_transformations_of_jax(jax):
    m = model()
    f = m.jax_function("forward_dynamics")
    q, nu, *_ = state(m)

    def total(q, nu):
        return f(q, nu).sum()

    expected = m.vjp("forward_dynamics", np.ones(3), np.stack([q, 2 * q]), nu, by=["q"])["q"]
    each = jax.jit(jax.vmap(jax.grad(total), in_axes=(0, None)))(np.stack([q, 2 * q]), nu)
    np.testing.assert_allclose(each, expected, atol=SAME)
    second = m.hessian("forward_dynamics", np.ones(3), q, nu, by=["q"])
    for way in (jax.hessian, lambda f: jax.jacrev(jax.jacfwd(f))):  # check_grads has the others
        np.testing.assert_allclose(way(total)(q, nu), second, atol=SAME)
    with pytest.raises(ax.NotApplicable, match="has no third derivatives in JAX"):
        jax.jacrev(jax.hessian(total))(q, nu)
    by_mass = jax.grad(lambda mass: f(q, nu, parameters={"M": mass}).sum())(3.0)
    heavier = m.jvp("forward_dynamics", {"p": {"M": 1.0}}, q, nu, parameters={"M": 3.0})
    assert float(by_mass) == pytest.approx(heavier.sum(), rel=SAME)
    later = rheonomic()
    moving = later.jax_function("forward_dynamics")
    at = np.array([0.1, 0.2])
    by_time = jax.grad(lambda t: moving(at, t=t).sum())(1.5)
    assert float(by_time) == pytest.approx(later.jvp("forward_dynamics", {"t": 1.0}, at, t=1.5)[0])
    drive = model("differential_drive")
    forces = drive.jax_function("contact_forces")(drive.home)
    np.testing.assert_allclose(forces, drive.contact_forces(drive.home), atol=SAME)


def test_jax_in_single_precision(jax):
    jax.config.update("jax_enable_x64", False)
    m = model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = m.jax_function("energy")(jax.numpy.asarray(state(m)[0], dtype="float32"))
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, m.energy(state(m)[0]), rtol=1e-5)


def test_programs_of_jax_on_a_gpu(jax, monkeypatch):
    """On an emulated one: kernels read and write the memory of JAX."""
    from axode.model.wrappers import jax_function

    gpu = install(monkeypatch)
    there = model().equations.compile("cuda").jax_function("forward_dynamics")
    monkeypatch.setattr(jax_function, "_on_cpu", jax_function._on_gpu)
    q, nu, u, p = state(model())
    many = np.stack([q, 2 * q])
    for dtype, allowed in (("float64", SAME), ("float32", 1e-5)):
        given = [jax.numpy.asarray(x, dtype=dtype) for x in (many, nu, u, p)]
        found = jax.jit(there)(*given[:3], parameters=given[3])
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found, model().forward_dynamics(many, nu, u), rtol=allowed, atol=allowed
        )
    assert [launch.runs for launch in gpu.launches] == [2, 2]


def test_errors_reach_users_of_compiled_programs(jax, monkeypatch):
    def fail(*_, **__):
        raise ax.NotApplicable("the GPU's memory is full")

    monkeypatch.setattr(ArrayFunction, "call", fail)
    m = model()
    with pytest.raises(jax.errors.JaxRuntimeError, match="NotApplicable: the GPU's memory is full"):
        jax.jit(m.jax_function("energy"))(m.home)


# what is refused ----------------------------------------------------------------------------------


def test_tensors_are_real_and_dense(torch):
    """Imaginary parts were lost; other tensors raised errors of PyTorch's own."""
    m = model()
    f = m.torch_function("energy")
    q = torch.from_numpy(m.home) + 0.1
    plain = q.clone().requires_grad_()
    negated = torch.complex(q, -q).conj().imag.detach().requires_grad_()  # a view of -(-q)
    assert negated.is_neg() and torch.equal(f(negated), f(plain))
    weights = torch.tensor([2.0, -3.0], dtype=torch.float64)
    views = torch.complex(weights, -weights).conj().imag
    (expected,) = torch.autograd.grad(f(plain), plain, weights)
    (found,) = torch.autograd.grad(f(negated), negated, views)
    assert torch.equal(found, expected) and expected.any()
    bad = [torch.complex(q, q), q.to_sparse(), q.float().to_mkldnn(), m.home + 1j, [1j] * len(q)]
    bad += [
        torch.nested.nested_tensor([q, q]),
        torch.quantize_per_tensor(q.float(), 0.1, 0, torch.quint8),
    ]
    for given in (*bad, {"theta3": torch.tensor(1j)}):
        with pytest.raises(ax.InvalidArgument, match=r"q: expected numbers, got .*(\n.*)*dense"):
            f(given)
    with pytest.raises(ax.InvalidArgument, match=r"are of torch\.float8_e4m3fn and"):
        f(q.float().to(torch.float8_e4m3fn), torch.zeros(3, dtype=torch.float64))
    with pytest.raises(ax.InvalidArgument, match="the tensors are on meta; move them to the CPU"):
        f(q.to("meta"))


def test_weights_may_be_sparse_and_directions_are_real(torch):
    m = model()
    q, nu, u, p = tensors(torch, *state(m))
    f = m.torch_function("forward_dynamics")
    weights = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64)
    expected = torch.autograd.grad(f(q, nu, u, parameters=p), [q, p], weights)
    found = torch.autograd.grad(f(q, nu, u, parameters=p), [q, p], weights.to_sparse())
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    along = torch.ones_like(q) * (1 + 1j)
    with pytest.raises(ax.InvalidArgument, match="forward_dynamics: a complex direction"):
        torch.func.jvp(lambda q: f(q, nu, u, parameters=p), (q,), (along,))


@pytest.mark.slow
def test_compiled_programs_call_the_model(torch):
    """`torch.compile` read NumPy's functions as its own, and the result was zero."""
    f, (q, nu, u, _) = model().torch_function("forward_dynamics"), state(model())
    compiled = torch.compile(lambda x: 2 * f(q, x, u), backend="eager")
    for k in (1, 3):
        nu_k = torch.from_numpy(k * nu)
        assert torch.equal(compiled(nu_k), 2 * f(q, nu_k, u)) and compiled(nu_k).any()


def test_arrays_of_any_layout(torch):
    f, (q, nu, u, _) = model().torch_function("forward_dynamics"), state(model())
    expected = f(q, nu, u)
    still = nu.copy()
    still.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for same in (nu[::-1].copy()[::-1], nu.astype(">f8"), np.stack([nu, nu], 1)[:, 0], still):
            assert torch.equal(f(q, same, u), expected)
    masked = pytest.importorskip("torch.masked", reason="`make test-all` installs it").masked_tensor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mask = masked(torch.from_numpy(nu), torch.from_numpy(nu) > 0)
        with pytest.raises(ax.InvalidArgument, match="nu: expected numbers"):
            f(q, mask, u)


def test_arrays_are_real(jax):
    """Complex numbers ended in KeyError: 18."""
    m = model()
    f = m.jax_function("energy")
    for given in (m.home + 1j, jax.numpy.asarray(m.home + 1j), jax.random.key(0), {"theta3": 1j}):
        for call in (f, jax.jit(f)) if not isinstance(given, dict) else (f,):
            with pytest.raises(ax.InvalidArgument, match="q: expected numbers, got"):
                call(given)
    with pytest.raises(
        ax.InvalidArgument, match=r"axes do not fit together: 'q' \(3,\), 'nu' \(2,"
    ):
        f(np.zeros((3, 6)), np.zeros((2, 3)))


def test_what_is_refused(torch, monkeypatch):
    m = model()
    f = m.torch_function("energy")
    q = torch.from_numpy(m.home)
    with pytest.raises(ax.InvalidArgument, match="energy takes q, nu; got 3 arguments"):
        f(q, q, q)
    for named in ({"q": q}, {"speed": q}):
        with pytest.raises(ax.InvalidArgument, match="q, nu, each once, t and parameters; got '"):
            f(q, **named)
    assert torch.equal(f(q=q), f(q))
    with pytest.raises(ax.InvalidArgument, match="q: expected numbers, got 'home'"):
        f("home")
    text = "torch traces this value and cannot see through functions of arrays; use model.torch_f"
    with pytest.raises(ax.InvalidArgument, match=text):
        m.energy(q.clone().requires_grad_())
    with pytest.raises(ax.InvalidArgument, match=text):
        m.energy(q, parameters={"M": torch.ones((), requires_grad=True)})
    with pytest.raises(ax.InvalidArgument, match=r"energy: 'q' has shape \(5,\), expected"):
        f(q[:5])
    with pytest.raises(ax.InvalidArgument, match="not one of the entries of q that can be named"):
        f({"surge": q[0]})
    with pytest.raises(ax.InvalidArgument, match="the tensors are on cpu and meta; move them"):
        f(q, q[:3].to("meta"))
    fixed = m.equations.compile("interpreter", parameters="fixed").torch_function("energy")
    with pytest.raises(ax.InvalidArgument, match="this model's parameters are fixed"):
        fixed(q, parameters={"M": 1.0})
    with pytest.raises(ax.UnknownName, match="has no function 'power'"):
        m.torch_function("power")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ax.NotApplicable, match=r"tensors need PyTorch: pip install .*\[torch\]"):
        m.torch_function("energy")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ax.NotApplicable, match=r"arrays of JAX need the package: pip install"):
        m.jax_function("energy")
