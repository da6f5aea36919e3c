"""The same arguments again are not checked, traced and assembled again; changed ones are."""

import gc
import math
import random
import sys
import types
import warnings
import weakref

import numpy as np
import pytest

import axode as ax
import random_mechanisms
from axode.problems.inputs.fingerprints import NoFingerprint, fingerprint
from tests.problems import machines

GAIN = 3.0


def helper(x):
    return GAIN * x


def law_that_imports(s):
    from settings_of_user import gain_of_user

    return [-gain_of_user * s["rail"]]


def law_of(gain):
    return lambda s: [-gain * s["rail"]]


def run(law, **options):
    given = {"start": {"rail": 0.3}, "input": law} | options
    return ax.simulate(machines.slider(), 0.05, **given)


def test_a_law_is_traced_once():
    law, traced = law_of(2.0), []
    first = run(law)
    sys.setprofile(lambda f, e, a: traced.append(f.f_code) if e == "call" else None)
    try:
        second = run(law)
        other = run(law, start={"rail": 0.4})
        again = run(law_of(2.0))
    finally:
        sys.setprofile(None)
    assert law.__code__ not in traced
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


def test_what_a_law_reads_is_seen_to_change():
    values = {"gain": 2.0}
    table = [1.0]

    def law(s):
        return [-values["gain"] * table[0] * GAIN * s["rail"]]

    def with_default(s, gain=values):
        return [-gain["gain"] * helper(s["rail"])]

    for given in (law, with_default):
        values["gain"] = 2.0
        before = run(given)["rail"]
        values["gain"] = 4.0
        assert not np.array_equal(run(given)["rail"], before)
        values["gain"] = 2.0
        assert np.array_equal(run(given)["rail"], before)


def test_globals_of_what_a_law_calls_are_seen_to_change(monkeypatch):
    def law(s):
        return [-helper(s["rail"])]

    before = run(law)["rail"]
    monkeypatch.setattr(sys.modules[__name__], "GAIN", 5.0)
    assert not np.array_equal(run(law)["rail"], before)


@pytest.mark.parametrize(
    "a, b",
    [
        (0.0, -0.0),
        (1, 1.0),
        (True, 1),
        (law_of(1.0), law_of(2.0)),
        ({"a": np.zeros(2)}, {"a": np.zeros((2, 1))}),
        (np.zeros(1), np.zeros(1, dtype=np.float32)),
        (lambda s: s, lambda s: (s,)),
        (lambda s, k=1: s, lambda s, k=2: s),
        (ax.Law(lambda s, k: s, k=1.0), ax.Law(lambda s, k: s, k=2.0)),
        (ax.Event("a", "x", stop=True), ax.Event("a", "x")),
        (ax.Event("a", "x"), ax.Event("a", "y")),
        (lambda s: math.pi * s, lambda s: math.e * s),
    ],
)
def test_what_differs_has_another_fingerprint(a, b):
    assert fingerprint(a) == fingerprint(a) and fingerprint(a) != fingerprint(b)


@pytest.mark.parametrize(
    "value",
    [
        lambda s: random.random() * s,
        lambda s: np.random.rand() * s,
        lambda s: next(iter(s)),
        lambda s: vars(s),
        lambda s: np.loadtxt("gains.txt") * s,
        lambda s: print(s),
        machines.slider,
        np.zeros(1000),
        object(),
        [].append,
        np.random.default_rng(0),
        np.vectorize(helper),
        np.frompyfunc(helper, 1, 1),
        np.poly1d([1.0, 2.0]),
        np.zeros(2).view(np.recarray),
        ax.Callback(random.Random()),
        law_that_imports,
    ],
)
def test_what_may_change_unseen_has_none(value):
    with pytest.raises(NoFingerprint):
        fingerprint(value)


def test_all_functions_see_changes_of_a_module_that_they_read():
    settings = types.ModuleType("settings_of_user")
    settings.first, settings.second = 1.0, 2.0
    made = {"settings": settings}
    exec("def inner(x): return settings.second * x", made)
    exec("def law(s): return [-settings.first * inner(s['rail'])]", made)
    before = run(made["law"])["rail"]
    settings.second = 9.0
    assert not np.array_equal(run(made["law"])["rail"], before)


def test_arrays_in_files_can_be_starts_and_inputs(tmp_path):
    np.save(tmp_path / "start.npy", np.array([0.1, 0.2]))
    start = np.load(tmp_path / "start.npy", mmap_mode="r")
    made = run({"rail": start}, start={"rail": start})
    assert np.array_equal(made["rail"][:, 0], start)


def test_functions_of_numpy_have_one():
    def law(s):
        return [np.clip(np.where(s["rail"] > 0, np.sin(s["rail"]), 0.0), -1, 1) + abs(math.pi)]

    assert fingerprint(law) == fingerprint(law)


def test_a_start_that_is_not_met_warns_every_time():
    model = random_mechanisms.balancer().derive().compile()
    for _ in range(3):
        with pytest.warns(ax.errors.RequestNotMetWarning, match="base.z = 1 was asked for"):
            ax.simulate(model, 0.01, start={"base.z": 1.0})


def test_arrays_of_the_caller_may_change():
    start = {"rail": np.array([0.1, 0.2])}
    first = run(None, start=start)
    start["rail"][0] = 0.5
    assert run(None, start=start)["rail"][0, 0] == 0.5 != first["rail"][0, 0]


def test_events_and_samples_are_those_that_are_given():
    watch = [ax.Event("out", "rail - 0.31", stop=True)]
    speed = {"rail": 0.3, "rail.rate": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert run(None, start=speed, events=watch).events[0].name == "out"
        assert not run(None, start=speed, events=[ax.Event("far", "rail - 9")]).events
        samples = [ax.Sampled({"rail": np.full(3, k)}, period=0.1) for k in (1.0, 2.0)]
        ends = [run(given).final["rail"] for given in (*samples, *samples)]
    assert ends[0] == ends[2] < ends[1] == ends[3]


def test_models_are_freed():
    model = ax.gallery.build("four_bar").derive().compile()
    ax.simulate(model, 0.01)
    ax.simulate(model, 0.01, input=lambda s: [0.1])
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None
