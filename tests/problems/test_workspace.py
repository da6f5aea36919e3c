"""Workspaces: sizes that are known in closed form, boundaries on limits, singularities."""

import json
import math
import re

import numpy as np
import pytest
from casadi import SX, Function
from scipy.spatial.transform import Rotation

import axode as ax
from axode.cli import run
from axode.kinematics.workspaces.closed_form import closed_form_legs
from axode.kinematics.workspaces.pose_limits import read_limits, segment_distance
from axode.kinematics.workspaces.workspace import PoseEvaluator
from axode.kinematics.workspaces.workspace_result import level_set
from axode.problems.progress import Interrupt
from axode.show.plot.kinematics_plots import limit_group
from emulated_gpu import install
from tests.problems.small_parallel_robots import BASES, TOPS, known_robot, three_rpr
from variants import further


@pytest.fixture(scope="module")
def planar():
    return known_robot("three_rpr")


@pytest.fixture(scope="module")
def hexapod():
    return known_robot("flight_simulator")


def centre(k):
    """Where the output's origin is when leg k has no length, at zero yaw."""
    return np.array(BASES[k]) - TOPS[k]


def test_one_leg_leaves_an_annulus(planar):
    ws = planar.workspace(limits={"l0": (0.4, 0.9)}, grid=80)
    exact = math.pi * (0.9**2 - 0.4**2)
    assert abs(ws.size - exact) < 4 * ws.size_error < 0.01
    radii = np.linalg.norm(ws.boundary.vertices - centre(0), axis=1)
    assert np.minimum(abs(radii - 0.4), abs(radii - 0.9)).max() < 1e-9
    assert not ws.is_cut
    names = {ws.limits[k] for k in np.unique(ws.active)}
    assert names == {"l0 min", "l0 max"}


def test_two_legs_leave_a_lens(planar):
    ws = planar.workspace(limits={"l0": (1e-6, 0.9), "l1": (1e-6, 1.1)}, grid=80)
    d, r, R = float(np.linalg.norm(centre(1) - centre(0))), 0.9, 1.1
    a = math.acos((d * d + r * r - R * R) / (2 * d * r))
    b = math.acos((d * d + R * R - r * r) / (2 * d * R))
    exact = r * r * (a - math.sin(2 * a) / 2) + R * R * (b - math.sin(2 * b) / 2)
    assert abs(ws.size - exact) < 4 * ws.size_error < 0.01


