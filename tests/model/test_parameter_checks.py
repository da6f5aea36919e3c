"""Checks of parameters that travel with a model agree with those of its description."""

import numpy as np
import pytest

import axode as ax
from axode.mechanism.parameter_values import find_impossible
from axode.model.parameter_checks import FAULTS, parameter_checks


@pytest.mark.parametrize("name", ["wheeled_pendulum", "unicycle", "caster_robot", "ballbot"])
def test_the_function_finds_what_the_description_finds(name):
    model = ax.gallery.build(name).derive().compile()
    usual, rng = np.array(list(model.parameters.values())), np.random.default_rng(1)
    size = np.repeat([0.3, 1.2], 300)[:, np.newaxis]
    rows = usual * (1 + size * rng.normal(size=(600, len(usual))))
    rows[::7, ::3] = 0.0
    columns = dict(zip(model.parameters, rows.T.copy(), strict=True))
    expected, _ = find_impossible(model.equations.system.mechanism, columns)
    checks = parameter_checks(model)
    found = checks.tape.evaluate(rows)[0] != 0
    assert found.shape == (600, len(checks.texts)) and 0 < found.any(axis=1).mean() < 1
    np.testing.assert_array_equal(found.any(axis=1), expected > 0)


def test_a_model_from_a_file_refuses_them_too(tmp_path):
    model = ax.gallery.build("unicycle").derive().compile()
    model.save(tmp_path / "u.axm", ["forward_dynamics"])
    model.save(tmp_path / "whole.axm")
    loaded = ax.load_model(tmp_path / "whole.axm")
    assert loaded.functions == model.functions and FAULTS not in model.functions
    assert parameter_checks(ax.load_model(tmp_path / "u.axm")) is not None
    with pytest.raises(ax.InvalidArgument, match="mass of body 'fork': must be > 0"):
        ax.simulate(loaded, 0.1, parameters={"m": -1.0})
    made = ax.sweep(loaded, 0.1, parameters={"m": ax.Normal(0.0, 1.0)}, samples=8)
    assert (made.samples["m"] > 0).tolist() == made.finished.tolist()
