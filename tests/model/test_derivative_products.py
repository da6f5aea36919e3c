"""Derivatives of a model's functions: against multiprecision, against each other, as users call."""

from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.derivatives import jvp_tape, second_order_tape, vjp_tape
from axode.model.model_parts import facts_of, function_tape
from emulated_gpu import install
from multiprecision import change, evaluate
from near_mechanisms import mechanism_of
from variants import slow, some

ROUNDING = 1e-10  # relative to the largest derivative
GPU_ROUNDING = 1e-12
SKIPPED = ("inverse_solution",)  # the mean of what others give


@cache
def model(name="wheeled_pendulum", target="interpreter"):
    return ax.gallery.build(name).derive().compile(target)


def state(m, seed=0, spread=0.1):
    """A configuration near home, not closed: derivatives by q take coordinates as free."""
    rng = np.random.default_rng(seed)
    known = {"q": m.home + spread * rng.normal(size=m.home.size), "t": rng.normal(size=1)}
    known |= {name: rng.normal(size=len(m.independent)) for name in ("nu", "nu_dot")}
    known |= {"u": rng.normal(size=len(m.inputs)), "p": m.parameter_vector()}
    return known | {"weights": rng.uniform(0.5, 2.0, facts_of(m).motors)}


def call_of(source, known):
    """Arguments by position, and options, for a function's arguments."""
    names = [name for name in source.arguments if name not in ("t", "p")]
    options = {"t": known["t"][0]} if "t" in source.arguments else {}
    return [known[name] for name in names], options


def check_first_order(m, function, tolerance, seed=0):
    """jvp against multiprecision along a random direction of everything; vjp against jvp."""
    known, rng = state(m, seed), np.random.default_rng(seed + 1)
    source = m.products(function)
    if not source.arguments:
        return
    arrays = [known[name] for name in source.arguments]
    moves = {name: rng.normal(size=known[name].size) for name in source.arguments}
    given, options = call_of(source, known)
    expected = change(source.tape, arrays, list(moves.values())).reshape(source.shape)
    directions = moves | ({"t": moves["t"][0]} if "t" in moves else {})
    found = m.jvp(function, directions, *given, **options)
    weights = rng.normal(size=source.shape)
    if function == "contact_forces":
        unknown = tuple(np.array(facts_of(m).unknown_forces, dtype=int).reshape(-1, 2).T)
        assert np.isnan(found[unknown]).all()
        found[unknown] = expected[unknown] = weights[unknown] = 0.0
    gradient = m.vjp(function, weights, *given, **options)
    largest = max([1.0, *(np.abs(g).max(initial=0.0) for g in gradient.values())])
    largest = max(largest, np.abs(expected).max(initial=0.0))
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * largest, function
    total = sum(np.sum(gradient[name] * moves[name]) for name in gradient)
    assert abs(total - np.sum(weights * expected)) <= tolerance * largest * 10, function


@pytest.mark.parametrize("shape", slow(["tree", "loop", "vehicle"], "loop"))
def test_every_function_against_multiprecision(shape):
    m = mechanism_of("generic", shape, 1).derive().compile("interpreter")
    for function in m.functions:
        if function not in SKIPPED:
            check_first_order(m, function, ROUNDING)


@pytest.mark.parametrize("shape", ["tree", "loop", "vehicle"])
@pytest.mark.parametrize("seed", some(range(1, 24), *range(4, 24)))
def test_nearly_degenerate_mechanisms(shape, seed):
    """A derivative has as many digits as the function itself has there, but for two."""
    m = mechanism_of("nearly", shape, seed).derive().compile("interpreter")
    source = m.products("forward_dynamics")
    known, rng = state(m, seed), np.random.default_rng(seed)
    arrays = [known[name] for name in source.arguments]
    moves = [rng.normal(size=array.size) for array in arrays]
    value = np.array(evaluate(source.tape, arrays), dtype=float)
    lost = np.abs(source.tape.evaluate(*arrays)[0] - value).max() / np.abs(value).max()
    expected = change(source.tape, arrays, moves)
    found = jvp_tape(source.tape, source.arguments).evaluate(*arrays, *moves)[0]
    assert np.abs(found - expected).max() <= 100 * max(lost, 1e-15) * np.abs(expected).max()
    weights = rng.normal(size=expected.size)
    gradient = vjp_tape(source.tape, source.arguments).evaluate(*arrays, weights)[0]
    parts = gradient * np.concatenate(moves)
    assert abs(parts.sum() - weights @ expected) <= 100 * max(lost, 1e-15) * np.abs(parts).sum()


