"""Trees and a closed platform against Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

from benchmarks.mechanisms import platform, platform_coordinates, platform_twist
from benchmarks.peers.pinocchio_model import pinocchio_peer
from tests.peers.pinocchio_tree import PinocchioTree
from tests.peers.trees import (
    GROUND,
    PINOCCHIO_KINDS,
    random_coordinates,
    random_tree,
    relative_error,
    to_axode,
)

# Both compute in float64 with condition numbers of the mass matrix around 1e3: rounding leaves
# about 1e-13, and any wrong term is larger than 1e-3.
TOLERANCE = 1e-9
OF_DIFFERENCES = 1e-6  # truncated and rounded at a step of 1e-6
SEEDS = range(18)


class Case:
    """A random tree in both libraries at a random state."""

    def __init__(self, seed: int) -> None:
        links = random_tree(seed, PINOCCHIO_KINDS)
        rng = np.random.default_rng(1000 + seed)
        self.pinocchio = PinocchioTree(links)
        self.model = to_axode(links).derive().compile("interpreter")
        coordinates = random_coordinates(links, rng)
        self.q = np.concatenate(coordinates)
        n = len(self.model.independent)
        self.v, self.v_dot, self.u = rng.uniform(-2, 2, (3, n))
        self.their_q = self.pinocchio.q(coordinates)
        self.their_v = self.pinocchio.vector(self.v)

    @property
    def theirs(self) -> tuple[pin.Model, pin.Data]:
        return self.pinocchio.model, self.pinocchio.data


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def test_every_kind_of_joint_occurs():
    trees = [random_tree(seed, PINOCCHIO_KINDS) for seed in SEEDS]
    assert {link.kind for tree in trees for link in tree} == set(PINOCCHIO_KINDS)
    parents = [[link.parent for link in tree] for tree in trees]
    assert any(len(set(p)) < len(p) for p in parents), "no tree branches"
    assert any(p.count(GROUND) > 1 for p in parents), "no tree has two joints on the ground"


def test_poses(case: Case):
    model, data = case.theirs
    pin.framesForwardKinematics(model, data, case.their_q)
    wanted = [data.oMf[model.getFrameId(body)].homogeneous for body in case.model.bodies]
    assert relative_error(case.model.poses(case.q), np.array(wanted)) < TOLERANCE


def test_mass_matrix(case: Case):
    model, data = case.theirs
    M = pin.crba(model, data, case.their_q)
    M = np.triu(M) + np.triu(M, 1).T  # it fills the upper triangle
    order = case.pinocchio.order
    assert relative_error(case.model.mass_matrix(case.q), M[np.ix_(order, order)]) < TOLERANCE


def test_bias_and_gravity(case: Case):
    wanted = pin.nonLinearEffects(*case.theirs, case.their_q, case.their_v)
    found = case.model.bias(case.q, case.v) - case.model.potential_force(case.q)
    assert relative_error(found, wanted[case.pinocchio.order]) < TOLERANCE


def test_inverse_dynamics(case: Case):
    their_v_dot = case.pinocchio.vector(case.v_dot)
    wanted = pin.rnea(*case.theirs, case.their_q, case.their_v, their_v_dot)
    found = case.model.inverse_dynamics(case.q, case.v, case.v_dot)
    assert relative_error(found, wanted[case.pinocchio.order]) < TOLERANCE


def test_direct_dynamics(case: Case):
    their_u = case.pinocchio.vector(case.u)
    wanted = pin.aba(*case.theirs, case.their_q, case.their_v, their_u)
    found = case.model.forward_dynamics(case.q, case.v, case.u)
    assert relative_error(found, wanted[case.pinocchio.order]) < TOLERANCE


def test_twists(case: Case):
    model, data = case.theirs
    pin.forwardKinematics(model, data, case.their_q, case.their_v)
    pin.updateFramePlacements(model, data)
    wanted = []
    for link in case.pinocchio.links:
        frame = model.getFrameId(link.name)
        velocity = pin.getFrameVelocity(model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        arm = data.oMf[frame].rotation @ link.com
        at_com = velocity.linear + np.cross(velocity.angular, arm)
        wanted.append(np.concatenate([velocity.angular, at_com]))
    assert relative_error(case.model.twists(case.q, case.v), np.array(wanted)) < TOLERANCE


# loops -----------------------------------------------------------------------------------------

LEGS = 6
CHOICES = {"platform twist": platform_twist(), "leg rates": [f"leg{k}.rate" for k in range(LEGS)]}


class PlatformCase:
    """A 6-UPS platform in both libraries, at states that close its loops and keep them closed.

    `constraintDynamics` runs with zero Baumgarte gains and mu = 0, so that its proximal iteration
    is one exact solve and does not limit the agreement.
    """

    def __init__(self, independent: list[str]) -> None:
        mechanism = platform(LEGS)
        self.peer = pinocchio_peer(mechanism)
        self.model = mechanism.derive(independent=independent).compile("interpreter")
        rng = np.random.default_rng(7)
        self.states = [self._state(rng) for _ in range(5)]

    def _state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        quaternion = np.array([1.0, *rng.uniform(-0.15, 0.15, 3)])
        position = np.array([0.0, 0.0, 0.7]) + rng.uniform(-0.1, 0.1, 3)
        named = platform_coordinates(LEGS, position, quaternion / np.linalg.norm(quaternion))
        q = np.array([named[name] for name in self.model.coordinates])
        return q, rng.uniform(-1, 1, 6), rng.uniform(-80, 80, LEGS)

    def forces(self, u: np.ndarray) -> np.ndarray:
        """Motor forces as forces on all speeds of the tree."""
        force = np.zeros(len(self.model.speed_names))
        for k, value in enumerate(u):
            force[self.model.speed_names.index(f"leg{k}.rate")] = value
        return force


@pytest.fixture(scope="module", params=CHOICES, ids=lambda name: name.replace(" ", "_"))
def platform_case(request: pytest.FixtureRequest) -> PlatformCase:
    return PlatformCase(CHOICES[request.param])


def test_platform_states_close_the_loops(platform_case: PlatformCase):
    for q, _, _ in platform_case.states:
        assert np.abs(platform_case.model.residual(q)).max() < 1e-14


def test_platform_direct_dynamics(platform_case: PlatformCase):
    model = platform_case.model
    for q, nu, u in platform_case.states:
        v = model.joint_speeds(q, nu)
        wanted, _ = platform_case.peer.direct_dynamics(q, v, platform_case.forces(u))
        found = model.accelerations(q, nu, model.forward_dynamics(q, nu, u))
        assert relative_error(found, wanted) < TOLERANCE


def test_platform_constraint_forces(platform_case: PlatformCase):
    model = platform_case.model
    for q, nu, u in platform_case.states:
        v = model.joint_speeds(q, nu)
        _, wanted = platform_case.peer.direct_dynamics(q, v, platform_case.forces(u))
        found = model.multipliers(q, nu, u).reshape(LEGS, 3)  # in the rods' axes, as theirs
        assert relative_error(found, wanted) < TOLERANCE


def test_platform_inverse_dynamics(platform_case: PlatformCase):
    """The forces Axode asks of the legs make Pinocchio's platform accelerate as asked."""
    model = platform_case.model
    for q, nu, wanted in platform_case.states:
        nu_dot = 0.05 * wanted
        u = model.inverse_dynamics(q, nu, nu_dot)
        v_dot, _ = platform_case.peer.direct_dynamics(
            q, model.joint_speeds(q, nu), platform_case.forces(u)
        )
        independent = [model.speed_names.index(name) for name in model.independent]
        assert relative_error(v_dot[independent], nu_dot) < TOLERANCE


