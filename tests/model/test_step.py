"""One step as a function of a model: that of runs, in batches, differentiated, everywhere."""

from functools import cache

import numpy as np
import pytest

import axode as ax
from emulated_gpu import install

H = 0.01
ROUNDING = 1e-13
CENTRAL = 1e-7  # error of central differences with a step of 1e-6
MACHINES = ("wheeled_pendulum", "four_bar", "mecanum_platform")


@cache
def machine(name):
    return ax.gallery.build(name).derive().compile()


def states(model, count):
    """States that keep the constraints, and inputs."""
    rng = np.random.default_rng(5)
    nu = 0.3 * rng.normal(size=(count, len(model.independent)))
    run = ax.simulate(model, 0.1, start=(model.home, nu), save_every=0.05)
    return run.final.q, run.final.nu, 0.1 * rng.normal(size=(count, len(model.inputs)))


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_the_step_of_runs(name):
    model = machine(name)
    q, nu, u = (x[0] for x in states(model, 1))
    stepper = model.stepper(H)
    stepper.reset((q, nu))
    for _ in range(3):
        stepper.step(u)
        q, nu = model.step(q, nu, u, H)
    np.testing.assert_allclose(q, stepper.q, atol=ROUNDING)
    np.testing.assert_allclose(nu, stepper.nu, atol=ROUNDING)
    assert np.abs(model.residual(q)).max(initial=0.0) < 1e-9


def limited_motor():
    """A wheel on a motor of at most 2 N m."""
    bot = ax.Mechanism("rig")
    wheel = bot.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("axle", ax.Revolute("y"), parent=bot.ground, child=wheel)
    bot.add_motor("motor", "axle", limit=2.0)
    return bot.derive().compile()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_named(bad):
    model = limited_motor()
    one, two = np.zeros(1), np.array([[0.0], [bad]])
    for wrong, given in (
        (r"u\[1, 0\]", (one, one, two, H)),
        (r"q\[1, 0\]", (two, one, one, H)),
        ("axle", ({"axle": bad}, one, one, H)),
        ("h is", (one, one, one, bad)),
    ):
        with pytest.raises(ax.errors.InvalidArgument, match=f"step: {wrong}.* not finite"):
            model.step(*given)


@pytest.mark.slow
def test_functions_of_torch_hand_nan_on():
    """A motor with a limit would take an input of NaN for one beyond it."""
    torch = pytest.importorskip("torch")
    q, nu, u = (torch.tensor([x]) for x in (0.0, 0.0, np.nan))
    assert limited_motor().torch_function("step")(q, nu, u, H).isnan().all()


def test_batches_names_and_lengths_broadcast():
    model = machine("wheeled_pendulum")
    q, nu, u = states(model, 4)
    lengths = np.array([0.0, 0.001, 0.01, -0.01])
    made = model.step(q, nu, u, lengths)
    assert made[0].shape == q.shape and made[1].shape == nu.shape
    for k, h in enumerate(lengths):
        for one, several in zip(model.step(q[k], nu[k], u[k], h), made, strict=True):
            np.testing.assert_allclose(several[k], one, atol=ROUNDING)
    np.testing.assert_array_equal(made[0][0], q[0])
    several = model.step(q[0], nu[0], None, lengths)
    assert several[0].shape == q.shape
    named = model.step({"theta3": 0.1}, {"theta3_dot": 0.2}, None, H)
    assert named[0][model.coordinates.index("theta3")] > 0.1
    state = ax.assemble(model, {"theta3": 0.1})
    np.testing.assert_array_equal(
        model.step(state, None, None, H)[1], model.step(state.q, state.nu, None, H)[1]
    )


def test_limits_of_motors_hold_and_prescribed_time_counts():
    arm = ax.Mechanism("arm", gravity=(0, 0, 0))
    link = arm.add_body("link", mass=1.0, inertia=(1.0, 1.0, 1.0))
    arm.add_joint("pin", ax.Revolute("z"), parent=arm.ground, child=link)
    arm.add_motor("drive", "pin", limit=2.0)
    model = arm.derive().compile()
    np.testing.assert_allclose(model.step([0.0], [0.0], [5.0], 0.5)[1], [1.0], atol=ROUNDING)
    cart = ax.Mechanism("cart")
    body = cart.add_body("body", mass=1.0, inertia=ax.Inertia.point())
    rod = cart.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    cart.add_joint("rail", ax.Prismatic("x"), parent=cart.ground, child=body)
    cart.add_joint("pin", ax.Revolute("y"), parent=body, child=rod)
    cart.prescribe("rail", lambda t: 0.1 * np.sin(3 * t))
    model = cart.derive().compile()
    start = ax.assemble(model, {"pin": 0.2}, t=0.4)
    run = ax.simulate(model, H, start=start, t0=0.4, method="rk4", step=H)
    q, nu = model.step(start.q, start.nu, None, H, t=0.4)
    np.testing.assert_allclose(q, run.final.q, atol=ROUNDING)
    np.testing.assert_allclose(nu, run.final.nu, atol=ROUNDING)


