"""Tolerances of the whole package: one name and one value per idea, with unit and reason.

`runtime/` and `oracle/` have their own, since the one runs and the other checks without the rest.
"""

# What rounding leaves, of the largest number beside it unless another unit is given.
ONE_ROUNDING = 2e-16  # of one operation
TWO_ROUNDINGS = 4e-16  # of a quotient or a length, after which it may be left as it is
SUM_ROUNDING = 1e-15  # of a sum of a few numbers
ORTHOGONAL = 2e-15  # of one: R^T R - 1 of a rotation matrix that was computed
MIN_STEP = 4e-15  # of the time: a shorter step would hardly change it
PRODUCT_ROUNDING = 1e-14  # also [rad]: entries of products, such as those of rotation matrices
MATRIX_ROUNDING = 1e-13  # also [rad]: products of several matrices; the end of Newton's method
ROUNDING = 1e-12  # also in SI units and of scaled inertia: long computations, factorizations
POLISHED = 1e-11  # of the terms of a row: what Newton's method, or solving by links, leaves
HALF_DIGITS = 1e-8  # differences and scaled rows; squares of what is smaller are rounding
NEGLIGIBLE = 1e-9  # also [rad, or of the length]: solutions, last steps, agreement, what is missed

# When times are the same.
SAME_TIME = 1e-12  # of the largest time, or [s] of short runs: times that were computed
ON_TIME = 1e-9  # of a step, a period or a duration: a time that falls on a grid
JUMP_WIDTH = 1e-10  # of an interval: what changes within so little jumps
SHORTEST_STEP = 1e-6  # [s]: shorter steps end at a pole or where rank is lost

ORDER_EIGHT = 1e-8  # rtol: here and below explicit steps of order eight take less time than of five

# Which singular values, pivots and eigenvalues are zero.
RANK = 1e-9  # of one, or of the largest: pivots, rows and singular values at given numbers
ROW_RANK = 1e-7  # of the largest, a row or a unit motion: where closed to 1e-13
FAINT = 1e-10  # of a row, a limit, a rate or the energy at unit speeds: less of it may be rounding
SPANNING = 1e-6  # of one: singular value or volume of the worst choice that still spans all
NEARLY_SINGULAR = 1e-4  # of the rows: from here on rounding shows, and no choice of rows helps
SMALL_PIVOT = 1e-3  # of one, also [rad] of a flat wheel: singular values and pivots to be watched
SAME_ROOT = 1e-7  # of roots, poles and postures: repeated ones are rounded to half of the digits

# Closing loops and reaching poses, in [rad] or parts of the mechanism's length.
CLOSED = 1e-10  # of the rows' units: a residual that has vanished
PART_OF_TOLERANCE = 1e-3  # of a tolerance: what is below cannot be improved
REACHED = 1e-8  # of the length: a pose or a loop that was searched for
OPEN = 1e-6  # [rad, or of the length]: a configuration given by the user is open or sunk by no more
LEAST_DAMPING = 1e-12  # of the mean squared row length: makes rows regular, moves nothing
STATIONARY = 1e-5  # of rows and their slopes: a gradient below is left to polishing
NEARLY_REAL = 1e-5  # of a root: imaginary part of one that may be real
NEAR_ROOT = 1e-4  # of a root: how far polishing may move it

# Digits that people and programs write.
SEVEN_DIGITS = 1e-6  # relative, also [rad]: formulas, poses, points and periods as they are given
FIVE_DIGITS = 1e-5  # relative: entries of rotation matrices and configurations as they are given
FOUR_DIGITS = 1e-4  # relative: lengths of directions, which are then made one
LOOP_TOLERANCE = 1e-4  # of the length: numbers of five digits close a loop of several links to this
THREE_DIGITS = 5e-3  # relative: data sheets; thin disks meet the triangle rule with equality
POINT_SIZE = 1e-18  # [m^2], inertia per mass of what is a point but for rounding
WELD = 2.0**-20  # of a mesh's extent: points that are nearer are one
LEAST_INERTIA = 2e-15  # [kg, kg m^2]: MuJoCo refuses moving bodies with less than half of it
NOTICEABLE = 1e-3  # relative, also [m, rad]: what readers, drivers and designers take for the same

# Motion and forces.
NO_MOTION = 1e-6  # relative, or [1/s] of a unit motion: closed loops move as much, changes are none
LIES_FLAT = 1e-6  # [rad] between axis and ground normal: the rim has no lowest point
GRAZE = 1e-3  # of the change in a step: an extreme that stays nearer to zero is examined
UNBALANCED = 1e-6  # of the forces that a motion needs, or [N, N m]: what may be missing
ENERGY_TOLERANCE = 1e-5  # of the largest energies of a run: what the audit allows

# Motions in the shortest time, and steered ones.
EXCESS = 1e-4  # of the limits: they are exceeded by less between the points of the grid
SETTLED = 1e-5  # of a duration that does not change any more
ANGLE_JUMP = 5e-3  # [rad] that an angle may change beside its rate

# Paths of roots, of the path's length from one to zero.
NEAR_END = 1e-3  # below it a path that gets stuck ends at infinity or is singular at its end
TOO_NEAR = 1e-11  # a path is stuck

# Numbers that keep quotients finite.
TINY = 1e-300  # of anything
LEAST_PIVOT = 1e-16  # of a trace: condition numbers end at 1e8

# Steps of difference quotients.
DIFFERENCE_STEP = 1e-5  # [rad, rad/s] of steering, or of a cell
LAST_ANGLE_STEP = 1e-7  # [rad, rad/s]: after a step this short only rounding is left
LOGARITHM_STEP = 1e-6  # of the logarithm of a duration
