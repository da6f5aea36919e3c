"""Single calls are C functions after the first one, prepared calls from the start."""

import gc
import inspect
import pickle
import warnings
import weakref

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.model.direct_functions import PLAIN

ARGUMENTS = {"inverse_dynamics": 3, "accelerations": 3, "input_force": 2}


@pytest.fixture(scope="module", params=["seven_axis_arm", "wheeled_pendulum", "delta_robot"])
def model(request):
    return ax.gallery.build(request.param).derive().compile()


@pytest.fixture(scope="module")
def arm():
    return ax.gallery.build("seven_axis_arm").derive().compile()


def arguments(model, function, rng):
    """Arrays of a state by position."""
    method = getattr(type(model), function)
    sizes = {"q": model.home, "nu": model.independent, "nu_dot": model.independent}
    sizes["u"] = model.inputs
    names = [n for n in inspect.signature(method).parameters if n in sizes][
        : 3 if "inv" in function else 9
    ]
    arrays = {n: 0.1 * rng.normal(size=len(sizes[n])) for n in names}
    if "q" in arrays:
        arrays["q"] = model.home.copy()
    return list(arrays.values())


@pytest.mark.parametrize("function", PLAIN)
def test_every_way_to_call_gives_the_same_bits(model, function):
    if function == "inverse_dynamics" and model.is_underactuated:
        pytest.skip("not fully actuated")
    given = arguments(model, function, np.random.default_rng(1))
    method = lambda *a, **k: getattr(type(model), function)(model, *a, **k)  # noqa: E731
    first = method(*given, t=0.0)
    for _ in range(2):  # the second call is direct
        called = getattr(model, function)(*given)
        assert np.array_equal(called, first, equal_nan=True) and called is not first
        called[...] = 7.0  # an array of the caller's own
    for other in (
        [a.tolist() for a in given],
        [np.asfortranarray(a[::-1].copy())[::-1] for a in given],
    ):
        assert np.array_equal(getattr(model, function)(*other), first, equal_nan=True)
    many = getattr(model, function)(*[np.stack([a, a]) for a in given])
    assert many.shape == (2, *first.shape)
    assert np.allclose(many, first, rtol=1e-9, atol=1e-12, equal_nan=True)
    prepared = model.prepare(function)
    result = prepared(*given)
    assert np.array_equal(result, first, equal_nan=True) and prepared(*given) is result


def test_what_is_left_out_is_zero_or_home(arm):
    q = np.full(7, 0.1)
    still = arm.forward_dynamics(q, np.zeros(7), np.zeros(7))
    for given in ((q,), (q, None), (q, None, None), (q, None, np.zeros(7))):
        assert np.array_equal(arm.forward_dynamics(*given), still)
    assert np.array_equal(arm.forward_dynamics(q=q), still)
    names = dict(zip(arm.coordinates, q, strict=True))
    assert np.array_equal(arm.forward_dynamics(names), still)
    assert np.array_equal(arm.mass_matrix(ax.assemble(arm, names)), arm.mass_matrix(q))
    assert np.array_equal(arm.mass_matrix({}), arm.mass_matrix(arm.home))


def test_a_direct_method_reads_as_the_method(arm):
    arm.mass_matrix(arm.home)
    assert "mass_matrix" in vars(arm) and arm.mass_matrix.__name__ == "mass_matrix"
    assert arm.mass_matrix.__doc__ == inspect.getdoc(ax.Model.mass_matrix)
    arm.forward_dynamics(arm.home)
    assert str(inspect.signature(arm.forward_dynamics)) == "(q, nu=None, u=None, **options)"


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.mass_matrix(np.zeros(6)),
        lambda m: m.mass_matrix(np.zeros((7, 7, 1))),
        lambda m: m.mass_matrix("q"),
        lambda m: m.mass_matrix({"elbow of steel": 1.0}),
        lambda m: m.mass_matrix(np.zeros(7), speed=1.0),
        lambda m: m.mass_matrix(np.zeros(7, dtype=complex)),
        lambda m: m.prepare("mass_matrix")(np.zeros(6)),
        lambda m: m.prepare("mass_matrix")(np.zeros(7), np.zeros(7)),
        lambda m: m.prepare("mass_matrix", out=np.zeros(7)),
        lambda m: m.prepare("mass_matrix", out=np.zeros((7, 7), order="F")),
        lambda m: m.prepare("mass_matrix", -1),
        lambda m: m.prepare("mass_matrix", 1.5),
        lambda m: m.prepare("mass_matricks"),
        lambda m: m.prepare("mass_matrix", -1),
        lambda m: m.prepare("mass_matrix", [2, -3]),
        lambda m: m.prepare("mass_matrix", parameters={"mass of nothing": 1.0}),
    ],
)
def test_mistakes_are_reported_before_and_after(arm, call):
    for _ in range(2):
        with pytest.raises((InvalidArgument, UnknownName)):
            call(arm)
        arm.mass_matrix(arm.home)
    with pytest.raises(TypeError):
        arm.mass_matrix(arm.home, arm.home)


