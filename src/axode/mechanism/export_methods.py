"""The part of a `Mechanism` that writes it for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, cast

from axode.argument_types import check_arguments
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.formats.written.mechanism_text import MechanismText
    from axode.mechanism.mechanism import Mechanism


class ExportMethods:
    """The part of a `Mechanism` that writes it for other programs."""

    def to_urdf(
        self,
        path: str | PathLike[str] | None = None,
        *,
        parameters: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> MechanismText:
        """Write the mechanism as URDF: a tree of links and joints, for ROS and others.

        Universal and cylindrical joints are two joints with a massless link between them, a ball
        joint is three hinges, a screw is a hinge and a slide that follows it.

        Args:
            path: File to write; left out, only the text is returned.
            parameters: Values of parameters by name; their defaults for those left out.
            strict: Raise an error instead of a warning if something cannot be written.

        Raises:
            MechanismError: if the description is wrong.
            NotApplicable: listing everything that URDF cannot express, if `strict`.
            FileError: if the file cannot be written; one that was there is left as it was.

        Warns:
            OmissionWarning: listing everything that URDF cannot express.
        """
        check_arguments(ExportMethods.to_urdf, locals())
        return call_stage("urdf_text", cast("Mechanism", self), path, parameters, strict=strict)

    def to_mjcf(
        self,
        path: str | PathLike[str] | None = None,
        *,
        parameters: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> MechanismText:
        """Write the mechanism as MJCF, for MuJoCo.

        Loops and couplings are equality constraints, which MuJoCo holds with stiff springs. The
        home configuration is the keyframe `home`.

        Args:
            path: File to write; left out, only the text is returned.
            parameters: Values of parameters by name; their defaults for those left out.
            strict: Raise an error instead of a warning if something cannot be written.

        Raises:
            MechanismError: if the description is wrong.
            LoopNotClosed: if no configuration near home closes its loops.
            NotApplicable: listing everything that MJCF cannot express, if `strict`.
            FileError: if the file cannot be written; one that was there is left as it was.

        Warns:
            OmissionWarning: listing everything that MJCF cannot express.
        """
        check_arguments(ExportMethods.to_mjcf, locals())
        return call_stage("mjcf_text", cast("Mechanism", self), path, parameters, strict=strict)

    def to_sdf(
        self,
        path: str | PathLike[str] | None = None,
        *,
        parameters: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> MechanismText:
        """Write the mechanism as SDF, for Gazebo, Drake and others.

        The links of a mechanism with loops are placed where its loops are closed near home, and
        its coordinates count from there: joints of SDF have one frame and not two.

        Args:
            path: File to write; left out, only the text is returned.
            parameters: Values of parameters by name; their defaults for those left out.
            strict: Raise an error instead of a warning if something cannot be written.

        Raises:
            MechanismError: if the description is wrong.
            LoopNotClosed: if no configuration near home closes its loops.
            NotApplicable: listing everything that SDF cannot express, if `strict`.
            FileError: if the file cannot be written; one that was there is left as it was.

        Warns:
            OmissionWarning: listing everything that SDF cannot express.
        """
        check_arguments(ExportMethods.to_sdf, locals())
        return call_stage("sdf_text", cast("Mechanism", self), path, parameters, strict=strict)
