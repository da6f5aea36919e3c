"""Time-optimal motions: closed forms, other solvers, one limit active, limits kept."""

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, NotApplicable
from axode.model.model_parts import facts_of
from axode.motions.time_optimum import PathRows, pass_paths

MASS, FORCE = 2.0, 4.0


def cart(damping: float = 0.0, limit: float | None = None) -> ax.Model:
    """A mass on a rail."""
    bot = ax.Mechanism("cart", gravity=(0, 0, 0))
    body = bot.add_body("body", mass=MASS, inertia=ax.Inertia.point())
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=body)
    bot.add_motor("motor", "x", input="f", limit=limit)
    if damping:
        bot.add_damper("oil", "x", coefficient=damping)
    return bot.derive().compile()


def gantry() -> ax.Model:
    """A mass of 2 kg that two motors move along x and y."""
    bot = ax.Mechanism("gantry", gravity=(0, 0, 0))
    beam = bot.add_body("beam", mass=1e-9, inertia=ax.Inertia.point())
    body = bot.add_body("body", mass=MASS, inertia=ax.Inertia.point())
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=beam)
    bot.add_joint("y", ax.Prismatic("y"), parent=beam, child=body)
    bot.add_motor("mx", "x", input="fx")
    bot.add_motor("my", "y", input="fy")
    return bot.derive().compile()


def pendulum() -> ax.Model:
    """A point mass of 1 kg on a rod of 0.5 m that turns about y."""
    bot = ax.Mechanism("pendulum")
    body = bot.add_body("bob", mass=1.0, com=(0, 0, -0.5), inertia=ax.Inertia.point())
    bot.add_joint("theta", ax.Revolute("y"), parent=bot.ground, child=body)
    bot.add_motor("motor", "theta", input="tau")
    return bot.derive().compile()


@pytest.fixture(scope="module")
def rail() -> ax.Model:
    return cart()


@pytest.fixture(scope="module")
def five_bar() -> ax.Model:
    return ax.gallery.build("five_bar").derive().compile()


@pytest.fixture(scope="module")
def table() -> ax.Model:
    return gantry()


TIP = [{"tip.x": x, "tip.y": y} for x, y in ((0.0, 0.30), (0.1, 0.35), (0.05, 0.25), (-0.1, 0.3))]


def way(x: float) -> list[dict[str, float]]:
    return [{"x": 0.0}, {"x": x}]


# closed forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1e-14, 1.0, 1e6])
def test_double_integrator(rail, distance):
    motion = ax.motions.time_optimal(rail, way(distance), torque=FORCE)
    exact = 2 * np.sqrt(distance * MASS / FORCE)
    assert motion.duration == pytest.approx(exact, rel=1e-9)
    (_, first), (middle, last) = motion.optimum.switches
    assert (first, last) == ("+f", "-f") and middle == pytest.approx(exact / 2, rel=1e-9)


def test_limits_of_speed_and_acceleration_make_a_trapezoid(rail):
    motion = ax.motions.time_optimal(rail, way(1.0), speed=0.5, acceleration=1.5)
    same = ax.motions.trapezoidal(*way(1.0), speed=0.5, acceleration=1.5)
    assert motion.duration == pytest.approx(same.duration, rel=1e-5)
    times = np.linspace(0, same.duration, 300)
    np.testing.assert_allclose(motion.values(times)[0], same.values(times)[0], atol=2e-5)
    assert [name for _, name in motion.optimum.switches] == [
        "+x.rate acceleration",
        "+x.rate speed",
        "-x.rate acceleration",
    ]


def test_motors_have_their_own_limits():
    model = cart(limit=FORCE)
    own = ax.motions.time_optimal(model, way(1.0)).duration
    assert own == pytest.approx(2 * np.sqrt(MASS / FORCE), rel=1e-9)
    other = ax.motions.time_optimal(model, way(1.0), torque={"f": 4 * FORCE}).duration
    assert other == pytest.approx(own / 2, rel=1e-9)


