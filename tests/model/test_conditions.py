"""Time and parameters of many states: what is shared stays shared, the rest is selected."""

import numpy as np
import pytest

import axode as ax
from axode.model.conditions import Conditions

TIMES = np.array([[0.0, 1.0, 2.0], [0.5, 1.5, 2.5]])
ROWS = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_shared_conditions_serve_any_state():
    shared = Conditions(1.0, ROWS[0])
    assert shared.at(np.array([5, 7])) is shared and shared.shape == ()
    assert shared.spread((2,)).t.tolist() == [1.0, 1.0] and shared.spread((2,)).p is shared.p


def test_states_are_selected_along_all_axes():
    """Times of (runs, samples), parameters of runs."""
    many = Conditions(TIMES, ROWS[:, np.newaxis])
    places = (np.array([0, 1]), np.array([2, 0]))
    some = many.at(places)
    assert many.shape == (2, 3)
    assert some.t.tolist() == [2.0, 0.5] and some.p.tolist() == ROWS.tolist()
    flat = many.spread((2, 3))
    assert flat.t.tolist() == TIMES.ravel().tolist()
    assert flat.p.tolist() == np.repeat(ROWS, 3, axis=0).tolist()


def test_names_and_order_mean_the_same():
    model = ax.gallery.build("chaplygin_sleigh").derive().compile("interpreter")
    names = list(model.parameters)
    given = {names[0]: 1.1 * model.parameters[names[0]]}
    conditions = Conditions.of(model, 0.5, given)
    assert conditions.named(model) == {**model.parameters, **given}
    assert Conditions.of(model).p is None and Conditions.of(model, parameters={}).p is None
    q, nu = model.home, np.ones(len(model.independent))
    by_name = model.forward_dynamics(q, nu, t=0.5, parameters=given)
    assert np.array_equal(model.forward_dynamics(q, nu, **conditions.options), by_name)
    with pytest.raises(ax.UnknownName):
        Conditions.of(model, parameters={"weight of the moon": 1.0})
