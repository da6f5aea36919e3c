"""Functions of later stages that methods of earlier ones call, by name.

A description derives, equations compile and print, a run plots: such methods lead forward in the
pipeline, against its imports. What they call stands in this one table, and is imported when it is
called; nothing is loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from axode.errors import naming_packages

T = TypeVar("T")

MODULES = {
    # of a mechanism
    "derive": "symbolic.equations",
    "mechanism_html": "printing.mathml",
    "mjcf_text": "formats.mjcf.mjcf_writer",
    "save": "formats.loading",
    "sdf_text": "formats.sdf.sdf_writer",
    "urdf_text": "formats.urdf.urdf_writer",
    # of equations
    "compile_model": "model.compile",
    "derivation": "printing.derivation.derivation",
    "equations_html": "printing.mathml",
    "integrals_of": "printing.integrals",
    "latex": "printing.latex",
    "readable": "printing.mathml",
    "state_rate_jacobian": "derivatives.lifted_derivatives",
    "sympy_model": "printing.sympy_model",
    # of a model
    "ArrayFunction": "model.wrappers.array_function",
    "JaxFunction": "model.wrappers.jax_function",
    "TorchFunction": "model.wrappers.torch_function",
    "Stepper": "problems.stepping.stepper",
    "assemble": "problems.assemble.assemble",
    "assemble_many": "problems.assemble.assemble",
    "simulate_with_contacts": "problems.contact_events.event_driven",
    "linearize_modes": "problems.contact_events.linear_modes",
    "consistent_speeds": "problems.assemble.start_speeds",
    "export_model": "exports.export",
    # of motors along a motion
    "motor_report": "motors.duty",
    "plot_motors": "show.plot.motor_plots",
    "warn_of_motor_limits": "motors.duty",
    # of robots and their postures
    "direct": "kinematics.postures.postures",
    "inverse_postures": "kinematics.postures.postures",
    "plot_map": "show.plot.maps",
    "plot_postures": "show.plot.kinematics_plots",
    "plot_singularity_map": "show.plot.kinematics_plots",
    "plot_workspace": "show.plot.kinematics_plots",
    # of runs
    "FollowedChanges": "problems.gradients.sensitivities",
    "animate": "show.render.animation",
    "cell_player": "show.report.cell_player",
    "plot": "show.plot.plots",
    "plot_modes": "show.plot.kinematics_plots",
    "plot_sweep": "show.plot.sweep_plots",
    "report": "show.report",
    "view": "show.viewer.viewer",
    "write_mcap": "show.logs.mcap_log",
    "write_rerun": "show.logs.rerun_log",
}


def call_stage(name: str, /, *arguments: Any, **options: Any) -> T:  # type: ignore[type-var]
    """Call a function of `MODULES` and return its result."""
    with naming_packages():
        function = getattr(import_module(f"axode.{MODULES[name]}"), name)
        return function(*arguments, **options)  # type: ignore[no-any-return]
