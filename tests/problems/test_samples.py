"""Rows of sweeps: the same whatever the chunk, and spread as each sampler promises."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest

import axode as ax
from axode.problems.sweep.distributions import MAX_ROWS, PROBABILITIES, SAMPLERS, SOBOL_BITS
from axode.problems.sweep.sample_arguments import plan_samples

COUNT = 1000


def distributions():
    """Sweep own distributions and one of SciPy."""
    import scipy.stats

    sizes = {"mass": ax.Uniform(1.0, 3.0), "gain": 2.0, "size": ax.LogUniform(1e-3, 10.0)}
    return {
        "start": {"pitch": ax.Normal(0.1, 0.02)},
        "parameter": sizes,
        "input": {"torque": scipy.stats.triang(0.5)},
    }


def drawn(sampler, count=COUNT, seed=5, given=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ax.PlausibilityWarning)
        given = given or distributions()
        return plan_samples(given, samples=count, sampler=sampler, seed=np.int64(seed))


def zipped(**lists):
    return plan_samples({"parameter": lists}, combine="zip")


def grid():
    given = {"start": {"a": [1.0, 2.0, 3.0]}, "parameter": {"b": [5, 6], "c": 7.0, "d": "a*2"}}
    return plan_samples(given)


KINDS = {
    "grid": lambda: grid(),
    "zip": lambda: zipped(a=np.arange(12.0).reshape(3, 4), b=np.arange(4.0)),
    "table": lambda: plan_samples({}, samples={"a": np.arange(9.0), "b": np.arange(9) ** 2}),
    **{name: lambda name=name: drawn(name) for name in SAMPLERS},
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_the_chunk_nor_on_the_process(kind):
    made = KINDS[kind]()
    whole = made.rows(0, made.count)
    assert list(whole) == list(made.names) == list(made.groups)
    sent = pickle.loads(pickle.dumps(made))
    for first, last in ((0, 1), (1, 6), (made.count // 3, made.count // 2), (4, made.count)):
        for source in (sent, sent.part(first, last)):
            for name, values in source.rows(first, last).items():
                assert values.dtype == np.float64
                np.testing.assert_array_equal(values, whole[name][first:last])
    name = made.names[-1]
    (alone,) = made.rows(2, 5, [name]).items()
    assert alone[0] == name and (alone[1] == whole[name][2:5]).all()
    assert json.loads(json.dumps(made.describe())) == KINDS[kind]().describe()
    assert made.rows(3, 3)[name].shape == (0,)


def test_a_grid_has_every_combination_the_last_name_fastest():
    made = grid()
    assert made.shape == (3, 2) and made.groups == {"a": "start", "b": "parameter"}
    rows = made.rows(0, 6)
    a, b = np.meshgrid([1.0, 2.0, 3.0], [5.0, 6.0], indexing="ij")
    np.testing.assert_array_equal(rows["a"], a.ravel())
    np.testing.assert_array_equal(rows["b"], b.ravel())
    assert list(made.axes) == ["a", "b"]
    assert made.describe()["axes"] == {"a": [1.0, 2.0, 3.0], "b": [5.0, 6.0]}


def test_nothing_swept_is_one_row():
    made = plan_samples({"start": {"x": 1.0}, "parameter": None})
    assert made.shape == () and made.count == 1 and made.rows(0, 1) == {}


def test_lists_are_zipped_with_arrays_of_runs():
    made = zipped(a=[[1.0], [2.0]], b=[1.0, 2.0, 3.0])
    assert made.shape == (2, 3) and made.rows(2, 4)["a"].tolist() == [1.0, 2.0]
    made = plan_samples({"parameter": {"a": [1.0, 2.0]}}, combine="zip", batch=(5, 1))
    assert made.shape == (5, 2) and made.rows(8, 10)["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000, 4097])
def test_a_latin_hypercube_meets_every_interval_once(count):
    given = {"parameter": {name: ax.Uniform(0.0, 1.0) for name in "abc"}}
    columns = drawn("latin_hypercube", count, given=given).rows(0, count)
    for values in columns.values():
        assert sorted(np.floor(values * count)) == list(range(count))
    if count > 100:
        orders = np.corrcoef(np.array(list(columns.values())))
        assert np.abs(orders - np.eye(3)).max() < 5 / np.sqrt(count)


def test_permutations_of_a_few_rows_are_all_met():
    given = {"parameter": {"a": ax.Uniform(0.0, 1.0)}}
    orders = [
        tuple(np.argsort(drawn("latin_hypercube", 3, seed, given).rows(0, 3)["a"]))
        for seed in range(120)
    ]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6 and min(counts) > 8  # 20 each, if all are equally likely


def test_intervals_stay_exact_in_the_largest_hypercube():
    given = {"parameter": {"a": ax.Uniform(0.0, 1.0)}}
    made = drawn("latin_hypercube", MAX_ROWS, given=given)
    last = made.rows(MAX_ROWS - 1000, MAX_ROWS)["a"]
    assert len(set(np.floor(last * MAX_ROWS))) == 1000 and last.min() > 0 and last.max() < 1


@pytest.mark.parametrize("dimensions", [1, 6])
def test_sobol_points_are_those_of_scipy(dimensions):
    given = {"parameter": {str(k): ax.Uniform(0.0, 1.0) for k in range(dimensions)}}
    rows = drawn("sobol", 512, seed=9, given=given).rows(0, 512)
    from scipy.stats import qmc

    expected = qmc.Sobol(dimensions, scramble=True, bits=SOBOL_BITS, rng=9).random(512)
    np.testing.assert_allclose(np.array(list(rows.values())).T, expected, rtol=0, atol=2.0**-32)


def test_late_sobol_points_are_those_of_scipy():
    from scipy.stats import qmc

    first = 10_000_019
    given = {"parameter": {"a": ax.Uniform(0.0, 1.0), "b": ax.Uniform(0.0, 1.0)}}
    rows = drawn("sobol", 1 << 24, seed=1, given=given).rows(first, first + 3)
    engine = qmc.Sobol(2, scramble=True, bits=SOBOL_BITS, rng=1).fast_forward(first)
    np.testing.assert_allclose(np.array(list(rows.values())).T, engine.random(3), atol=2.0**-32)


def test_draws_do_not_change_from_version_to_version():
    """Stores that users have begun to fill depend on them; NumPy keeps both generators stable."""
    given = {"parameter": {"a": ax.Uniform(0.0, 1.0), "b": ax.Uniform(-1.0, 1.0)}}
    digests = [
        drawn(name, 64, 0, given).describe()["first_points"]
        for name in ("random", "latin_hypercube")
    ]
    assert digests == ["a2c0aa2537c74045", "c8d350e9cdd97ddc"]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_draws_follow_their_distributions(sampler):
    import scipy.stats

    made = drawn(sampler)
    rows = made.rows(0, COUNT)
    expected = {
        "pitch": scipy.stats.norm(0.1, 0.02),
        "mass": scipy.stats.uniform(1.0, 2.0),
        "size": scipy.stats.loguniform(1e-3, 10.0),
        "torque": scipy.stats.triang(0.5),
    }
    assert list(rows) == list(expected)
    for name, distribution in expected.items():
        assert scipy.stats.kstest(rows[name], distribution.cdf).pvalue > 1e-3
    others = drawn(sampler, seed=6).rows(0, COUNT)
    assert all((rows[name] != others[name]).all() for name in rows)


def test_quantiles_are_those_of_scipy():
    import scipy.stats

    u = np.array(PROBABILITIES)
    for own, scipys in (
        (ax.Uniform(-2.0, 5.0), scipy.stats.uniform(-2.0, 7.0)),
        (ax.Normal(3.0, 0.5), scipy.stats.norm(3.0, 0.5)),
        (ax.LogUniform(1e-4, 1e3), scipy.stats.loguniform(1e-4, 1e3)),
    ):
        np.testing.assert_allclose(own.ppf(u), scipys.ppf(u), rtol=1e-12)
        assert own.ppf(0.0) <= own.ppf(u).min()


def test_a_number_of_rows_that_is_no_power_of_two_is_warned_of():
    with pytest.warns(
        ax.PlausibilityWarning, match="samples=100: Sobol points are balanced.*\n.*64 or .*128"
    ):
        plan_samples(distributions(), samples=100, sampler="sobol")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_samples(distributions(), samples=128, sampler="sobol")
        plan_samples(distributions(), samples=100)


# Tables ------------------------------------------------------------------------------------------

TABLE = {"mass": [1.0, 2.5], "pitch": [0.1, -0.25]}


def located(name):
    if name not in ("mass", "pitch"):
        raise ax.UnknownName("model 'm'", "signal", name, ("mass", "pitch"))
    return "parameter" if name == "mass" else "start"


def test_tables_of_all_kinds_give_the_same_rows(tmp_path):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame(TABLE)
    frame.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "table.csv").write_text("# rows\nmass;pitch\n1;0.1\n2.5;-0.25\n")
    tables = [TABLE, frame, pl.DataFrame(TABLE), pl.LazyFrame(TABLE), pa.table(TABLE)]
    tables.append(tmp_path / "table.parquet")
    tables.append(str(tmp_path / "table.csv"))
    made = [plan_samples({}, samples=table, locate=located) for table in tables]
    assert made[0].groups == {"mass": "parameter", "pitch": "start"} and made[0].shape == (2,)
    for one in made:
        assert one.describe() == made[0].describe()
        assert {name: values.tolist() for name, values in one.rows(0, 2).items()} == TABLE
    other = plan_samples({}, samples={**TABLE, "mass": [1.0, 2.0]}, locate=located)
    assert other.describe() != made[0].describe()
    with pytest.raises(ax.UnknownName, match="has no signal 'far'"):
        plan_samples({}, samples={"far": [1.0]}, locate=located)


def test_a_frame_with_a_filtered_index_keeps_its_columns(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"mass": [1.0, 2.0, 3.0]})
    frame[frame.mass > 1].to_parquet(tmp_path / "part.parquet")
    made = plan_samples({}, samples=tmp_path / "part.parquet")
    assert made.names == ("mass",) and made.rows(0, 2)["mass"].tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "the table is empty; it needs a column"),
        ({"a": []}, "the table is empty; it needs a column"),
        ({"a": [1.0], "b": ["x"]}, "column 'b': expected numbers, got"),
        ({"a": [1.0], "b": [True]}, "column 'b': expected numbers, got"),
        ({"a": [[1.0]]}, r"column 'a': expected a list of numbers, got shape \(1, 1\)"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "the columns differ in length: a 1, b 2"),
        ({3: [1.0]}, "column 3: its name should be text"),
        ({"a": [1.0, np.nan]}, "samples, 'a': 1 of 2 values are not finite, the first in row 1"),
        ({"a": np.ma.array([1, 2], mask=[0, 1])}, "values are not finite, the first in row 1"),
        (3.5, "samples: expected how many rows to draw, or a table"),
        ([1, 2], "samples: expected how many rows to draw, or a table"),
        ("rows.txt", r"'rows.txt': a table of samples ends in .csv or .parquet"),
        ("missing.csv", r"cannot read 'missing.csv': No such file"),
        ("missing.parquet", r"cannot read 'missing.parquet': No such file"),
        ("a\0b.csv", "cannot read 'a.*embedded null byte"),
    ],
)
def test_tables_that_cannot_be_used(table, message):
    with pytest.raises(ax.AxodeError, match=f"(?s){message}"):
        plan_samples({}, samples=table)


def test_frames_that_cannot_be_used():
    import pandas as pd
    import pyarrow as pa

    for table, message in (
        (pd.DataFrame({"a": [1.0, None]}, dtype=object), "values are not finite"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "samples: the table has two columns 'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "samples: the table has two columns 'a'"),
    ):
        with pytest.raises(ax.AxodeError, match=message):
            plan_samples({}, samples=table)


def test_files_that_are_no_tables_of_numbers(tmp_path):
    import pandas as pd

    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1, or so")
    with pytest.raises(ax.FileError, match="is not a Parquet file, or damaged"):
        plan_samples({}, samples=path)
    pd.DataFrame({"a": [1.0], "b": ["x"]}).to_parquet(path)
    with pytest.raises(ax.FileError, match="columns b do not hold numbers"):
        plan_samples({}, samples=path)
    many = pd.DataFrame({"a": np.zeros(1 << 20)})
    many.to_parquet(path)
    import axode.results.tables as arrow

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "MAX_PACKED", 1 << 20)
        with pytest.raises(ax.FileError, match=r"cannot be read: its .* unpack to"):
            plan_samples({}, samples=path)
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n3,"4\n')
    with pytest.raises(ax.FileError, match="is not a table"):
        plan_samples({}, samples=path)


# What is wrong is reported at once ---------------------------------------------------------------


def test_all_faults_at_once():
    import scipy.stats

    given = {
        "start": {"a": ax.Uniform(2.0, 1.0), "b": ax.Normal(np.nan, 1.0)},
        "parameter": {"c": ax.LogUniform(-1.0, 1.0), "d": ax.Normal(0.0, 0.0)},
        "input": {"e": ax.Uniform("1", 2.0), "f": scipy.stats.norm(0.0, -1.0)},
        "other": {
            "g": ax.Uniform(0, np.inf),
            "h": ax.Uniform(0, np.timedelta64(1, "s")),
            "i": ax.Uniform(0, iter("")),
            "j": ax.Uniform(0, np.float16(np.inf)),
        },
    }
    with pytest.raises(ax.InvalidArgument) as caught:
        plan_samples(given)
    text = str(caught.value)
    assert text.startswith("sweep has 11 problems.")
    for part in (
        "start 'a': Uniform(low=2.0, high=1.0): low must be less than high",
        "start 'b': Normal(mean=nan, deviation=1.0): mean must be finite",
        "parameter 'c': LogUniform(low=-1.0, high=1.0): low must be > 0; use Uniform",
        "parameter 'd': Normal(mean=0.0, deviation=0.0): deviation must be > 0",
        "input 'e': Uniform(low='1', high=2.0): low must be a number, got '1'",
        "input 'f': ppf of ",
        "is not finite at",
        "other 'g': Uniform(low=0, high=inf): high must be finite",
        "high must be a number, got np.timedelta64(1,'s')",
        "high must be a number, got <str_ascii_iterator object",
        "other 'j': Uniform(low=0, high=np.float16(inf)): high must be finite",
        "a, b, c, d, e, f, g, h, i, j: a distribution needs samples=N, how many rows to draw",
    ):
        assert part in text


class Odd:
    def __init__(self, ppf):
        self.ppf = ppf


U = ax.Uniform(0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"a": U, "b": [1.0]}, {"samples": 3}, "b given as lists and a as distributions"),
        ({"a": [1.0]}, {"samples": 3}, "samples=3: nothing is drawn; give a distribution"),
        ({}, {"samples": 3}, "samples=3: nothing is drawn; give a distribution"),
        ({"a": U}, {"samples": 0}, "samples=0: draw at least one row"),
        ({"a": U}, {"samples": 1 << 60}, "samples=.*rows, a sweep has 281474976710656 at most"),
        ({"a": U}, {"samples": 1 << 33, "sampler": "sobol"}, "a sweep has 4294967296 at most"),
        ({f"v{k}": np.zeros(100) for k in range(9)}, {}, "the grid of v0, .*1e.18 rows"),
        ({"a": [1.0, np.inf]}, {}, "parameter 'a': 1 of 2 values are not finite, the first in row"),
        ({"a": ["x", "y"]}, {}, "parameter 'a': expected numbers, got"),
        ({"a": [10**400]}, {}, "parameter 'a': expected numbers, got"),
        ({"a": np.ma.array([1.0, 2.0], mask=[1, 0])}, {}, "not finite, the first in row 0"),
        ({"a": [[1.0], [1.0, 2.0]]}, {}, "parameter 'a': expected numbers, got"),
        ({"a": [[1.0, 2.0]]}, {}, "a grid takes a list of values, got shape"),
        ({"a": [1.0, 2.0], "b": [1, 2, 3]}, {"combine": "zip"}, r"one length; got a \(2,\), b \(3"),
        (
            {"a": [1.0, 2.0]},
            {"combine": "zip", "batch": (3,)},
            r"one length; got a \(2,\), and arrays of \(3,\) runs",
        ),
        ({"a": [1.0]}, {"samples": {"b": [1.0]}}, "a table has every swept value, but a is swept"),
        ({"b": 1.0}, {"samples": {"b": [1.0]}}, "'b': given as parameter and as a column"),
        ({"a": U}, {"samples": 3, "sampler": "halton"}, "has no sampler 'halton'.*latin_hypercube"),
        ({"a": [1.0]}, {"combine": "mix"}, "has no combination 'mix'"),
        ({"a": Odd(lambda u: 1 / 0)}, {"samples": 3}, "ppf of .* raises ZeroDivisionError"),
        ({"a": Odd(lambda u: 1.0)}, {"samples": 3}, r"ppf of .* gives shape \(\) for 11 numbers"),
        ({"a": Odd(lambda u: -u)}, {"samples": 3}, "ppf of .* decreases, as no inverse"),
    ],
)
def test_what_cannot_be_swept_is_refused(given, options, message):
    with pytest.raises(ax.AxodeError, match=f"(?s){message}"):
        plan_samples({"parameter": given}, **options)


def test_a_name_is_swept_once():
    with pytest.raises(ax.InvalidArgument, match="'x' is swept twice, now as parameter"):
        plan_samples({"start": {"x": [1.0]}, "parameter": {"x": [2.0]}})


def test_sobol_has_only_so_many_dimensions(monkeypatch):
    monkeypatch.setattr("axode.problems.sweep.sample_arguments.SOBOL_DIMENSIONS", 2)
    with pytest.raises(ax.InvalidArgument, match="4 values are swept, it draws 2 at most"):
        drawn("sobol", 64)


def test_a_long_axis_does_not_travel_with_every_chunk():
    made = plan_samples({"start": {"a": np.linspace(0.0, 1.0, 10_000)}, "parameter": {"b": [1, 2]}})
    assert len(pickle.dumps(made.part(400, 500))) < 5000
    for name, values in made.part(400, 500).rows(400, 500).items():
        np.testing.assert_array_equal(values, made.rows(400, 500)[name])


def test_distributions_that_hardly_differ_are_told_apart():
    import scipy.stats

    for pair in (
        (scipy.stats.poisson(1.0), scipy.stats.poisson(1.000001)),
        (scipy.stats.uniform(3.0, 2.0), scipy.stats.uniform(3.0 + 1e-13, 2.0)),
        (
            scipy.stats.rv_discrete(values=([3, 5], [0.6, 0.4])),
            scipy.stats.rv_discrete(values=([3, 5], [0.65, 0.35])),
        ),
    ):
        first, second = (drawn("random", given={"start": {"a": d}}).describe() for d in pair)
        assert first["distributions"] != second["distributions"]
        assert first == json.loads(json.dumps(first))


def test_values_travel_where_other_processes_do_not_know_a_distribution():
    class Fixed:
        def ppf(self, probability):
            return 0.0 * probability + 2.0

    made = drawn("random", given={"start": {"a": Fixed(), "b": ax.Uniform(0, 1)}})
    part = pickle.loads(pickle.dumps(made.part(3, 7)))
    for name, values in part.rows(3, 7).items():
        np.testing.assert_array_equal(values, made.rows(3, 7)[name])