def test_models_are_freed_and_copied_as_before():
    model = ax.gallery.build("four_bar").derive().compile()
    energy = model.energy(model.home)
    model.derivatives("forward_dynamics", model.home)
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.energy(model.home), energy)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_underactuated_inverse_dynamics_still_warns():
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    model.evaluate("inverse_dynamics", {"q": model.home})
    for _ in range(2):
        with pytest.warns(ax.errors.UnderactuatedMotionWarning):
            model.inverse_dynamics(model.home, None, np.ones(3))
    prepared = model.prepare("inverse_dynamics")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = model.inverse_dynamics(model.home, None, np.ones(3))
        assert np.array_equal(prepared(model.home, None, np.ones(3)), same)


def test_indeterminate_forces_stay_nan():
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    expected = model.contact_forces(model.home)
    assert np.isnan(expected).any()
    assert np.array_equal(model.contact_forces(model.home), expected, equal_nan=True)
    found = model.prepare("contact_forces")(model.home)
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("function", ["forward_dynamics", "state_rate"])
def test_prepared_calls_name_the_batch_that_they_are_for(arm, function):
    for batch, states in ((3, (4, 7)), ((), (4, 7)), (3, (7,))):
        with pytest.raises(InvalidArgument, match=f"^{function}: prepared with batch="):
            arm.prepare(function, batch)(np.zeros(states))


def test_prepared_batches(arm):
    rng = np.random.default_rng(2)
    q, nu, u = 0.3 * rng.normal(size=(3, 11, 7))
    out = np.full((11, 7), np.nan)
    forward = arm.prepare("forward_dynamics", 11, out)
    assert forward(q, nu, u) is out and np.array_equal(out, arm.forward_dynamics(q, nu, u))
    assert np.array_equal(forward(q), arm.forward_dynamics(q))
    assert np.array_equal(forward(q, nu[:1], u), arm.forward_dynamics(q, nu[:1], u))
    with pytest.raises(InvalidArgument):
        forward(q[:5])


def test_a_batch_beyond_the_memory_is_named(arm):
    with pytest.raises(InvalidArgument, match=r"^batch: \(10{15},\) needs more memory"):
        arm.prepare("forward_dynamics", 10**15)


def test_prepared_conditions():
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    energy = model.prepare("energy", parameters={"m": 12.0})
    assert np.array_equal(energy(model.home), model.energy(model.home, parameters={"m": 12.0}))
    assert not np.array_equal(energy(model.home), model.energy(model.home))


def test_a_result_may_be_an_argument(arm):
    """An array that shares memory with the result is read before it is written."""
    state = np.zeros(14)
    forward = arm.prepare("forward_dynamics", out=state[7:])
    expected = arm.forward_dynamics(np.zeros(7), np.full(7, 0.5))
    state[7:] = 0.5
    assert np.array_equal(forward(state[:7], state[7:]), expected)
    state[:] = 0.25
    expected = arm.forward_dynamics(np.full(7, 0.25), np.full(7, 0.25))
    assert np.array_equal(forward(state[:7], state[3:10]), expected)


def test_prepared_calls_are_for_the_processor():
    model = ax.gallery.build("four_bar").derive().compile("interpreter")
    with pytest.raises(NotApplicable, match="CPU"):
        model.prepare("energy")
    assert np.array_equal(model.energy(model.home), model.energy(model.home))


def test_derivatives_are_planned_once(arm):
    rng = np.random.default_rng(3)
    q, nu, u = 0.3 * rng.normal(size=(3, 7))
    for by in ("u", ["nu", "u"], None):
        first = arm.derivatives("forward_dynamics", q, nu, u, by=by, t=0.0)
        for _ in range(2):
            again = arm.derivatives("forward_dynamics", q, nu, u, by=by)
            for name in ("value", "by_q", "by_nu", "by_u", "by_p", "by_t"):
                a, b = getattr(first, name), getattr(again, name)
                assert (a is None and b is None) or np.array_equal(a, b), name
    many = arm.derivatives("forward_dynamics", np.stack([q, q]), nu, u)
    assert many.by_q.shape == (2, 7, 7) and repr(many).startswith("Derivatives(value (2, 7)")
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="nu_dot"):
            arm.derivatives("forward_dynamics", q, nu, u, nu_dot=nu)
        with pytest.raises(UnknownName):
            arm.derivatives("forward_dynamics", q, by=["x"])
        with pytest.raises(InvalidArgument):
            arm.derivatives("forward_dynamics", q, by=[["q"]])