@pytest.mark.parametrize("name", MACHINES[:2])
def test_derivatives_are_those_of_differences(name):
    model = machine(name)
    q, nu, u = (x[0] for x in states(model, 1))
    given, rng = {"q": q, "nu": nu, "u": u, "h": np.array(H)}, np.random.default_rng(3)
    weights = rng.normal(size=q.size + nu.size)
    found = model.vjp("step", weights, *given.values())
    assert np.shape(found["h"]) == ()
    for name_, value in given.items():
        along = rng.normal(size=value.shape)
        shifted = (given | {name_: value + d * along} for d in (1e-6, -1e-6))
        ends = [np.concatenate(model.step(**arguments)) for arguments in shifted]
        slope = (ends[0] - ends[1]) / 2e-6
        change = model.jvp("step", {name_: along}, *given.values())
        np.testing.assert_allclose(change, slope, atol=CENTRAL * max(1.0, np.abs(slope).max()))
        assert np.sum(found[name_] * along) == pytest.approx(weights @ change, rel=1e-9, abs=1e-12)
    assert model.jacobian("step", "h", *given.values()).shape == (q.size + nu.size, 1)


def test_casadi_has_the_same_function():
    model = machine("four_bar")
    function = model.equations.casadi_function("step")
    q, nu, u = (x[0] for x in states(model, 1))
    made = np.array(function(q=q, nu=nu, u=u, h=H)["step"]).ravel()
    np.testing.assert_allclose(made, np.concatenate(model.step(q, nu, u, H)), atol=ROUNDING)
    assert np.isnan(np.array(function(q=q, nu=nu)["step"])).any()  # the length has no usual value


@pytest.mark.slow
def test_torch_differentiates_through_steps():
    torch = pytest.importorskip("torch")
    model = machine("four_bar")
    step, n = model.torch_function("step"), len(model.coordinates)
    q, nu, u = (torch.tensor(x, requires_grad=True) for x in states(model, 2))
    h = torch.tensor([H, 2 * H], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(step, (q, nu, u, h), atol=1e-6)

    def cost(u):
        x = torch.cat([q, nu], dim=-1)
        for _ in range(3):
            x = step(x[..., :n], x[..., n:], u, H)
        return (x**2).sum()

    torch.autograd.gradcheck(cost, (u,), atol=1e-6)
    with pytest.raises(ax.InvalidArgument, match="length of the step"):
        step(q, nu, u)


@pytest.mark.slow
def test_jax_scans_over_steps():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    model = machine("wheeled_pendulum")
    step, n = model.jax_function("step"), len(model.coordinates)
    q, nu, u = (jax.numpy.asarray(x[0]) for x in states(model, 1))

    def end(u):
        def advance(x, _):
            return step(x[:n], x[n:], u, H), None

        return jax.lax.scan(advance, jax.numpy.concatenate([q, nu]), None, length=5)[0]

    x = np.concatenate([q, nu])
    for _ in range(5):
        x = np.concatenate(model.step(x[:n], x[n:], np.array(u), H))
    np.testing.assert_allclose(jax.jit(end)(u), x, atol=1e-12)
    slopes = jax.jit(jax.jacrev(end))(u)
    for k in range(len(u)):
        change = np.eye(len(u))[k] * 1e-6
        slope = (np.array(end(u + change)) - np.array(end(u - change))) / 2e-6
        np.testing.assert_allclose(slopes[:, k], slope, atol=CENTRAL)


def test_gpus_take_it(monkeypatch):
    gpu = install(monkeypatch)
    model = machine("four_bar")
    other = ax.gallery.build("four_bar").derive().compile(target="cuda")
    q, nu, u = states(model, 3)
    expected = model.step(q, nu, u, H)
    launches = gpu.launches if hasattr(gpu, "launches") else None
    for one, two in zip(other.step(q, nu, u, H), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), two, atol=1e-12)
    assert launches is None or gpu.launches


def test_what_cannot_step_says_so(tmp_path):
    model = machine("four_bar")
    q, nu, u = (x[0] for x in states(model, 1))
    with pytest.raises(ax.InvalidArgument, match="length of the step is needed"):
        model.jvp("step", {"q": q}, q, nu, u)
    with pytest.raises(ax.InvalidArgument, match=r"^h"):
        model.step(q, nu, u, "long")
    model.save(tmp_path / "bare.axm")
    with pytest.raises(
        ax.NotApplicable, match=r'model\.save\(path, \[\*model\.functions, "step"\]'
    ):
        ax.load_model(tmp_path / "bare.axm").step(q, nu, u, H)
    model.save(tmp_path / "whole.axm", [*model.functions, "step"])
    for one, two in zip(
        ax.load_model(tmp_path / "whole.axm").step(q, nu, u, H),
        model.step(q, nu, u, H),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, atol=ROUNDING)
    with pytest.raises(ax.InvalidArgument, match="step of its own"):
        model.export(tmp_path / "project", ["step"])
    assert "four_bar_step" in (model.export(tmp_path / "four_bar.c", ["step"])[1]).read_text()
