"""All configurations of a serial robot that give its output body a pose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.threads import check_threads
from axode.errors import NotApplicable
from axode.kinematics.postures.closure_family import ClosureFamily, closure_family
from axode.kinematics.postures.closure_problem import inverse_problem
from axode.kinematics.postures.direct_kinematics import (
    PostureSolver,
    arrange,
    coordinate_map,
    count_solutions,
    locked_state,
    solve_targets,
)
from axode.kinematics.postures.postures import Postures
from axode.kinematics.workspaces.output_motion import output_motion
from axode.kinematics.workspaces.pose_arguments import as_poses
from axode.model.conditions import Conditions
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
REACHED = 1e-8  # error of a pose that is reached, of the robot's size
OUT_OF_REACH = 1e-9  # square of a missing length, relative


def inverse_postures(
    robot: Kinematics, pose: Any, threads: int | None = None, target: str = "cpu"
) -> Postures:
    """Find all configurations; see `Kinematics.all_inverse`."""
    if threads is not None:
        check_threads(threads)
    r, R = as_poses(output_motion(robot.model, robot.output), pose)
    shape = r.shape[:-1]
    matrices = np.concatenate([R, r[..., np.newaxis]], axis=-1).reshape(-1, 3, 4)
    held = np.ascontiguousarray(matrices.reshape(-1, 12))
    closure = inverse_closure(robot)
    parameters = np.array([robot.model.parameters[name] for name in robot.graph.values])
    p = np.tile(parameters, (len(held), 1))
    geometry = closure.geometry_of(held, p)
    found = solve_targets(closure, geometry, threads, target)
    solver = PostureSolver(robot, closure, held, p, geometry, Conditions())
    roots, rows, certified, sign = solver.real(found)
    model = robot.model
    mapping = coordinate_map(robot, closure)
    parts, branches = [], mapping.branches(closure.problem.chains[0])
    for branch in range(branches):
        q, missing = mapping.find(roots, held, p, rows, [branch])
        reached = model.poses(q)[:, model.bodies.index(robot.output), :3] - matrices[rows]
        error = np.abs(reached).max(axis=(1, 2), initial=0.0)
        kept = np.flatnonzero(
            (missing < OUT_OF_REACH) & (error < REACHED * (1.0 + facts_of(model).length))
        )
        parts.append((q[kept], error[kept], certified[kept], sign[kept], rows[kept]))
    solved: Any = tuple(np.concatenate(items) for items in zip(*parts, strict=True))
    reachable = np.bincount(parts[0][-1], minlength=len(held))
    unreachable = np.bincount(rows, minlength=len(held)) - reachable
    counts = count_solutions(found, unreachable).times(branches)
    return arrange(robot, solved, shape, {"pose": matrices}, counts, Conditions())


def inverse_closure(robot: Kinematics) -> ClosureFamily:
    """Polynomials of a serial robot with its output body held, made once.

    Raises:
        NotApplicable: if the robot is not serial, or has not as many joints as the pose needs.
    """
    if robot.inverse_polynomials is not None:
        return robot.inverse_polynomials
    if robot.mechanism.loops:
        raise NotApplicable(
            f"'{robot.mechanism.name}' has loops; all_inverse takes serial robots.\n"
            "  robot.inverse(pose, branch='all') solves the legs of a parallel one."
        )
    held = robot.home_poses[robot.output][:3].ravel()
    problem = inverse_problem(robot.graph, robot.output, locked_state(robot, held, held))
    unknowns, equations = problem.unknowns, problem.equations
    if unknowns != equations or len(problem.chains) != 1:
        motions = "more joints than a pose needs" if unknowns > equations else "too few joints"
        raise NotApplicable(
            f"'{robot.mechanism.name}' has {motions} to reach a pose in finitely many ways: "
            f"{unknowns} unknowns, {equations} equations.\n  axode.inverse_kinematics finds one "
            "configuration, near a start and within limits."
        )
    robot.inverse_polynomials = closure_family(problem)
    return robot.inverse_polynomials
