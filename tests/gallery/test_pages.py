"""Pages of the gallery describe every parameter and show the source."""

import importlib.util
import pickle
import re
import sys

import pytest

import axode as ax
from axode import gallery
from axode.mechanism.topology import parameters_of
from house.tree import ROOT
from variants import further


@pytest.fixture(scope="module")
def hook():
    """The module that writes the pages."""
    spec = importlib.util.spec_from_file_location(
        "gallery_pages", ROOT / "docs" / "hooks" / "gallery.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with pytest.MonkeyPatch.context() as patch:  # as MkDocs does
        patch.syspath_prepend(str(ROOT / "docs" / "hooks"))
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", gallery.NAMES)
def test_every_parameter_has_a_meaning_and_a_unit(hook, name):
    rows = hook.parameters(name)
    named = [each for row in rows for each in row.names]
    assert len(named) == len(set(named))
    inside = re.findall(r"`(\w+)`", " ".join(row.meaning for row in rows))
    missing = parameters_of(gallery.build(name)).keys() - {*named, *inside}
    assert not missing, f"document {missing} in the docstring of gallery/{name}.py"
    for row in rows:
        assert row.meaning
        assert row.unit or not isinstance(row.defaults[0], float), f"{row.names}: name the unit"


def test_the_source_runs_without_its_docstring(hook):
    page = "\n".join(hook._source("four_bar"))
    first, second = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "Crank, coupler and rocker" not in first and "def four_bar(" in first
    assert "def closed(" in second and "def closed(" not in first
    both = first + "\n" + re.sub(r"^    ", "", second, flags=re.MULTILINE)
    space: dict = {}
    exec(both, space)
    assert str(space["four_bar"]()) == str(gallery.build("four_bar"))
    assert "[caster_robot](caster_robot.md)" in hook._source("two_caster_robot")[-1]


def test_laws_of_live_pages_keep_robots_upright(hook):
    """Balancers reach the speeds that keys ask for, and do not fall; their pages are small."""
    made = sys.modules["gallery_live"].LIVE
    assert made.keys() <= gallery.NAMES.keys()
    for name, how in made.items():
        if how.law is None:
            continue
        mechanism = gallery.build(name)
        how.prepare(mechanism)
        model = mechanism.derive().compile("interpreter")
        asked = {how.keys["ahead"]: 0.8, how.keys["turn"]: 0.3}
        options = {"start": dict(how.start), "input": how.law(model), "parameters": asked}
        run = ax.simulate(model, 3.0, save_every=1.0, progress=False, **options)
        assert 0.5 < run.final["surge"] < 1.1 and 0.15 < run.final["yaw_rate"] < 0.45
    assert len(hook.live("ballbot")) < 400_000


@pytest.mark.parametrize("name", [further(name) for name in gallery.NAMES])
def test_every_mechanism_has_a_small_live_page(hook, name):
    assert len(hook.live(name)) < 400_000


def test_pictures_are_taken_of_what_there_is(hook):
    """Names, coordinates and speeds exist; six wheels are six; instants are in order."""
    shown = sys.modules["gallery_pictures"].TAKEN
    assert shown.keys() <= gallery.NAMES.keys()
    for name, how in shown.items():
        mechanism = gallery.build(name, **how.options)
        own = {c for joint in mechanism.connections for c in joint.coordinates}
        speeds = {s for joint in mechanism.connections for s in joint.speeds}
        assert how.pose.keys() <= own and set(how.speeds or ()) <= speeds, name
        assert list(how.times) == sorted(how.times) and bool(how.words) == bool(how.motion)
        if how.motion is not None:
            assert hook.caption(name).startswith("At 0, ")
    six = gallery.build("six_wheel_platform", **shown["six_wheel_platform"].options)
    assert len(six.contacts) == 6


@pytest.mark.parametrize("name", gallery.NAMES)
def test_mechanisms_travel_to_other_processes(name):
    """Pools that start their processes anew pickle what they are given."""
    made = gallery.build(name)
    assert pickle.loads(pickle.dumps(made)) == made