def has_universal(seed: int) -> bool:
    return any(link.kind == "universal" for link in random_tree(seed, PINOCCHIO_KINDS))


def differences(function, step: float = 1e-6) -> np.ndarray:
    """Central differences of a function of displacements."""
    n = function(None).size
    moves = step * np.eye(n)
    columns = [(function(d) - function(-d)) / (2 * step) for d in moves]
    return np.stack(columns, axis=1)


def test_derivatives_of_direct_dynamics(case: Case):
    """Where a joint is universal, against differences: Pinocchio 4 forgets that its axes turn."""
    model, data = case.theirs
    order = np.ix_(case.pinocchio.order, case.pinocchio.order)
    force = case.pinocchio.vector(case.u)
    pin.computeABADerivatives(model, data, case.their_q, case.their_v, force)
    by_q, by_v = data.ddq_dq.copy(), data.ddq_dv.copy()
    Minv = np.triu(data.Minv) + np.triu(data.Minv, 1).T  # it fills the upper triangle
    tolerance = TOLERANCE
    if any(link.kind == "universal" for link in case.pinocchio.links):
        tolerance = OF_DIFFERENCES

        def moved(d: np.ndarray | None) -> np.ndarray:
            q = case.their_q if d is None else pin.integrate(model, case.their_q, d)
            return pin.aba(model, data, q, case.their_v, force)

        def sped(d: np.ndarray | None) -> np.ndarray:
            v = case.their_v if d is None else case.their_v + d
            return pin.aba(model, data, case.their_q, v, force)

        by_q, by_v = differences(moved), differences(sped)
    ours = case.model.derivatives("forward_dynamics", case.q, case.v, case.u)
    for found, wanted in ((ours.by_q, by_q), (ours.by_nu, by_v), (ours.by_u, Minv)):
        assert relative_error(found, wanted[order]) < tolerance