def test_one_leg_in_space_leaves_a_shell(hexapod):
    ws = hexapod.workspace(limits={"l_I": (0.8, 1.2)}, grid=32)
    exact = 4 / 3 * math.pi * (1.2**3 - 0.8**3)
    assert abs(ws.size - exact) < 4 * ws.size_error < 0.05 * exact
    assert np.abs(ws.margin_at(ws.boundary.vertices)).max() < 1e-9
    edges = np.concatenate([ws.boundary.faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
    _, counts = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    assert (counts == 2).all()  # closed


def test_kinds_are_nested(planar):
    turns = [-0.3, 0.0, 0.4]
    same = {"limits": {"l*": (0.5, 1.4)}, "grid": 40, "bounds": {"x": (-1, 1), "y": (-1, 1)}}
    fixed = planar.workspace(at={"yaw": 0.0}, **same)
    some = planar.workspace("reachable", orientations={"yaw": turns}, **same)
    every = planar.workspace("dexterous", orientations={"yaw": turns}, **same)
    assert (every.margin <= fixed.margin).all()
    assert (fixed.margin <= some.margin).all()
    assert 0 < every.inside.sum() < fixed.inside.sum() < some.inside.sum()
    assert every.info["poses"] == 3 * 41**2
    points = every.boundary.vertices
    assert np.abs(every.margin_at(points)).max() < 1e-9


def test_limits_decide_at_the_last_digits(planar):
    length = float(planar.inverse({"x": 0.2, "y": 0.1})["l1"])
    for change in (-1e-9, 1e-9):
        ws = planar.workspace(limits={"l1": (0.1, length + change)}, grid=2)
        assert (ws.margin_at([0.2, 0.1]) > 0) == (change > 0)


def test_the_order_of_the_legs_does_not_matter(planar):
    same = {"limits": {"l*": (0.5, 1.3)}, "bounds": {"x": (-1, 1), "y": (-1, 1)}, "grid": 30}
    first = planar.workspace("pose", **{**same, "grid": 10})
    other = ax.Kinematics(three_rpr(order=(2, 0, 1))).workspace("pose", **{**same, "grid": 10})
    assert np.abs(first.margin - other.margin).max() < 1e-13
    assert np.abs(np.abs(first.determinant) - np.abs(other.determinant)).max() < 1e-13
    assert np.abs(first.dexterity - other.dexterity).max() < 1e-12
    named = [[ws.limits[k] for k in ws.active.ravel()] for ws in (first, other)]
    assert np.mean([a == b for a, b in zip(*named, strict=True)]) > 0.99  # but for ties


def test_legs_that_meet_in_a_point_are_singular_of_type_2(planar):
    """Three lines through a point cannot hold a platform against a turn about it."""
    ws = planar.workspace("pose", bounds={"x": (-1, 1), "y": (-1, 1), "yaw": (-3, 3)}, grid=30)
    assert (ws.determinant > 0).any()
    assert (ws.determinant < 0).any()
    assert ws.regions.max() >= 2
    assert ws.home_part == ws.regions[tuple(np.argmin(np.abs(a)) for a in ws.axes.values())] > 0
    assert set(np.sign(ws.determinant[ws.regions == 1])) == {
        np.sign(ws.determinant[ws.regions == 1])[0]
    }
    k = np.unravel_index(np.argmin(np.abs(ws.determinant)), ws.determinant.shape)
    assert ws.dexterity[k] < 0.05


def test_condition_numbers_are_those_of_the_jacobian(planar):
    length = 0.7
    x, y, yaw = 0.1, -0.2, 0.5
    bounds = {"x": (x, x + 1), "y": (y, y + 1), "yaw": (yaw, yaw + 1)}
    ws = planar.workspace("pose", bounds=bounds, grid=2, length=length)
    R = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    rows = []
    for base, top in zip(BASES, TOPS, strict=True):
        arm = R @ top
        line = np.array([x, y]) + arm - base
        line /= np.linalg.norm(line)
        rows.append([*line, (arm[0] * line[1] - arm[1] * line[0]) / length])
    assert ws.determinant[0, 0, 0] == pytest.approx(np.linalg.det(rows), abs=1e-13)
    assert ws.dexterity[0, 0, 0] == pytest.approx(1 / np.linalg.cond(rows), rel=0.01)
    assert ws.info["length"] == length
    poor = planar.workspace("pose", bounds=bounds, grid=2, length=length, condition=1.01)
    assert poor.margin[0, 0, 0] < 0
    assert poor.limits[poor.active[0, 0, 0]] == "condition"


@pytest.mark.parametrize(
    ("name", "components"),
    [
        further("flight_simulator", None),
        ("three_rrr", ("vx", "vy", "wz")),
        further("five_bar", ("vx", "vy")),
        ("spherical_rrr", ("wx", "wy", "wz")),
    ],
)
def test_dexterity_is_that_of_the_state(name, components):
    robot = known_robot(name)
    expected = robot.dexterity(components=components)
    motion = closed_form_legs(robot).motion
    evaluator = PoseEvaluator(
        closed_form_legs(robot), read_limits(closed_form_legs(robot), {}, None, None, None)
    )
    found = evaluator.measure(motion.r_home[np.newaxis], motion.R_home.reshape(9))[0, 3]
    assert found == pytest.approx(float(expected.distance), rel=1e-3)


def test_distances_of_segments():
    rng = np.random.default_rng(5)
    ends = [SX.sym(name, 3) for name in "abcd"]
    distance = Function("d", ends, [segment_distance((ends[0], ends[1]), (ends[2], ends[3]))])
    s = np.linspace(0, 1, 401)
    for k in range(12):
        a, b, c, d = rng.normal(size=(4, 3))
        d = c + (b - a) * (1 + 1e-9) if k == 0 else d  # nearly parallel
        first, second = (p + s[:, np.newaxis] * (q - p) for p, q in ((a, b), (c, d)))
        least = np.linalg.norm(first[:, np.newaxis] - second, axis=-1).min()
        assert float(distance(a, b, c, d)) == pytest.approx(least, abs=0.02)
        assert float(distance(a, b, c, d)) <= least + 1e-12


def test_the_angle_of_a_revolute_limits(planar):
    ws = planar.workspace(limits={"base0": 0.2, "l0": (0.4, 1.6)}, grid=60)
    sector = 0.5 * (1.6**2 - 0.4**2) * 0.4
    assert abs(ws.size - sector) < 4 * ws.size_error + 1e-3


def test_patterns_mean_what_their_values_fit():
    robot = ax.Kinematics(three_rpr(), driven=["base0", "l1", "l2"])
    legs = closed_form_legs(robot)
    assert set(read_limits(legs, {"*0": (0.5, 1.0)}, None, None, None).driven) == {"base0"}
    assert set(read_limits(legs, {"*1": 0.5}, None, None, None).cones) == {"base1", "top1"}
    both = read_limits(legs, {"base*": 0.5, "l*": (0.5, 1.0)}, None, None, None)
    assert set(both.cones) == {"base1", "base2"}
    assert set(both.driven) == {"l1", "l2"}


def test_an_interrupt_ends_the_sampling(planar, monkeypatch):
    monkeypatch.setattr(
        Interrupt, "pressed", property(lambda self: True, lambda self, on: None), raising=False
    )
    with pytest.raises(ax.errors.Interrupted):
        planar.workspace(limits={"l*": (0.5, 1.3)}, grid=4)


def test_workspaces_end_where_cranks_are_stretched():
    ws = known_robot("three_rrr").workspace(grid=40)
    vertices = ws.boundary.vertices
    spans = np.array([np.linalg.norm(vertices - centre(k), axis=1) for k in range(3)])
    off = np.minimum(abs(spans - 1.35), abs(spans - 0.15)).min(axis=0)
    assert off.max() < 1e-6  # a square root of rounding, where solutions meet
    assert {name.split()[-1] for name in ws.active_shares} == {"reach"}


def test_angles_of_joints_and_distances_of_legs_limit(hexapod):
    r = np.array([0.1, -0.2, 1.05])
    limits = {"l_*": (0.5, 2.0), "cross_I": 0.6, "ball_II": 0.4}
    bounds = {name: (value, value + 0.1) for name, value in zip("xyz", r, strict=True)}
    ws = hexapod.workspace(limits=limits, diameter=0.05, bounds=bounds, grid=2)
    assert {"cross_I angle", "ball_II angle", "l_I and l_II"} <= set(ws.limits)
    tight = hexapod.workspace(limits=limits, diameter=5.0, bounds=bounds, grid=2)
    assert " and " in tight.limits[tight.active[0, 0, 0]]
    alone = hexapod.workspace(limits={"cross_I": 0.6}, bounds=bounds, grid=2)
    home = np.array([0.0, 0.0, 1.0])
    base = np.array([math.cos(math.radians(10)), math.sin(math.radians(10)), 0.0])
    top = np.array([0.5 * math.cos(math.radians(50)), 0.5 * math.sin(math.radians(50)), -0.05])
    one, two = (x + top - base for x in (home, r))
    angle = math.acos(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
    assert alone.margin[0, 0, 0] == pytest.approx(1 - angle / 0.6, abs=1e-12)


def test_orientations_at_a_point_and_other_motions():
    ball = known_robot("spherical_rrr")
    ws = ball.workspace("orientation", grid=16)
    assert list(ws.axes) == ["roll", "pitch", "yaw"]
    assert ws.inside[8, 8, 8]
    assert not ws.inside.all()
    rps = known_robot("three_rps").workspace(
        "pose", limits={"l*": (0.7, 1.5)}, bounds={"z": (0.5, 1.6)}, grid=16
    )
    assert list(rps.axes) == ["z", "roll", "pitch"]
    assert 0 < rps.inside.sum() < rps.inside.size
    assert rps.limits[-1] == "pose"
    line = known_robot("three_rpr").workspace("orientation", limits={"l*": (0.5, 1.2)}, grid=50)
    assert line.boundary.vertices.shape[1] == 1
    assert 0 < line.size < 2 * math.pi
    assert line.size == pytest.approx(line.inside.mean() * 2 * math.pi, abs=0.3)


def test_what_is_written_can_be_read(planar, hexapod, tmp_path):
    ws = planar.workspace(limits={"l*": (0.5, 1.3)}, grid=20)
    ws.save(tmp_path / "ws.npz")
    again = ax.Workspace.load(tmp_path / "ws.npz")
    assert (again.margin == ws.margin).all()
    assert again.size == ws.size
    assert repr(again) == repr(ws)
    assert "area" in repr(ws)
    with pytest.raises(ax.InvalidArgument, match="read from a file has the margins of its grid"):
        again.margin_at([0.0, 0.0])
    with pytest.raises(ax.InvalidArgument, match="margin_at: expected x, y along the last axis"):
        ws.margin_at([0.0, 0.0, 0.0])
    with pytest.raises(ax.InvalidArgument, match=r"'ws\.txt' should end in \.npz, \.stl, \.obj"):
        ws.save(tmp_path / "ws.txt")
    with pytest.raises(ax.InvalidArgument, match="a workspace over x, y has no surface to write"):
        ws.save(tmp_path / "ws.stl")
    with pytest.raises(ax.FileError, match="cannot read the workspace"):
        ax.Workspace.load(tmp_path / "none.npz")
    solid = hexapod.workspace(limits={"l_*": (0.9, 1.4)}, grid=12)
    solid.save(tmp_path / "ws.stl")
    data = (tmp_path / "ws.stl").read_bytes()
    count = int(np.frombuffer(data[80:84], np.uint32)[0])
    assert count == len(solid.boundary.faces) == (len(data) - 84) // 50
    kind = np.dtype([("n", "<f4", 3), ("p", "<f4", (3, 3)), ("more", "<u2")])
    corners = np.frombuffer(data[84:], kind)["p"].astype(float)
    assert np.linalg.det(corners).sum() / 6 == pytest.approx(solid.size, rel=1e-4)
    solid.save(tmp_path / "ws.obj")
    lines = (tmp_path / "ws.obj").read_text().split("\n")
    assert sum(line.startswith("f ") for line in lines) == count


def test_level_sets_of_known_functions():
    axes = [np.linspace(-1, 1, 21)] * 3
    x, y, z = np.meshgrid(*axes, indexing="ij")

    def ball(p):
        return 0.64 - (p**2).sum(axis=-1)

    mesh = level_set(ball(np.stack([x, y, z], axis=-1)), axes, ball)
    assert np.abs(np.linalg.norm(mesh.vertices, axis=1) - 0.8).max() < 1e-11
    assert mesh.enclosed == pytest.approx(4 / 3 * math.pi * 0.512, rel=0.01)
    full = level_set(np.ones((5, 5)), [np.linspace(0, 2, 5), np.linspace(0, 3, 5)])
    assert full.enclosed == pytest.approx(6.0)
    none = level_set(np.full((5, 5), np.nan), [np.linspace(0, 2, 5)] * 2)
    assert none.enclosed == 0.0
    plane = level_set(x - 0.05, axes)  # interpolated
    assert np.abs(plane.vertices[:, 0].min() - 0.05) < 1e-12
    assert plane.enclosed == pytest.approx(0.95 * 4)


def test_edges_between_limits_are_sharp():
    axes = [np.linspace(-1, 1, 16)] * 3
    turn = Rotation.from_euler("zyx", [0.4, 0.3, 0.7]).as_matrix()
    half = np.array([0.7, 0.5, 0.3])

    def box(p):
        return (half - np.abs(p @ turn)).min(axis=-1)

    mesh = level_set(box(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)), axes, box)
    assert np.abs(box(mesh.vertices)).max() < 1e-11
    assert mesh.enclosed == pytest.approx(8 * half.prod(), rel=4e-3)  # 2 % with edges cut off
    corners = mesh.vertices[mesh.faces]
    spans = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    off = np.abs(half - np.abs(corners.mean(axis=1) @ turn)).min(axis=1)
    assert np.average(off, weights=np.linalg.norm(spans, axis=1)) < 1e-3  # 4e-3 with teeth


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_boundaries_of_any_region_are_closed(axes):
    rng = np.random.default_rng(axes)
    values = rng.normal(size=(9,) * axes)  # with every pattern of corners
    mesh = level_set(values, [np.linspace(0, 8, 9)] * axes)
    assert 0 < mesh.enclosed < 8**axes
    signed = np.zeros(len(mesh.vertices))
    if axes == 2:
        np.add.at(signed, mesh.faces[:, 0], 1)
        np.add.at(signed, mesh.faces[:, 1], -1)
        assert not signed.any()
    if axes == 3:
        edges = np.concatenate([mesh.faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
        key = edges.min(axis=1) * len(mesh.vertices) + edges.max(axis=1)
        direction = np.where(edges[:, 0] < edges[:, 1], 1, -1)
        assert not np.bincount(np.unique(key, return_inverse=True)[1], direction).any()


def test_the_mirror_image_below_the_base_is_a_part_of_its_own(hexapod, tmp_path):
    ws = hexapod.workspace(limits={"l_*": (0.95, 1.5)}, grid=24)
    home, mirrored = ws.parts
    assert home.has_home and not mirrored.has_home
    assert home.ranges["z"][0] > 0 > mirrored.ranges["z"][1]
    assert home.size == pytest.approx(mirrored.size, rel=1e-2)
    assert home.size + mirrored.size == pytest.approx(ws.size, rel=1e-9)
    above = hexapod.workspace(limits={"l_*": (0.95, 1.5)}, grid=24, bounds={"z": (0.05, 1.6)})
    assert home.size == pytest.approx(above.size, abs=3 * (ws.size_error + above.size_error))
    assert f"volume {home.size:.6g} m³ reachable from home, of {ws.size:.6g} m³" in repr(ws)
    listed = ws.to_dict()["parts"]
    assert [part["home"] for part in listed] == [True, False]
    assert listed[0]["volume"] == home.size
    ws.save(tmp_path / "two.npz")
    assert repr(ax.Workspace.load(tmp_path / "two.npz")) == repr(ws)


@pytest.mark.parametrize("name, grid", [("planar_3rrr", 40), ("planar_3rrr", 60), ("five_bar", 60)])
def test_the_printed_parts_add_up_to_the_printed_size(name, grid, tmp_path):
    """Singularities tear off parts of a few points each, which are counted together."""
    ws = known_robot(name).workspace(at={"yaw": 0.3} if "3rrr" in name else {}, grid=grid)
    text = repr(ws)
    whole = float(re.search(r"([\d.e-]+) m²(?: in \d|, error)", text)[1])
    listed = [float(size) for size in re.findall(r"^    .*: ([\d.e-]+) m²", text, re.MULTILINE)]
    assert len(listed) == len(ws.parts) + ("the rest" in text) > 1
    assert sum(listed) == pytest.approx(whole, abs=1e-6)
    facts = ws.to_dict()
    areas = [part["area"] for part in (*facts["parts"], facts["rest"])]
    assert sum(areas) == pytest.approx(facts["area"], rel=1e-6)
    assert len(ws.parts) + facts["rest"]["parts"] == ws.regions.max()
    ws.save(tmp_path / "torn.npz")
    assert repr(ax.Workspace.load(tmp_path / "torn.npz")) == text


def test_an_empty_workspace_says_which_limit_it_misses(hexapod):
    near = {"x": (-0.5, 0.5), "y": (-0.5, 0.5), "z": (0.5, 1.5)}
    ws = hexapod.workspace(limits={"l_*": (20.0, 21.0)}, grid=8, bounds=near)
    assert not ws.inside.any()
    assert re.search(r"no pose of the grid is reached: .* beyond 'l_\w+ min' by \d", repr(ws))


def test_singularities_part_a_workspace(tmp_path):
    ws = known_robot("five_bar").workspace(grid=100)
    sizes = [part.size for part in ws.parts]
    assert ws.parts[0].has_home and sum(sizes) == pytest.approx(ws.size, rel=5e-3)
    along = ws.parts[0].boundary.vertices
    values = ws.functions.measure(along)
    assert (values[:, 0] > -1e-9).all()
    on_limit = np.abs(values[:, 0]) < 1e-9
    singular = np.abs(values[:, 2]) < 1e-9 * np.nanmax(np.abs(ws.determinant))
    assert (on_limit | singular).all() and (singular & ~on_limit).any()


def test_wrong_arguments_are_named(planar, hexapod):
    def refused(error, text, robot=planar, kind="constant-orientation", **options):
        with pytest.raises(error, match=text):
            robot.workspace(kind, **options)

    refused(ax.UnknownName, "has no kind 'volume'", kind="volume")
    refused(ax.UnknownName, "has no target 'tpu'", target="tpu")
    refused(ax.UnknownName, r"driven coordinate or passive joint 'k\*'", limits={"k*": (0, 1)})
    refused(ax.UnknownName, "has no pose coordinate 'x'", at={"x": 1.0})
    refused(ax.UnknownName, "has no pose coordinate 'z'", bounds={"z": (0, 1)})
    refused(
        ax.UnknownName,
        "has no pose coordinate 'z'",
        bounds={},
        grid={"z": 4},
        limits={"l*": (1, 2)},
    )
    refused(
        ax.InvalidArgument,
        r"(?s)l0: expected \(smallest, largest\), got .*length: expected a positive number, got -1",
        limits={"l0": (2.0, 1.0)},
        length=-1,
    )
    refused(
        ax.InvalidArgument,
        "ball_I: expected its largest angle from home, up to pi, got 4",
        robot=hexapod,
        limits={"ball_I": 4.0},
    )
    refused(ax.InvalidArgument, r"nothing bounds x, y: give bounds={.*limits of the driven")
    refused(
        ax.InvalidArgument,
        r'nothing bounds z: give bounds={"z": .*}$',
        robot=known_robot("three_rps"),
    )
    refused(ax.InvalidArgument, r"'x' needs \(smallest, largest\), got", bounds={"x": (1, 0)})
    refused(
        ax.InvalidArgument,
        "grid: expected 2 to 100000 cells for 'x', got 1",
        limits={"l*": (1, 2)},
        grid=1,
    )
    refused(
        ax.InvalidArgument,
        "grid: .* points take .* GB, and this machine has .* cells along each axis fit",
        robot=hexapod,
        limits={"l_*": (1, 2)},
        grid=100_000,
    )
    refused(
        ax.InvalidArgument,
        "reachable and dexterous workspaces need orientations, angles by name: orientations={",
        kind="reachable",
    )
    refused(
        ax.InvalidArgument,
        "orientations: expected lists of finite angles by name",
        kind="reachable",
        orientations={"yaw": [math.nan]},
    )
    refused(
        ax.InvalidArgument,
        "orientations are for the kinds reachable and dexterous, and not for constant-orientation",
        orientations={"yaw": [0.0]},
    )
    refused(ax.InvalidArgument, "has no workspace of kind 'pose'", robot=hexapod, kind="pose")
    knees = known_robot("three_legs_with_knees")
    refused(
        ax.NotApplicable,
        r"limits on the distance of the legs need legs with a straight link.*theta_I4",
        robot=knees,
        diameter=0.1,
    )


def test_a_gpu_gives_the_same(planar, monkeypatch):
    same = {"limits": {"l*": (0.5, 1.3)}, "grid": 12}
    expected = planar.workspace(**same)
    gpu = install(monkeypatch)
    planar = ax.Kinematics(planar.mechanism)  # whose functions are not compiled for the CPU
    found = planar.workspace(**same, target="cuda")
    assert gpu.launches
    assert np.abs(found.margin - expected.margin).max() < 1e-13
    assert np.abs(found.dexterity - expected.dexterity).max() < 1e-13
    assert found.size == pytest.approx(expected.size, abs=1e-12)


def test_the_command_prints_and_writes(tmp_path, monkeypatch, capsys, planar):
    monkeypatch.chdir(tmp_path)
    planar.mechanism.save("robot.toml")
    command = ["workspace", "robot.toml", "--limits", "l*=0.5:1.3", "--grid", "20"]
    turns = ["--kind", "dexterous", "--orientations", "yaw=-0.2:0.2:3"]
    assert run([*command, *turns, "--json", "--out", "ws.npz", "--plot", "ws.png"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (tmp_path / "ws.png").stat().st_size > 10_000
    turns = {"yaw": [-0.2, 0.0, 0.2]}
    same = planar.workspace("dexterous", orientations=turns, limits={"l*": (0.5, 1.3)}, grid=20)
    saved = ax.Workspace.load("ws.npz")
    assert saved.size == data["area"] == pytest.approx(same.size, abs=1e-12)
    assert run(["workspace", "robot.toml", "--limits", "l0=1:2:3"]) == 2
    assert "'l0' needs VALUE or LOW:HIGH, and not '1:2:3'" in capsys.readouterr().err


def test_plots_show_what_is_asked(planar, tmp_path):
    solid = planar.workspace("pose", limits={"l*": (0.5, 1.4)}, grid=12)
    figure = solid.plot("dexterity", slices=[0.0], save=tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()
    assert figure.axes[1].get_title("left") == "yaw = 0 rad"
    flat = planar.workspace(limits={"l*": (0.5, 1.4)}, grid=12)
    assert len(flat.plot("regions").axes) == 1
    assert limit_group("cross_III angle") == "cross angle"
    assert limit_group("l_I and l_II") == "legs touch"
    assert limit_group("theta3 max") == "theta max"
    line = planar.workspace("orientation", limits={"l*": (0.5, 1.2)}, grid=20)
    assert line.plot().axes[0].get_ylabel() == "margin"
    with pytest.raises(ax.UnknownName, match="has no quantity 'area'"):
        solid.plot("area")
    with pytest.raises(ax.InvalidArgument, match="plot, slices: expected 1 to 8 values of yaw"):
        solid.plot(slices=[])