def test_viscous_friction():
    """m a + d v = F, then -F: both speeds in closed form, the switch where the ways add up."""
    from scipy.optimize import brentq

    d, tau = 3.0, MASS / 3.0  # time constant m / d
    top = FORCE / d

    def brake(v):  # time and distance from v to rest under -F - d v
        t = tau * np.log1p(v / top)
        return t, tau * v - top * t

    def distance(t):
        v = top * -np.expm1(-t / tau)
        return top * t - tau * v + brake(v)[1]

    push = brentq(lambda t: distance(t) - 1.0, 1e-6, 10.0, xtol=1e-14)
    exact = push + brake(top * -np.expm1(-push / tau))[0]
    motion = ax.motions.time_optimal(cart(d), way(1.0), torque=FORCE)
    assert motion.duration == pytest.approx(exact, rel=5e-6)
    assert motion.optimum.switches[1][0] == pytest.approx(push, abs=2e-3)
    assert motion.optimum.excess < 1e-4


def test_strong_friction_and_slow_paths():
    """A minute or a millisecond, and friction that leaves hardly any inertia to feel."""
    for length, damping in ((1e3, 1e3), (1e-6, 3.0), (1.0, 1e5)):
        motion = ax.motions.time_optimal(cart(damping), way(length), torque=FORCE)
        steady = length * damping / FORCE  # at the speed that the force holds
        assert motion.duration > steady and motion.optimum.excess < 1e-4
        if damping > 100:
            assert motion.duration == pytest.approx(steady, rel=1e-2)


