"""Design of robots: choose their geometry, and find what its errors and loads do.

`Study` evaluates designs, values of a description's parameters, over poses in compiled batches,
and optimises them. `error_map` moves the output by tolerances and joint clearances. `force_map`
has the motors' forces over the workspace.
"""

from __future__ import annotations

from axode.design.force_map import ForceMap, force_map
from axode.design.optimum import Optimum
from axode.design.pose_errors import ErrorMap, ErrorSample, error_map
from axode.design.study import Designs, Study

__all__ = [
    "Designs",
    "ErrorMap",
    "ErrorSample",
    "ForceMap",
    "Optimum",
    "Study",
    "error_map",
    "force_map",
]