@pytest.mark.parametrize("name", ["rolling_disk", "four_bar", "mecanum_rover"])
def test_second_order_against_multiprecision(name):
    """The change of the gradient, and the whole Hessian, of forward dynamics by everything."""
    m, rng = model(name), np.random.default_rng(4)
    known, function = state(m), "forward_dynamics"
    source = m.products(function)
    of = source.arguments
    arrays = [known[argument] for argument in of]
    weights = rng.normal(size=source.shape)
    moves = {argument: rng.normal(size=known[argument].size) for argument in of}
    still = np.zeros(weights.size)
    expected = change(vjp_tape(source.tape, of), [*arrays, weights], [*moves.values(), still])
    given, options = call_of(source, known)
    found = m.hessian_product(function, weights, moves, *given, **options)
    joined, scale = np.concatenate([*found.values()]), np.abs(expected).max()
    assert np.abs(joined - expected).max() <= ROUNDING * scale
    hessian = m.hessian(function, weights, *given, **options)
    assert (hessian == hessian.T).all()
    along = hessian @ np.concatenate([*moves.values()])
    assert np.abs(along - expected).max() <= ROUNDING * scale
    both = second_order_tape(source.tape, of, of, jvp=True)
    first, _ = np.split(both.evaluate(*arrays, weights, *moves.values())[0], [weights.size])
    assert first == pytest.approx(m.jvp(function, moves, *given, **options), rel=1e-9)


@pytest.mark.parametrize("shape", ["tree", "loop", "vehicle"])
@pytest.mark.parametrize("kind", some(["nearly", "generic"], "generic"))
@pytest.mark.parametrize("seed", some(range(1, 13), *range(2, 13)))
def test_second_order_of_random_mechanisms(shape, kind, seed):
    """It has as many digits as the function itself has there, but for four."""
    m = mechanism_of(kind, shape, seed).derive().compile("interpreter")
    source = m.products("forward_dynamics")
    known, rng, of = state(m, seed), np.random.default_rng(seed), source.arguments
    arrays = [known[name] for name in of]
    moves = [rng.normal(size=array.size) for array in arrays]
    value = np.array(evaluate(source.tape, arrays), dtype=float)
    lost = np.abs(source.tape.evaluate(*arrays)[0] - value).max() / np.abs(value).max()
    weights = rng.normal(size=value.size)
    still = np.zeros(weights.size)
    expected = change(vjp_tape(source.tape, of), [*arrays, weights], [*moves, still])
    product = second_order_tape(source.tape, of, of, jvp=False)
    found = product.evaluate(*arrays, weights, *moves)[0]
    largest = max(np.abs(expected).max(), np.abs(value).max())
    assert np.abs(found - expected).max() <= 1e4 * max(lost, 1e-15) * largest


def test_a_hessian_takes_fewer_directions_than_columns():
    """Forward dynamics is linear in the inputs, and cyclic coordinates do not count."""
    source = model("seven_axis_arm").products("forward_dynamics")
    hessian = source.hessian(("q", "nu", "u")).call
    assert hessian.directions == 12  # of 21: not u, not the first angle, not the last speed's own
    flat = model("seven_axis_arm").products("input_force").hessian(("u",))
    assert flat.call.directions == 0
    assert (
        not model("seven_axis_arm").hessian("input_force", np.ones(7), np.ones(7), by=["u"]).any()
    )