@pytest.mark.parametrize("seed", [s for s in SEEDS if not has_universal(s)])
def test_derivatives_of_inverse_dynamics(seed: int):
    case = Case(seed)
    model, data = case.theirs
    order = np.ix_(case.pinocchio.order, case.pinocchio.order)
    v_dot = case.pinocchio.vector(case.v_dot)
    pin.computeRNEADerivatives(model, data, case.their_q, case.their_v, v_dot)
    ours = case.model.derivatives("inverse_dynamics", case.q, case.v, nu_dot=case.v_dot)
    for found, wanted in ((ours.by_q, data.dtau_dq), (ours.by_nu, data.dtau_dv)):
        assert relative_error(found, wanted[order]) < TOLERANCE


@pytest.mark.slow
def test_derivatives_of_a_closed_platform():
    """Pinocchio's are by all joints as if loops could open: along what keeps them closed, ours."""
    mechanism = platform()
    model = mechanism.derive().compile("interpreter")
    quaternion = np.array([1.0, 0.05, -0.08, 0.1])
    pose = np.array([0.03, -0.02, 0.75]), quaternion / np.linalg.norm(quaternion)
    found = platform_coordinates(6, *pose)
    q = np.array([found[name] for name in model.coordinates])
    rng = np.random.default_rng(3)
    nu, u = rng.normal(size=6), rng.uniform(-50, 50, 6)
    peer = pinocchio_peer(mechanism, split_universals=True)
    force = np.zeros(len(model.speed_names))
    force[[model.speed_names.index(name) for name in model.independent]] = u
    peer.direct_dynamics(q, model.joint_speeds(q, nu), force)
    theirs = peer.model, peer.data, peer.loops, peer._loop_data
    pin.computeConstraintDynamicsDerivatives(*theirs)
    at = np.ix_(np.argsort(peer.speed_order), np.argsort(peer.speed_order))
    by_q, by_v, by_force = (x[at] for x in (peer.data.ddq_dq, peer.data.ddq_dv, peer.data.ddq_dtau))
    Theta = model.speed_map(q)
    moved = model.jacobian("joint_speeds", "q", q, nu) @ model.tangent_map(q)
    own = [model.speed_names.index(name) for name in model.independent]
    ours = model.derivatives("forward_dynamics", q, nu, u)
    assert relative_error(ours.by_q, (by_q @ Theta + by_v @ moved)[own]) < TOLERANCE
    assert relative_error(ours.by_nu, (by_v @ Theta)[own]) < TOLERANCE
    assert relative_error(ours.by_u, by_force[np.ix_(own, own)]) < TOLERANCE
