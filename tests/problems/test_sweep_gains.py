"""Gains of laws are swept like parameters: rows are the runs of `simulate` with these gains."""

import numpy as np
import pytest

import axode as ax
from emulated_gpu import install

WANTED = {"w": ("last", "axle.rate")}


@pytest.fixture(scope="module")
def model():
    rig = ax.Mechanism("rig")
    wheel = rig.add_body("wheel", mass=4.0, inertia=(0.02, ax.Parameter("J", 0.04), 0.02))
    rig.add_joint("axle", ax.Revolute("y"), parent=rig.ground, child=wheel)
    rig.add_damper("brake", "axle", coefficient=0.05)
    rig.add_motor("motor", "axle")
    return rig.derive().compile()


def held(s, pi, wanted):
    return {"motor.torque": pi(wanted - s["axle.rate"])}


def proportional(s, kp, wanted):
    return {"motor.torque": kp * (wanted - s["axle.rate"])}


LAWS = {
    "plain": ax.Law(proportional, kp=0.5, wanted=10.0),
    "continuous": ax.Law(held, pi=ax.blocks.PI(0.5, 4.0), wanted=10.0),
    "sampled": ax.Law(held, pi=ax.blocks.PI(0.5, 4.0, period=0.01), wanted=10.0),
}


def simulated(model, law, gains, **options):
    """Last speeds of runs that are computed one by one."""
    rows = [dict(zip(gains, row, strict=True)) for row in zip(*gains.values(), strict=True)]
    runs = [ax.simulate(model, 0.3, input=law.changed(**row), **options) for row in rows]
    return np.array([run.final["axle.rate"] for run in runs])


@pytest.mark.parametrize("name", LAWS)
def test_rows_are_runs_with_their_gains(model, name):
    law, kp = LAWS[name], "kp" if name == "plain" else "pi.kp"
    grid = {kp: [0.1, 0.5, 2.0], "wanted": [5.0, 10.0]}
    made = ax.sweep(model, 0.3, input=law, parameters={**grid, "J": [0.03, 0.04]}, outputs=WANTED)
    assert made["w"].shape == (2, 3, 2)  # model parameters, then gains
    points = [g.ravel() for g in np.meshgrid(*grid.values(), indexing="ij")]
    for k, J in enumerate((0.03, 0.04)):
        runs = simulated(model, law, dict(zip(grid, points, strict=True)), parameters={"J": J})
        np.testing.assert_allclose(made["w"][k].ravel(), runs, rtol=1e-12)


def test_arrays_in_the_law_are_lists_and_tables_have_columns_of_gains(model):
    law, gains = LAWS["sampled"], {"pi.kp": [0.1, 0.5], "pi.ki": [4.0, 2.0]}
    runs = simulated(model, law, gains)
    listed = ax.sweep(model, 0.3, input=law.changed(**gains), combine="zip", outputs=WANTED)
    table = ax.sweep(model, 0.3, input=law, samples=gains, outputs=WANTED)
    named = ax.sweep(model, 0.3, input=law, parameters=gains, combine="zip", outputs=WANTED)
    for made in (listed, table, named):
        np.testing.assert_allclose(made["w"], runs, rtol=1e-12)


def test_one_number_changes_a_gain_of_all_rows(model):
    law = LAWS["sampled"]
    made = ax.sweep(
        model, 0.3, input=law, parameters={"wanted": 12.0, "J": [0.03, 0.04]}, outputs=WANTED
    )
    assert made["w"][1] == pytest.approx(simulated(model, law, {"wanted": [12.0]})[0], rel=1e-12)


def test_rows_have_the_same_bits_in_chunks_and_processes(model):
    law = LAWS["sampled"]
    given = {"input": law, "parameters": {"pi.kp": ax.Uniform(0.1, 2.0)}, "outputs": WANTED}
    made = ax.sweep(model, 0.3, samples=40, seed=3, **given)
    pieces = ax.sweep(model, 0.3, samples=40, seed=3, chunk=7, **given)
    elsewhere = ax.sweep(model, 0.3, samples=40, seed=3, chunk=16, executor=2, **given)
    assert np.array_equal(made["w"], pieces["w"]) and np.array_equal(made["w"], elsewhere["w"])
    runs = simulated(model, law, {"pi.kp": made.samples["pi.kp"]})
    np.testing.assert_allclose(made["w"], runs, rtol=1e-12)