def test_pendulum_under_gravity():
    """Speeds from the energy, the time by quadrature."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    inertia, weight, tau, end = 0.25, 9.81 * 0.5, 6.0, 2.0

    def up(q):
        return 2 / inertia * (tau * q + weight * (np.cos(q) - 1))

    def down(q):
        return 2 / inertia * (tau * (end - q) + weight * (np.cos(q) - np.cos(end)))

    switch = brentq(lambda q: up(q) - down(q), 0.1, end)
    # s^2 from the ends takes the square roots away
    exact = quad(lambda s: 2 * s / np.sqrt(up(s * s)), 0, np.sqrt(switch))[0]
    exact += quad(lambda s: 2 * s / np.sqrt(down(end - s * s)), 0, np.sqrt(end - switch))[0]
    motion = ax.motions.time_optimal(pendulum(), [{"theta": 0.0}, {"theta": end}], torque=tau)
    assert motion.duration == pytest.approx(exact, rel=1e-5)
    assert [name for _, name in motion.optimum.switches] == ["+tau", "-tau"]


def test_a_motor_too_weak_to_hold_is_refused():
    """Momentum would carry it past 90 degrees, but not from rest on the way up."""
    model = pendulum()
    places = [{"theta": 1.2}, {"theta": 2.0}]
    with pytest.raises(InvalidArgument) as caught:
        ax.motions.time_optimal(model, places, torque=4.0)
    text = str(caught.value)
    assert "'pendulum' cannot pass the path: at 46.4 % of it standing still takes" in text
    assert "N m of 'tau', 0.905 N m more than its limit of 4 N m" in text
    swing = ax.motions.time_optimal(model, [{"theta": -0.6}, {"theta": 0.6}], torque=4.0)
    assert swing.optimum.excess < 1e-4


# laws --------------------------------------------------------------------------------------------


def test_one_limit_is_active_almost_everywhere(five_bar):
    motion = ax.motions.time_optimal(five_bar, TIP, torque=2.0)
    assert (motion.optimum.saturation > 1 - 1e-6).mean() > 0.99
    assert motion.optimum.excess < 1e-4
    times = np.sort(np.random.default_rng(1).uniform(0, motion.duration, 400))
    run = ax.inverse_dynamics(five_bar, motion, times=times)
    efforts = np.abs([run["tau1"], run["tau2"]])
    assert efforts.max() < 2.0 * (1 + 1.1e-4)
    assert (efforts.max(axis=0) > 2.0 * (1 - 1e-3)).mean() > 0.95
    assert (efforts.min(axis=0) < 2.0 * (1 - 1e-3)).mean() > 0.95  # not both


def test_strong_motors_are_faster_by_the_root(five_bar):
    once, twice = (
        ax.motions.time_optimal(five_bar, TIP, torque=tau, points=301).duration for tau in (1, 2)
    )
    assert once / twice == pytest.approx(np.sqrt(2), rel=1e-12)


def test_the_way_back_takes_as_long(five_bar):
    there, back = (
        ax.motions.time_optimal(five_bar, places, torque=1.0, points=601).duration
        for places in (TIP, TIP[::-1])
    )
    assert there == pytest.approx(back, rel=2e-5)


def test_finer_grids_converge(five_bar):
    coarse, fine, finest = (
        ax.motions.time_optimal(five_bar, TIP, torque=1.0, points=n).duration
        for n in (101, 401, 1601)
    )
    assert abs(fine - finest) < abs(coarse - finest) / 3 < 1e-3 * finest


def test_lists_of_paths_are_solved_together(five_bar):
    paths = [
        ax.motions.through([*TIP[:2], {"tip.x": x, "tip.y": 0.28}], times=[0, 1, 2])
        for x in (0.02, 0.0, -0.05)
    ]
    together = ax.motions.time_optimal(five_bar, paths, torque=1.0, points=201)
    for path, motion in zip(paths, together, strict=True):
        alone = ax.motions.time_optimal(five_bar, path, torque=1.0, points=201)
        assert motion.duration == pytest.approx(alone.duration, rel=1e-12)


def test_a_straight_way_has_any_motion_for_its_path(five_bar):
    start, end = {"theta1": 2.0, "theta2": 1.1}, {"theta1": 1.6, "theta2": 1.2}
    paths = [
        ax.motions.minimum_jerk(start, end, 1.0),
        ax.motions.trapezoidal(start, end, acceleration=1.0),
        [start, end],
        [start, {"theta1": 1.8 + 1e-9, "theta2": 1.15}, end],  # nearly straight
        [start, {"theta1": 2.0 - 1e-9, "theta2": 1.1}, end],  # nearly repeated
    ]
    durations = [
        ax.motions.time_optimal(five_bar, path, torque=1.0, points=301).duration for path in paths
    ]
    np.testing.assert_allclose(durations, durations[0], rtol=1e-5)
    again = ax.motions.time_optimal(
        five_bar, ax.motions.time_optimal(five_bar, TIP, torque=1.0, points=301), torque=1.0,
        points=301,
    )  # fmt: skip
    assert again.optimum.places.size == 301


# zero inertia, and another solver ----------------------------------------------------------------


def circle_rows(points: int) -> tuple[np.ndarray, PathRows]:
    """Rows of a mass on a circle of 1 m under forces along x and y: x'' = -sin u - cos x, ..."""
    s = np.linspace(0.0, 2 * np.pi, points)
    first, second = np.stack([-np.sin(s), np.cos(s)], -1), np.stack([-np.cos(s), -np.sin(s)], -1)
    scale = MASS / FORCE
    zero = np.zeros_like(first)
    rows = PathRows(
        scale * first[None], scale * second[None], zero[None], np.full((1, points), 1e6)
    )
    return s[np.newaxis], rows


def duration(s: np.ndarray, squares: np.ndarray) -> float:
    roots = np.sqrt(np.abs(squares))
    return float((2 * np.diff(s) / (roots[1:] + roots[:-1])).sum())


def best_squares(grid: np.ndarray, rows: PathRows) -> np.ndarray:
    """The largest sum of squared rates by a general solver of linear programs."""
    from scipy.optimize import linprog

    s, (a, b, c) = grid[0], (part[0] for part in (rows.a, rows.b, rows.c))
    n = s.size
    blocks, bounds = [], []
    for i in range(n - 1):
        slope = np.zeros(n)
        slope[[i, i + 1]] = np.array([-1.0, 1.0]) / (2 * (s[i + 1] - s[i]))
        for k in (i, i + 1):
            row = a[k][:, None] * slope
            row[:, k] += b[k]
            blocks += [row, -row]
            bounds += [1 - c[k], 1 + c[k]]
    ends = np.zeros((2, n))
    ends[0, 0] = ends[1, -1] = 1.0
    found = linprog(
        -np.ones(n), np.concatenate(blocks), np.concatenate(bounds), ends, [0.0, 0.0],
        bounds=list(zip(np.zeros(n), rows.most[0], strict=True)), method="highs",
    )  # fmt: skip
    assert found.success
    return np.asarray(found.x)


@pytest.mark.parametrize("points", [33, 41, 101])
def test_circle_with_points_of_zero_inertia_against_linear_programming(points):
    """Next to such a point, less speed now allows more later: no squares are largest everywhere."""
    grid, rows = circle_rows(points)
    ours = pass_paths(grid, rows, np.zeros(1), np.zeros(1)).squares[0]
    best = best_squares(grid, rows)
    assert np.abs(ours - best).max() < 40 / points**2
    assert duration(grid[0], ours) == pytest.approx(duration(grid[0], best), rel=1 / points**2)


def test_random_rows_against_linear_programming():
    rng = np.random.default_rng(3)
    s = np.linspace(0, 1, 40)

    def smooth(scale: float) -> np.ndarray:
        waves = rng.normal(size=(3, 4))
        return scale * sum(w * np.cos(k * np.pi * s[:, None] + w) for k, w in enumerate(waves))

    for _ in range(8):
        rows = PathRows(
            smooth(1.0)[None], smooth(1.0)[None], smooth(0.1)[None], np.full((1, 40), 50.0)
        )
        passage = pass_paths(s[None], rows, np.zeros(1), np.zeros(1))
        if np.isfinite(passage.squares).all():
            best = best_squares(s[None], rows)
            np.testing.assert_allclose(passage.squares[0], best, atol=1e-6 * best.max())


def test_duration_against_nonlinear_programming():
    """The time itself as the objective, by IPOPT: the same squared rates."""
    import casadi as ca

    grid, rows = circle_rows(61)
    ours = pass_paths(grid, rows, np.zeros(1), np.zeros(1)).squares[0]
    s, n = grid[0], 61
    x = ca.SX.sym("x", n)
    u = (x[1:] - x[:-1]) / (2 * (s[1:] - s[:-1]))
    g = []
    for k, at in ((0, x[:-1]), (1, x[1:])):
        for j in range(2):
            a, b = (part[0, k : n - 1 + k, j] for part in (rows.a, rows.b))
            g.append(a * u + b * at)
    time = ca.sum1(2 * (s[1:] - s[:-1]) / (ca.sqrt(x[1:] + 1e-14) + ca.sqrt(x[:-1] + 1e-14)))
    solver = ca.nlpsol(
        "topp", "ipopt", {"x": x, "f": time, "g": ca.vertcat(*g)},
        {"ipopt.print_level": 0, "print_time": 0, "ipopt.tol": 1e-9},
    )  # fmt: skip
    free = np.full(n, 1e6)
    free[[0, -1]] = 0.0
    found = solver(x0=0.5 * ours, lbx=0, ubx=free, lbg=-1, ubg=1)
    assert float(found["f"]) == pytest.approx(duration(s, ours), rel=1e-6)


def test_gantry_on_a_circle(table):
    """At 45 degrees both motors push the mass round; where one has no inertia it bends the way."""
    angles = np.linspace(0, 2 * np.pi, 41)
    places = [{"x": np.cos(t), "y": np.sin(t)} for t in angles]
    motion = ax.motions.time_optimal(table, places, torque=FORCE)
    optimum = motion.optimum
    assert (optimum.saturation > 1 - 1e-5).mean() > 0.97
    assert optimum.excess < 1e-4
    assert len(optimum.switches) < 30
    speed = np.hypot(*motion.values(optimum.times)[1].T)
    assert speed.max() < 2**0.25 * np.sqrt(FORCE / MASS) * 1.01  # the force's component inwards
    at_axis = speed[np.abs(np.sin(2 * np.arctan2(*motion.values(optimum.times)[0].T))) < 0.02]
    assert at_axis[1:-1].max() < np.sqrt(FORCE / MASS) * 1.01


# platforms and vehicles --------------------------------------------------------------------------


def test_pose_with_a_limit_of_its_speed(five_bar):
    home = five_bar.poses(five_bar.home)[facts_of(five_bar).bodies.index("crank1")]
    turned = five_bar.poses(ax.assemble(five_bar, {"theta1": 1.5, "theta2": 1.3}).q)
    end = turned[facts_of(five_bar).bodies.index("crank1")]
    places = [{"crank1": home, "theta2": np.pi - 2}, {"crank1": end, "theta2": 1.3}]
    motion = ax.motions.time_optimal(
        five_bar, places, torque=2.0, speed={"crank1": (np.inf, 1.0)}, points=201
    )
    assert "+crank1 rotation speed" in motion.optimum.active
    assert motion.waypoints.magnitudes(motion.values(np.linspace(0, motion.duration, 99)))[0][
        :, 1
    ].max() == pytest.approx(1.0, rel=1e-6)


def test_vehicle_on_a_straight_line():
    robot = ax.gallery.build("differential_drive").derive().compile()
    line = ax.paths.straight(3.0, 2.0)
    fast = ax.motions.time_optimal(robot, line, torque=0.5)
    steady = ax.paths.follow(robot, ax.paths.along("t ** 2 / 2", 0.0, 1.0, heading=0.0))
    force = np.abs(steady["tau_R"]).max()  # for 1 m/s^2
    assert fast.duration == pytest.approx(2 * np.sqrt(3.0 * force / 0.5), rel=1e-6)
    limited = ax.motions.time_optimal(robot, line, torque=0.5, speed={"path": 0.5})
    rates = limited(np.linspace(0, limited.duration, 101))["x_rate"]
    assert rates.max() == pytest.approx(0.5) and "path speed" in limited.optimum.active[500]


@pytest.mark.slow
def test_vehicle_on_a_bend_keeps_its_torques():
    robot = ax.gallery.build("caster_robot").derive().compile()
    bend = ax.paths.circle(2.0, speed=1.0, turns=0.25, start="smooth").placed(1.0, 0.0, 0.3)
    fast = ax.motions.time_optimal(robot, bend, torque=0.5, forward="y", points=201)
    run = ax.paths.follow(robot, fast, forward="y", save_every=fast.duration / 100)
    efforts = np.abs([run["tau1"], run["tau2"]])
    assert efforts.max() < 0.5 * (1 + 1e-3)
    assert (efforts.max(axis=0) > 0.499).mean() > 0.9
    assert run["path.x"][0] == pytest.approx(1.0)


# what is wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "there are no limits: give speed, acceleration or torque"),
        ({"torque": {"g": 1.0}}, "has no input 'g'"),
        ({"torque": -1.0}, "torque, 'f': expected a number > 0, got -1.0"),
        ({"speed": {"y": 1.0}}, "speed: model 'cart' has no signal 'y'"),
        ({"speed": {"x": 1.0, "x.rate": 2.0}}, "means x.rate, which is given twice"),
        ({"torque": 1.0, "points": 2}, "points: expected 3 to 100000, got 2"),
        ({"torque": 1.0, "points": 10**9}, "points: expected 3 to 100000, got 1000000000"),
        ({"speed": 1.0}, "nothing limits accelerations: give acceleration or torque, too"),
        ({"speed": 1.0, "torque": np.inf}, "nothing limits accelerations"),
        ({"torque": np.inf}, "nothing limits the motion at"),
    ],
)
def test_wrong_limits(rail, arguments, text):
    with pytest.raises(InvalidArgument) as caught:
        ax.motions.time_optimal(rail, way(1.0), **arguments)
    assert text in str(caught.value)
    assert "wrench from outside" not in str(caught.value)


def test_wrong_paths(rail, five_bar):
    for path in ("x", [{"x": 0.0}], [1, 2]):
        with pytest.raises(InvalidArgument, match="expected two waypoints or more"):
            ax.motions.time_optimal(rail, path, torque=1.0)
    with pytest.raises(InvalidArgument, match="all waypoints are the same place"):
        ax.motions.time_optimal(rail, [{"x": 1.0}, {"x": 1.0}], torque=1.0)
    different = [
        ax.motions.minimum_jerk({"theta1": 2.0, name: 1.0}, {"theta1": 1.9, name: 1.1}, 1.0)
        for name in ("theta2", "phi1")
    ]
    with pytest.raises(InvalidArgument, match="the motions of a list have to move the same"):
        ax.motions.time_optimal(five_bar, different, torque=1.0)
    pair = {"speed": {"crank1": 1.0}, "torque": 1.0}
    home = five_bar.poses(five_bar.home)[0]
    with pytest.raises(InvalidArgument, match="expected two numbers > 0, for position and rot"):
        ax.motions.time_optimal(
            five_bar, [{"crank1": home, "theta2": 1.0}, {"crank1": home, "theta2": 1.1}], **pair
        )
    robot = ax.gallery.build("differential_drive").derive().compile()
    stops = ax.paths.along("t ** 3", 0.0, 1.0, heading=0.0)
    with pytest.raises(InvalidArgument, match="nothing moves with the path's parameter at"):
        ax.motions.time_optimal(robot, stops, torque=1.0)


def test_two_joints_that_exclude_each_other(table):
    """A bend so tight that speed limits leave nothing is passed slowly, never refused."""
    places = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 0.0}, {"x": 1.0, "y": 1e-3}]
    motion = ax.motions.time_optimal(table, places, acceleration=1.0, points=301)
    assert np.isfinite(motion.duration)


def test_models_that_cannot():
    bot = ax.Mechanism("pair", gravity=(0, 0, 0))
    for name, parent in (("a", bot.ground), ("b", "a")):
        bot.add_body(name, mass=1.0, inertia=ax.Inertia.point())
        bot.add_joint(f"x{name}", ax.Prismatic("x"), parent=parent, child=name)
    bot.add_motor("motor", "xa", input="f")
    places = [{"xa": 0.0, "xb": 0.0}, {"xa": 1.0, "xb": 1.0}]
    with pytest.raises(InvalidArgument, match=r"cannot give the force on 'xa\.rate'"):
        ax.motions.time_optimal(bot.derive().compile(), places, torque=1.0)
    passive = ax.Mechanism("passive")
    passive.add_body("a", mass=1.0, inertia=ax.Inertia.point())
    passive.add_joint("x", ax.Prismatic("x"), parent=passive.ground, child="a")
    model = passive.derive().compile()
    with pytest.raises(InvalidArgument, match="speed: there are no motors; give limits by name"):
        ax.motions.time_optimal(model, way(1.0), speed=1.0)


def test_explicit_time_is_refused():
    bot = ax.Mechanism("shaken", gravity=(0, 0, 0))
    for name, parent in (("x", bot.ground), ("y", "x")):
        bot.add_body(name, mass=1.0, inertia=ax.Inertia.point())
        bot.add_joint(name, ax.Prismatic(name), parent=parent, child=name)
    bot.add_motor("motor", "x", input="f")
    bot.prescribe("y", lambda t: 0.1 * np.sin(t))
    with pytest.raises(NotApplicable, match="depends on time itself"):
        ax.motions.time_optimal(bot.derive().compile(), way(1.0), torque=1.0)
