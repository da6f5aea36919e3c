"""The mechanism as nodes of the browser's scene, moved by poses.

Points leave trails: mass centres by the body's name, contacts by the wheel's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from axode.mechanism.scene.scene import GROUND, Array, Floor, Scene, cord_ends, touch_points
from axode.mechanism.scene.shaping import axes_along
from axode.names import Names
from axode.show.contact_marks import SLIP_MARK
from axode.show.render.meshes import TriangleMesh, meshes, spots
from axode.show.viewer.drive import Pull

PLANE, LINE, SECTION = (240, 242, 245), (214, 218, 224), (190, 196, 204)
SPRING, PULL = (120, 80, 50), (208, 60, 40)
TRAILS = ((26, 71, 186), (208, 95, 22), (19, 143, 97), (170, 75, 150), (102, 77, 31))
TRAIL: dict[str, Any] = {"thickness": 2.5, "thickness_units": "screen"}
SURFACE = (134, 174, 255)
COILS = 7
FADE = 100.0  # extents of the mechanism from the camera: there, floors have faded
DRAG_KEY = "cmd/ctrl"  # held while a body is dragged; without it, the mouse turns the view
MAX_SURFACE_TRIANGLES = 300_000  # of surfaces in files
SPOT, GREY = 0.032, (128, 128, 128)  # radius in sizes of the mechanism; where no colour is given
NONE, CONTACTS = "none", "all contacts"


class Drawing:
    """Nodes of one scene below `/world`, which moves instead of the camera to keep it in view."""

    def __init__(self, server: Any, scene: Scene, poses: Array, *, draggable: bool = False) -> None:
        self._server, self.scene, self._draggable = server, scene, draggable
        self._world = server.scene.add_frame("/world", show_axes=False)
        self._bodies: list[Any] = []
        self._floors: list[tuple[Floor, Any]] = []
        self._cords: Any = None
        self._arrows: Any = None
        self._spots: Any = None
        self._marks: Any = None
        self._trails: dict[str, Any] = {}
        self._inks: dict[str, int] = {}
        self._tips: Any = None
        self._grip: tuple[int, Array, Array] | None = None
        self._pulled: Any = None
        self.followed = False
        self._centre = _centre(poses)
        self.poses = poses
        self._build(poses)

    # making it ---------------------------------------------------------------------------------

    def rebuild(self, scene: Scene, poses: Array) -> None:
        """Replace the shapes."""
        for node in (*self._bodies, *(grid for _, grid in self._floors)):
            node.remove()
        for name in ("/world/ground", "/world/cords"):
            self._server.scene.remove_by_name(name)
        self._bodies, self._floors, self._cords = [], [], None
        self.scene = scene
        self._build(poses)

    def _build(self, poses: Array) -> None:
        add = self._server.scene
        names = {GROUND: "/world/ground"}
        add.add_frame(names[GROUND], show_axes=False)
        for k, body in enumerate(self.scene.bodies):
            names[body] = f"/world/body{k}"
            self._bodies.append(add.add_frame(names[body], show_axes=False))
        drawn = meshes(self.scene, MAX_SURFACE_TRIANGLES)
        for k, mesh in enumerate(drawn):
            node = add.add_mesh_simple(
                f"{names[mesh.body]}/mesh{k}",
                mesh.vertices.astype(np.float32),
                mesh.triangles.astype(np.uint32),
                color=mesh.colour,
                side="double" if mesh.two_sided else "front",
            )
            if self._draggable and mesh.body != GROUND:
                node.on_drag("left", modifier=DRAG_KEY)(self._drag_of(mesh.body))
        grounded = any(floor.body == GROUND for floor in self.scene.floors)
        below = () if grounded else (self._lowest(drawn, poses),)
        self._reach = max(self.scene.size, float(np.linalg.norm(np.ptp(poses[:, :3, 3], axis=0))))
        self._cell = replace(self.scene, size=max(self.scene.size, self._reach / 4)).spacing
        for k, floor in enumerate((*self.scene.floors, *below)):
            grid = self._grid(f"{names[floor.body]}/floor{k}", floor)
            self._floors.append((floor, grid))
        if self.scene.cords:
            self._cords = add.add_line_segments(
                "/world/cords", self._springs(poses), SPRING, thickness=0.006 * self.scene.size
            )
        self.show(poses)

    def _lowest(self, drawn: list[TriangleMesh], poses: Array) -> Floor:
        """Return the lowest height, for a mechanism without a floor."""
        low, up = 0.0, np.array(self.scene.up)
        for mesh in drawn:
            pose = self.scene.pose_of(mesh.body, poses)
            height = mesh.vertices @ (up @ pose[:3, :3]) + up @ pose[:3, 3]
            low = min(low, float(height.min()))
        x, y, z = (low - 0.001 * self.scene.size) * up
        return Floor(GROUND, (float(x), float(y), float(z)), self.scene.up)

    def _grid(self, name: str, floor: Floor) -> Any:
        """Add a floor that fades far from the mechanism.

        A floor on the ground lies around the camera. The page multiplies its width by one metre
        more than the distance at which it fades, so the width is chosen to end beyond that.
        """
        cell, fade = self._cell, FADE * self._reach
        moving = floor.body != GROUND
        width = 2 * self.scene.size if moving else 2.2 * fade / (1.0 + fade)
        return self._server.scene.add_grid(
            name,
            width=width,
            height=width,
            infinite_grid=not moving,
            cell_size=cell,
            section_size=5 * cell,
            cell_color=LINE,
            section_color=SECTION,
            cell_thickness=1.0,
            section_thickness=1.2,
            plane_color=PLANE,
            plane_opacity=0.0 if moving else 1.0,
            shadow_opacity=0.3,
            fade_distance=fade,
            fade_strength=1.5,
            position=floor.point,
            wxyz=_wxyz(axes_along(floor.normal)),
        )

    # dragging it -------------------------------------------------------------------------------

    def _drag_of(self, body: str) -> Any:
        """Return what dragging a mesh of a body does; asynchronous, because events then keep
        their order."""
        place = self.scene.bodies.index(body)

        async def drag(event: Any) -> None:
            if event.phase == "end":
                self._grip = None
                return
            pointer = np.array(event.end_position)
            if event.phase == "start" or self._grip is None:
                pose = self.poses[place]
                held = self._in_model(np.array(event.start_position)) - pose[:3, 3]
                self._grip = place, pose[:3, :3].T @ held, pointer
            else:
                self._grip = *self._grip[:2], pointer

        return drag

    def pull(self) -> Pull | None:
        """Return the body that the pointer drags; None if it drags none."""
        grip, scene = self._grip, self.scene
        if grip is None:
            return None
        body, point, pointer = grip
        centre = np.array(scene.centres[body] if scene.centres else (0.0, 0.0, 0.0))
        return Pull(body, centre, point, self._in_model(pointer), self._reach)

    def _draw_pull(self) -> None:
        """Draw the spring from the point that is held to the pointer."""
        pull = self.pull()
        if self._pulled is not None:
            self._pulled.visible = pull is not None
        if pull is None:
            return
        pose = self.poses[pull.body]
        held = pose[:3, :3] @ pull.point + pose[:3, 3]
        if np.linalg.norm(pull.target - held) < 1e-3 * self.scene.size:
            return
        lines = _coil(held, pull.target, 0.02 * self.scene.size).astype(np.float32)
        if self._pulled is None:
            name = "/world/pull"
            self._pulled = self._server.scene.add_line_segments(name, lines, PULL, **TRAIL)
        self._pulled.points = lines

    def _in_model(self, point: Array) -> Array:
        """Return a point of the browser's world in the model's."""
        inside: Array = self.scene.stance[:3, :3].T @ (point - self._world.position)
        return inside

    # moving it ---------------------------------------------------------------------------------

    def at_once(self) -> AbstractContextManager[None]:
        """Return a context whose changes browsers show in one picture."""
        together: AbstractContextManager[None] = self._server.atomic()
        return together

    def show(self, poses: Array) -> None:
        """Put all bodies where they are: (bodies, 4, 4)."""
        self.poses = poses
        turned = _wxyz(poses[:, :3, :3])
        with self._server.atomic():
            for node, pose, wxyz in zip(self._bodies, poses, turned, strict=True):
                node.position, node.wxyz = pose[:3, 3], wxyz
            if self._cords is not None:
                self._cords.points = self._springs(poses).astype(np.float32)
            self._draw_pull()
            self._keep_in_view(poses)

    def follow(self, on: bool) -> None:
        """Keep the mechanism in view, or let it leave."""
        self.followed = on
        self.show(self.poses)

    def shadows(self, on: bool) -> None:
        """Switch shadows on or off; without them, browsers that have no GPU draw faster."""
        self._server.scene.configure_default_lights(cast_shadow=on)

    def _keep_in_view(self, poses: Array) -> None:
        shift = _centre(poses) - self._centre if self.followed else np.zeros(3)
        turn = self.scene.stance[:3, :3]
        self._world.position, self._world.wxyz = -turn @ shift, _wxyz(turn)
        cell = 5 * self._cell
        for floor, grid in self._floors:
            if floor.body == GROUND:  # its grid moves along
                axes = axes_along(floor.normal)
                steps = np.round((axes.T @ (_centre(poses) - np.array(floor.point)))[:2] / cell)
                grid.position = np.array(floor.point) + axes[:, :2] @ (cell * steps)

    def _springs(self, poses: Array) -> Array:
        width = 0.035 * self.scene.size
        ends = cord_ends(self.scene, poses)
        return np.concatenate([_coil(begin, end, width) for begin, end in ends])

    # drawing on it -----------------------------------------------------------------------------

    def trail(self, name: str, points: Array) -> None:
        """The path of a point so far, (n, 3); fewer than two points remove it."""
        if len(points) < 2:
            if name in self._trails:
                self._trails.pop(name).remove()
            return
        lines = self._path(points)
        if name in self._trails:
            self._trails[name].points = lines
            return
        colour = self._colour(name)
        self._trails[name] = self._server.scene.add_line_segments(
            f"/world/trail_{self._inks[name]}", lines, colour, **TRAIL
        )

    def tips(self, points: Mapping[str, Array]) -> None:
        """Extend trails to the present places of their points: (n, 3) by name."""
        paths = {name: self._path(path) for name, path in points.items()}
        lines = np.concatenate([np.zeros((0, 2, 3), np.float32), *paths.values()])
        colours = [np.full((len(path), 2, 3), self._colour(name)) for name, path in paths.items()]
        if self._tips is not None:
            self._tips.visible = len(lines) > 0
        if not len(lines):
            return
        inks = np.concatenate(colours).astype(np.uint8)
        if self._tips is None:
            self._tips = self._server.scene.add_line_segments("/world/tips", lines, inks, **TRAIL)
        else:
            self._tips.points, self._tips.colors = lines, inks

    def _path(self, points: Array) -> npt.NDArray[np.float32]:
        raised = points + 0.006 * self.scene.size * np.array(self.scene.up)  # not in the floor
        lines: npt.NDArray[np.float32] = np.stack([raised[:-1], raised[1:]], 1).astype(np.float32)
        return lines

    def _colour(self, name: str) -> tuple[int, int, int]:
        return TRAILS[self._inks.setdefault(name, len(self._inks)) % len(TRAILS)]

    def forget_trails(self) -> None:
        """Remove all trails."""
        for line in self._trails.values():
            line.remove()
        self._trails, self._inks = {}, {}
        self.tips({})

    def spots(self, points: Array, colours: npt.NDArray[np.uint8]) -> None:
        """Spots at places, (n, 3), in their colours, (n, 3); none removes them."""
        if self._spots is not None:
            self._spots.visible = len(points) > 0
        if not len(points):
            return
        places, turns = points.astype(np.float32), np.tile([1.0, 0.0, 0.0, 0.0], (len(points), 1))
        if self._spots is None:
            ball = spots(np.zeros((1, 3)), SPOT * self.scene.size, GREY)
            self._spots = self._server.scene.add_batched_meshes_simple(
                "/world/spots",
                ball.vertices.astype(np.float32),
                ball.triangles.astype(np.uint32),
                batched_wxyzs=turns,
                batched_positions=places,
                batched_colors=colours,
            )
        self._spots.batched_wxyzs, self._spots.batched_positions = turns, places
        self._spots.batched_colors = colours

    def marks(self, lines: Array) -> None:
        """Draw marks of rubber on the ground, (n, 2, 3); none removes them."""
        if self._marks is not None:
            self._marks.visible = len(lines) > 0
        if not len(lines):
            return
        wide = 0.014 * self.scene.size
        raised = lines + 0.004 * self.scene.size * np.array(self.scene.up)
        if self._marks is None:
            self._marks = self._server.scene.add_line_segments(
                "/world/marks", raised.astype(np.float32), SLIP_MARK, thickness=wide
            )
        else:
            self._marks.points = raised.astype(np.float32)

    def surface(self, vertices: Array, faces: npt.NDArray[np.intp]) -> None:
        """Draw a surface in the world that one can see through; without triangles, nothing."""
        if len(faces):
            self._server.scene.add_mesh_simple(
                "/world/surface",
                vertices.astype(np.float32),
                faces.astype(np.uint32),
                color=SURFACE,
                opacity=0.35,
                side="double",
            )

    def arrows(self, arrows: tuple[Array, npt.NDArray[np.uint8]] | None) -> None:
        """Arrows from points to points, (n, 2, 3), and their colours; None removes them."""
        if arrows is None or not len(arrows[0]):
            if self._arrows is not None:
                self._arrows.visible = False
            return
        points, colours = arrows
        if self._arrows is None:
            size = self.scene.size
            self._arrows = self._server.scene.add_arrows(
                "/world/forces",
                points.astype(np.float32),
                colours,
                shaft_radius=0.012 * size,
                head_radius=0.03 * size,
                head_length=0.07 * size,
            )
            return
        self._arrows.points, self._arrows.colors = points.astype(np.float32), colours
        self._arrows.visible = True


def _centre(poses: Array) -> Array:
    middle: Array = poses[:, :3, 3].mean(axis=0)
    return middle


def _wxyz(matrices: Array) -> Array:
    quaternions: Array = np.roll(Rotation.from_matrix(matrices).as_quat(), 1, axis=-1)
    return quaternions


def _coil(a: Array, b: Array, width: float) -> Array:
    """A spring as a zigzag: (segments, 2, 3)."""
    side = axes_along(b - a)[:, 0] * width
    share = np.concatenate([[0.0], np.linspace(0.15, 0.85, 2 * COILS + 1), [1.0]])
    points = a + share[:, np.newaxis] * (b - a)
    points[2:-2:2] += side
    points[3:-2:2] -= side
    return np.stack([points[:-1], points[1:]], axis=1)


def trail_names(scene: Scene) -> tuple[str, ...]:
    """Return the names of all points that may leave a trail."""
    contacts = tuple(f"{touch.name} contact" for touch in scene.touches)
    return (NONE, *((CONTACTS,) if len(contacts) > 1 else ()), *contacts, *scene.bodies)


def check_trails(scene: Scene, names: Iterable[str]) -> tuple[str, ...]:
    """Full names of points; `left.contact` is the point called `left contact`.

    Raises:
        UnknownName: listing the known names.
    """
    aliases = {f"{touch.name}.contact": f"{touch.name} contact" for touch in scene.touches}
    owner = f"the scene of '{scene.name}'"
    known = Names(owner, "point", trail_names(scene), aliases=aliases)
    found: list[str] = []
    for given in [names] if isinstance(names, str) else names:
        name = known.resolve(given)
        if name == CONTACTS:
            found += [f"{touch.name} contact" for touch in scene.touches]
        elif name != NONE:
            found.append(name)
    return tuple(dict.fromkeys(found))


def trail_points(scene: Scene, names: Iterable[str], poses: Array) -> dict[str, Array]:
    """Where the named points are: (..., 3) each."""
    contacts = [f"{touch.name} contact" for touch in scene.touches]
    touched = touch_points(scene, poses) if scene.touches else np.zeros((*poses.shape[:-3], 0, 3))
    found: dict[str, Array] = {}
    for name in names:
        if name in contacts:
            found[name] = touched[..., contacts.index(name), :]
        else:
            pose, k = scene.pose_of(name, poses), scene.bodies.index(name)
            centre = np.array(scene.centres[k] if scene.centres else (0.0, 0.0, 0.0))
            found[name] = pose[..., :3, :3] @ centre + pose[..., :3, 3]
    return found