def test_a_store_knows_the_gains_of_all_rows(model, tmp_path):
    law = LAWS["plain"]
    given = {"outputs": WANTED, "parameters": {"kp": [0.1, 0.5]}, "store": tmp_path / "study"}
    ax.sweep(model, 0.3, input=law, **given)
    again = ax.sweep(model, 0.3, input=law, **given)
    assert again.info["computed"] == 0
    with pytest.raises(ax.errors.AxodeError, match="input"):
        ax.sweep(model, 0.3, input=law.changed(wanted=11.0), **given)


def test_runs_that_change_their_speeds_keep_their_gains():
    """A crank-rocker turns through dead points, where steps are traced again."""
    four_bar = ax.gallery.build("four_bar").derive(independent=["theta3_dot"]).compile()
    law = ax.Law(lambda s, k: {"tau": k * (12.0 - s["theta1_dot"])}, k=0.5)
    given = {"start": {"theta1": 0.5, "theta1_dot": 8.0}, "outputs": {"x": ("last", "theta1")}}
    gains = [0.1, 0.5, 1.0]
    made = ax.sweep(four_bar, 1.5, input=law, parameters={"k": gains}, **given)
    for k, x in zip(gains, made["x"], strict=True):
        run = ax.simulate(four_bar, 1.5, input=law.changed(k=k), start=given["start"])
        assert run.info["switches"] and x == pytest.approx(run.final["theta1"], rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"kx": [1, 2]}, ax.errors.UnknownName, "no parameter or gain 'kx'.*\n.*J, kp, wanted"),
        ({"kp": [1, np.nan]}, ax.errors.InvalidArgument, "gain 'kp': 1 of 2 values"),
        ({"kp": "1"}, ax.errors.InvalidArgument, "kp"),
    ],
)
def test_wrong_gains_are_named(model, parameters, error, match):
    with pytest.raises(error, match=match):
        ax.sweep(model, 0.3, input=LAWS["plain"], parameters=parameters, outputs=WANTED)


def filtered(s, lag, wanted):
    return {"motor.torque": 0.1 * lag(wanted - s["axle.rate"])}


def test_gains_that_no_block_can_have_are_refused_and_rows_that_draw_them_fail(model):
    law = ax.Law(filtered, lag=ax.blocks.LowPass(0.02, period=0.01), wanted=10.0)
    given = {"input": law, "outputs": WANTED}
    with pytest.raises(ax.errors.InvalidArgument, match=r"lag must be > 0, got -0\.02"):
        ax.sweep(model, 0.1, parameters={"lag.lag": [0.02, -0.02]}, **given)
    with pytest.raises(ax.errors.InvalidArgument, match="lag must be > 0, got 0"):
        ax.sweep(model, 0.1, samples={"lag.lag": [0.02, 0.0]}, **given)
    drawn = ax.sweep(
        model, 0.1, parameters={"lag.lag": ax.Normal(0.0, 0.02)}, samples=8, seed=1, **given
    )
    possible = drawn.samples["lag.lag"] > 0
    assert 0 < possible.sum() < 8
    np.testing.assert_array_equal(drawn.finished, possible)
    np.testing.assert_array_equal(np.isfinite(drawn["w"]), possible)


def test_a_gain_with_the_name_of_a_parameter_is_refused(model):
    """A name of both a gain and a parameter is ambiguous."""
    law = ax.Law(lambda s, J: {"motor.torque": -J * s["axle.rate"]}, J=0.1)
    for named in ({"parameters": {"J": [0.03, 0.04]}}, {"samples": {"J": [0.03, 0.04]}}):
        with pytest.raises(ax.errors.InvalidArgument, match="rename the gain"):
            ax.sweep(model, 0.1, input=law, outputs=WANTED, **named)


def test_gains_reach_a_gpu(model, monkeypatch):
    """On an emulated device; rows are those of the CPU but for rounding."""
    law = LAWS["sampled"]
    given = {"input": law, "parameters": {"pi.kp": [0.1, 0.5, 2.0]}, "outputs": WANTED}
    here = ax.sweep(model, 0.1, **given)["w"]
    install(monkeypatch)
    there = ax.sweep(model, 0.1, target="cuda", **given)["w"]
    np.testing.assert_allclose(there, here, rtol=1e-9)