def test_columns_without_a_common_row_share_a_direction():
    """Pendulums that have nothing to do with each other."""
    bot = ax.Mechanism("pendulums")
    for k in range(3):
        body = bot.add_body(f"body{k}", mass=1.0 + k, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
        bot.add_joint(f"joint{k}", ax.Revolute("y"), parent=bot.ground, child=body)
    m = bot.derive().compile("interpreter")
    assert m.products("forward_dynamics").hessian(("q", "nu")).call.directions == 1
    q = np.array([0.3, 0.5, 0.7])
    found = m.hessian("forward_dynamics", np.ones(3), q, by=("q", "nu"))
    expected = -m.forward_dynamics(q)  # sines
    assert found == pytest.approx(np.diag([*expected, 0.0, 0.0, 0.0]))


@pytest.mark.parametrize("name", ["rolling_disk", "four_bar"])
def test_tangents(name):
    """First order: T^T times the gradient. Second order: along motions of constant rates."""
    m, function = model(name), "forward_dynamics"
    known, rng = state(m, spread=0.0), np.random.default_rng(5)
    q, nu, u = (known[argument] for argument in ("q", "nu", "u"))
    weights, xi = rng.normal(size=nu.size), rng.normal(size=len(m.tangents))
    gradient = m.vjp(function, weights, q, nu, u, by=["q", "tangents"])
    T = m.tangent_map(q)
    assert gradient["tangents"] == pytest.approx(gradient["q"] @ T, rel=1e-12, abs=1e-12)
    by_name = dict(zip(m.tangents, xi, strict=True))
    assert m.jvp(function, {"tangents": by_name}, q, nu, u) == pytest.approx(
        m.jvp(function, {"q": T @ xi}, q, nu, u), rel=1e-12, abs=1e-12
    )

    def moved(s, steps=8):
        x, h = q, s / steps
        for _ in range(steps):
            k1 = m.tangent_map(x) @ xi
            k2 = m.tangent_map(x + h / 2 * k1) @ xi
            k3 = m.tangent_map(x + h / 2 * k2) @ xi
            k4 = m.tangent_map(x + h * k3) @ xi
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return weights @ m.forward_dynamics(x, nu, u)

    h = 1e-3
    places = zip((-1, 16, -30, 16, -1), (-2, -1, 0, 1, 2), strict=True)
    expected = sum(c * moved(k * h) for c, k in places) / (12 * h * h)
    of = ["tangents", "nu", "u"]
    hessian = m.hessian(function, weights, q, nu, u, by=of)
    assert (hessian == hessian.T).all()
    assert xi @ hessian[: xi.size, : xi.size] @ xi == pytest.approx(expected, rel=1e-5)
    product = m.hessian_product(function, weights, {"tangents": xi}, q, nu, u, by=of)
    joined = np.concatenate([*product.values()])
    assert joined == pytest.approx(hessian[:, : xi.size] @ xi, rel=1e-10, abs=1e-10)


# as users call ------------------------------------------------------------------------------------


def test_batches_names_states_and_options():
    m = model(target="cpu")
    rng, known = np.random.default_rng(1), state(m)
    q, nu, u = (known[name] for name in ("q", "nu", "u"))
    weights = rng.normal(size=(4, 3))
    many = m.vjp("forward_dynamics", weights, q, np.stack([nu] * 4), u, threads=2)
    assert {name: g.shape for name, g in many.items()} == {
        "q": (4, 6),
        "nu": (4, 3),
        "u": (4, 2),
        "p": (4, 9),
    }
    one = m.vjp("forward_dynamics", weights[2], q, nu, u, by=["nu"])
    assert list(one) == ["nu"]
    assert one["nu"] == pytest.approx(many["nu"][2], rel=1e-12)
    by_order = m.jvp("forward_dynamics", {"q": np.eye(6)[2]}, q, nu, u)
    by_name = m.jvp("forward_dynamics", {"q": {m.coordinates[2]: 1.0}}, q, nu, u)
    assert (by_order == by_name).all()
    heavier = m.jvp("forward_dynamics", {"p": {"M": [0.0, 1.0]}}, q, nu, u)
    assert not heavier[0].any() and heavier[1].any()
    there = ax.assemble(m, {"theta3": 0.3})
    q0, nu0 = there.vectors(m)
    assert (m.jvp("energy", {"nu": nu}, there) == m.jvp("energy", {"nu": nu}, q0, nu0)).all()
    light = m.vjp("energy", [0.0, 1.0], q, parameters={"M": 0.0}, by=["q"])["q"]
    assert np.abs(light).max() < np.abs(m.vjp("energy", [0.0, 1.0], q, by=["q"])["q"]).max()
    assert m.hessian("energy", [1.0, 0.0], np.stack([q] * 3), nu, by=["nu"]).shape == (3, 3, 3)
    out = np.empty(3)
    assert m.jvp("forward_dynamics", {"u": u}, q, nu, u, out=out) is out


def test_long_batches_of_hessians_are_computed_in_parts(monkeypatch):
    from axode.model import function_products

    m = model()
    q = np.stack([m.home] * 5) + 0.1 * np.arange(5)[:, np.newaxis]
    whole = m.hessian("energy", [1.0, 1.0], q, [1.0, 2.0, 3.0])
    monkeypatch.setattr(function_products, "SAMPLES_AT_ONCE", 2)
    out = np.empty_like(whole)
    assert m.hessian("energy", [1.0, 1.0], q, [1.0, 2.0, 3.0], out=out) is out
    assert (out == whole).all()


def test_models_from_files(tmp_path):
    """Tapes are all that is needed."""
    m, known = model(), state(model())
    m.save(tmp_path / "x.axm")
    loaded = ax.load_model(tmp_path / "x.axm")
    q, nu, u = (known[name] for name in ("q", "nu", "u"))
    weights = [1.0, 2.0, 3.0]
    expected = m.vjp("forward_dynamics", weights, q, nu, u)
    for name, gradient in loaded.vjp("forward_dynamics", weights, q, nu, u).items():
        assert gradient == pytest.approx(expected[name], rel=1e-9)
    assert loaded.hessian("energy", [1.0, 1.0], q, nu) == pytest.approx(
        m.hessian("energy", [1.0, 1.0], q, nu), rel=1e-9
    )


def test_code_for_other_programs(tmp_path):
    """C, kernels and projects take products of functions by name; files hold the functions."""
    m = model()
    vjp = function_tape(m, "energy_vjp")
    assert [port.name for port in vjp.outputs] == ["q_gradient", "nu_gradient", "p_gradient"]
    known = state(m)
    arrays = [known[name] for name in ("q", "nu", "p")]
    found = vjp.evaluate(*arrays, [1.0, 2.0])
    expected = m.vjp("energy", [1.0, 2.0], *arrays[:2])
    for one, other in zip(found, expected.values(), strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    assert "const double *energy_weight, double *q_gradient" in m.c_code("energy_vjp").header
    assert [port.name for port in function_tape(m, "energy_jvp").inputs[3:]] == [
        "q_direction",
        "nu_direction",
        "p_direction",
    ]
    m.export(f"{tmp_path}/project/", ["energy_vjp"])
    assert "energy_vjp" in (tmp_path / "project" / "include" / "project.h").read_text()
    with pytest.raises(ax.UnknownName, match="energy_vjp"):
        m.save(tmp_path / "x.axm", ["energy_vjp"])


def test_models_on_a_gpu(monkeypatch):
    gpu = install(monkeypatch)
    m, there = model(target="cpu"), model().equations.compile("cuda")
    known = state(m)
    q, nu, u = (known[name] for name in ("q", "nu", "u"))
    q = np.stack([q] * 3)
    weights = np.random.default_rng(0).normal(size=(3, 3))
    expected = m.vjp("forward_dynamics", weights, q, nu, u)
    for name, gradient in there.vjp("forward_dynamics", weights, q, nu, u).items():
        np.testing.assert_allclose(gradient, expected[name], rtol=GPU_ROUNDING, atol=1e-13)
    stays = there.vjp("forward_dynamics", gpu.asarray(weights), gpu.asarray(q), gpu.asarray(nu))
    assert isinstance(stays["q"], gpu.ndarray)
    np.testing.assert_allclose(
        there.hessian("energy", [1.0, 1.0], q, nu),
        m.hessian("energy", [1.0, 1.0], q, nu),
        atol=1e-12,
    )


def test_what_is_refused():
    m = model("differential_drive")
    q = m.home
    with pytest.raises(ax.UnknownName, match="function 'energy' has no argument 'u'"):
        m.vjp("energy", [1.0, 0.0], q, by=["u"])
    with pytest.raises(ax.UnknownName, match="tangents"):
        m.jvp("energy", {"v": [1.0]}, q)
    with pytest.raises(ax.InvalidArgument, match="by takes names of arguments of energy, q, nu"):
        m.hessian("energy", [1.0, 0.0], q, by=[])
    with pytest.raises(ax.InvalidArgument, match=r"'q': a change of . numbers is needed"):
        m.jvp("energy", {"q": [1.0]}, q)
    with pytest.raises(ax.InvalidArgument, match=r"weights of energy have shape \(3,\), expected"):
        m.vjp("energy", [1.0, 0.0, 1.0], q)
    with pytest.raises(
        ax.InvalidArgument, match="energy takes q, nu, by position; got 3 arguments"
    ):
        m.vjp("energy", [1.0, 0.0], q, q, q)
    with pytest.raises(ax.InvalidArgument, match="its gradients are views of one new array"):
        m.vjp("energy", [1.0, 0.0], q, out=q)
    with pytest.raises(
        ax.InvalidArgument, match="not one of the entries of q that can be named here: x"
    ):
        m.jvp("energy", {"q": {"v": 1.0}}, q)
    axle = np.zeros((2, 3))
    axle[0, 1] = 1.0
    with pytest.raises(ax.InvalidArgument, match=r"lateral force on .* is indeterminate, so that"):
        m.vjp("contact_forces", axle, q)
