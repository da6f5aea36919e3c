"""Movies show what happened, in every format, and leave nothing half written."""

import sys

import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.cli import run as command
from axode.codegen.targets.rasteriser import PixelBuffer, aligned, resolve
from axode.show.render.animation import RunFrames
from axode.show.render.meshes import arrows
from axode.show.render.movie_files import write_movie
from axode.show.render.painter import SKY, Camera, camera_of, picture

SIZE = (96, 72)


@pytest.fixture(scope="module")
def model():
    return gallery.build("differential_drive").derive().compile()


@pytest.fixture(scope="module")
def drive(model):
    """Straight on, many times its own size."""
    return ax.simulate(model, 2.0, input=dict.fromkeys(model.inputs, 0.5), progress=False)


def frames_of(run, instants, **how):
    from axode.show.motion import RunPoses

    clock = how.pop("clock", False)
    tracks, forces = how.pop("tracks", False), how.pop("forces", False)
    made = RunFrames(
        RunPoses(run), np.array(instants), SIZE, clock=clock, tracks=tracks, forces=forces
    )
    made.aim(rate=4.0, **how)
    return made


# triangles ----------------------------------------------------------------------------------------


def covered(corners, width=40, height=30, both=1):
    buffer = PixelBuffer(width, height)
    vertices = np.zeros((3, 6), np.float32)
    vertices[:, :2], vertices[:, 2] = corners, 1.0
    buffer.draw(vertices, np.array([[0, 1, 2, both]]))
    return buffer.colours[:, :width] > 0


def test_triangles_cover_the_pixels_whose_middles_are_inside():
    """Compared with the distances of the middles from the three sides."""
    rng = np.random.default_rng(5)
    x, y = np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5)
    for _ in range(200):
        corners = rng.uniform(-20, 60, (3, 2))
        if rng.random() < 0.3:  # thin ones
            corners[2] = corners[0] + (corners[1] - corners[0]) * rng.random() + 0.3
        away = []
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            across = (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])
            away.append(across / np.linalg.norm(b - a))
        sides = np.array(away)
        inside = (sides > 0).all(0) | (sides < 0).all(0)
        clear = np.abs(sides).min(0) > 1e-3
        assert (covered(corners) == inside)[clear].all()


def test_neighbouring_triangles_leave_no_gap():
    """Also along edges that meet the middles of pixels, and edges across the whole picture."""
    rng = np.random.default_rng(7)
    for k in range(60):
        square = np.array([[-50.0, -50.0], [200.0, -50.0], [200.0, 200.0], [-50.0, 200.0]])
        inner = rng.integers(5, 25, 2) + 0.5 if k % 2 else rng.uniform(5, 25, 2)
        total = sum(covered([square[i], square[(i + 1) % 4], inner]).astype(int) for i in range(4))
        assert (total >= 1).all()


def test_a_back_is_drawn_only_if_asked_for():
    front = [[5.0, 5.0], [5.0, 25.0], [35.0, 15.0]]
    assert covered(front, both=0).sum() == covered(front[::-1], both=1).sum() > 200
    assert not covered(front[::-1], both=0).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_triangles_without_a_place_are_left_out(bad):
    """What overflows is never written outside of the picture."""
    corners = np.array([[5.0, 5.0], [5.0, 25.0], [bad, 15.0]])
    assert covered(corners).sum() <= 40 * 30
    with pytest.raises(IndexError, match="corners 0 to 3 of 3 vertices"):
        PixelBuffer(8, 8).draw(np.zeros((3, 6), np.float32), np.array([[0, 1, 3, 0]]))
    with pytest.raises(ValueError, match="pixels are not twice"):
        small = aligned((8, 8), np.float32)
        resolve(PixelBuffer(8, 8), small, {}, small.view(np.uint32))


def test_what_is_nearer_is_seen():
    buffer = PixelBuffer(16, 16)
    square = np.array([[0, 0], [0, 40], [40, 0]], float)
    for nearness, red in ((1.0, 200), (2.0, 100), (1.5, 50)):
        vertices = np.zeros((3, 6), np.float32)
        vertices[:, :2], vertices[:, 2], vertices[:, 3] = square, nearness, red
        buffer.draw(vertices, np.array([[0, 1, 2, 1]]))
    assert (buffer.colours & 0xFF == 100).all()


def test_arrows_end_at_their_tips():
    starts, vectors = (
        np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]),
        np.array([[0, 0, 2.0], [1.0, 1, 0]]),
    )
    mesh = arrows(starts, vectors, 0.01, (1, 2, 3))
    for tip in starts + vectors:
        assert np.linalg.norm(mesh.vertices - tip, axis=1).min() < 1e-12
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0)


# frames -------------------------------------------------------------------------------------------


def robot_in(image):
    """Where something dark is: rows and columns."""
    return np.argwhere(image.astype(int).max(2) < 140)


def test_a_frame_is_the_still_picture_of_its_instant(model, drive):
    camera = Camera((0.2, 0.0, 0.1), 3.0)
    made = frames_of(drive, [0.0, 1.0], camera=camera, follow=False)
    q = np.array([drive.at(1.0)[name] for name in model.coordinates])
    still = picture(model.scene, model.poses(q), camera=camera, width=SIZE[0], height=SIZE[1])
    assert np.abs(made.frame(1).astype(int) - still).max() <= 2
    assert (made.frame(0) != made.frame(1)).any()


def test_springs_are_in_the_picture():
    held = ax.Mechanism("held")
    box = held.add_body("box", mass=1.0, inertia=(0.1, 0.1, 0.1), shape=ax.Box((0.2, 0.2, 0.2)))
    held.add_joint("slide", ax.Prismatic(axis=(0, 0, 1)), parent=held.ground, child=box)
    bare = held.derive().compile(target="interpreter")
    ends = {"parent": held.ground, "child": box, "at": (0, 0, 1.5)}
    held.add_spring("hung", stiffness=10.0, rest=1.0, **ends)
    hung = held.derive().compile(target="interpreter")
    far = [camera_of(m.scene, m.poses(m.home)).distance for m in (bare, hung)]
    assert far[1] > 2 * far[0], "its upper end is in the picture too"
    view = camera_of(hung.scene, hung.poses(hung.home), 1.0)
    how = {"camera": view, "width": 60, "height": 60}
    shown = [picture(m.scene, m.poses(m.home), **how) for m in (bare, hung)]
    assert 20 < (shown[0] != shown[1]).any(2).sum() < 300


@pytest.mark.parametrize("size", [(97, 71), (16, 16), (40, 200)])
def test_any_size_is_drawn(model, size):
    """Rows that are no whole vectors show the same as those that are."""
    poses = model.poses(model.home)
    camera = Camera((0.0, 0.0, 0.1), 3.0)
    image = picture(model.scene, poses, camera=camera, width=size[0], height=size[1])
    wide = picture(model.scene, poses, camera=camera, width=size[0] + 46, height=size[1])
    assert image.shape == (size[1], size[0], 3)
    # shadows are soft: at the rim they depend on what is beyond it
    assert np.abs(image.astype(int) - wide[:, 23:-23])[3:-3, 3:-3].max() <= 2
    assert np.abs(image.astype(int) - wide[:, 23:-23]).max() <= 20


def test_the_camera_follows_what_travels(drive):
    """The robot stays in the middle, on a floor that moves; without following it is small."""
    instants = np.linspace(0.0, 2.0, 9)
    near, far = frames_of(drive, instants), frames_of(drive, instants, follow=False)
    sizes = []
    for made in (near, far):
        places = [robot_in(made.frame(k)) for k in range(9)]
        assert all(len(place) for place in places), "it left the picture"
        sizes.append(np.mean([len(place) for place in places]))
        middles = np.array([place.mean(0) for place in places])
        if made is near:
            assert np.ptp(middles, axis=0).max() < 0.15 * SIZE[0]
    assert sizes[0] > 2 * sizes[1]
    assert np.abs(near.frame(0)[0, 0] - SKY).max() < 60


def test_the_floor_stays_where_it_is():
    """Below the lowest point of all frames, not of each."""
    arm = gallery.build("four_bar").derive().compile()
    swing = ax.simulate(arm, 1.0, progress=False)
    made = frames_of(swing, np.linspace(0.0, 1.0, 5))
    corners = [made.frame(k)[-1, :8].astype(int) for k in range(5)]
    assert np.ptp(corners, axis=0).max() == 0
    assert any((made.frame(0) != made.frame(k)).any() for k in range(1, 5))


def test_tracks_forces_and_clock_are_seen(drive):
    instants = np.linspace(0.0, 2.0, 9)
    plain = frames_of(drive, instants).frame(8)
    for name in ("tracks", "forces", "clock"):
        changed = (frames_of(drive, instants, **{name: True}).frame(8) != plain).any(2)
        assert 5 < changed.sum() < 0.3 * changed.size, name
    corner = (frames_of(drive, instants, clock=True).frame(8) != plain).any(2)
    assert np.argwhere(corner)[:, 0].min() > 0.7 * SIZE[1]


# files --------------------------------------------------------------------------------------------


def pictures(count=5, size=(33, 47)):
    for k in range(count):
        image = np.full((*size, 3), (230, 233, 236), np.uint8)
        image[8:24, 4 + 6 * k : 16 + 6 * k] = (200, 40, 30)
        yield image


@pytest.mark.parametrize("ending", [".gif", ".apng"])
def test_pictures_are_read_back(tmp_path, ending):
    from PIL import Image

    path = write_movie(tmp_path / f"m{ending}", pictures(), 12.0, samples=list(pictures()))
    with Image.open(path) as film:
        assert film.n_frames == 5 and film.size == (47, 33)
        total = 0.0
        for k, wanted in enumerate(pictures()):
            film.seek(k)
            assert np.abs(np.asarray(film.convert("RGB")).astype(int) - wanted).max() <= 4
            total += film.info["duration"]
    assert total == pytest.approx(5 / 12.0 * 1000, abs=10)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".mp4", ".webm"])
def test_videos_are_read_back(tmp_path, ending):
    av = pytest.importorskip("av", reason="`make test-all` installs it")
    path = write_movie(tmp_path / f"m{ending}", pictures(), 12.5)
    with av.open(str(path)) as film:
        assert film.streams.video[0].average_rate == 12.5
        seen = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(seen) == 5
    for image, wanted in zip(seen, pictures(), strict=True):
        assert image.shape == (34, 48, 3), "sides are even"
        assert np.abs(image[:33, :47].astype(int) - wanted).mean() < 8
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".gif", ".apng", ".mp4", ".webm"])
@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_movie_leaves_the_old_file(tmp_path, ending, after):
    if ending in (".mp4", ".webm"):
        pytest.importorskip("av", reason="`make test-all` installs it")
    path = tmp_path / f"m{ending}"
    path.write_bytes(b"old")

    def interrupted():
        yield from pictures(after)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_movie(path, interrupted())
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_ctrl_c_keeps_the_frames_until_then(tmp_path, drive, monkeypatch, capsys):
    import signal

    from PIL import Image

    drawn, frame = [], RunFrames.frame

    def pressed(self, k):
        drawn.append(k)
        if len(drawn) % 10 == 9:  # six for the colours, then the third
            signal.raise_signal(signal.SIGINT)
        return frame(self, k)

    monkeypatch.setattr(RunFrames, "frame", pressed)
    with pytest.raises(KeyboardInterrupt, match=r"3 of 9 frames are in .*m\.gif"):
        drive.animate(tmp_path / "m.gif", rate=4, size=SIZE)
    with Image.open(tmp_path / "m.gif") as film:
        assert film.n_frames == 3
    saved, drawn[:] = tmp_path / "run.npz", []
    drive.save(saved)
    monkeypatch.chdir(tmp_path)
    asked = ["animate", "differential_drive", "--run", "run.npz", "--out", "n.gif", "--rate", "4"]
    assert command([*asked, "--size", "64x48"]) == 130
    assert "interrupted; 3 of 9 frames are in n.gif" in capsys.readouterr().err


def test_wrong_movies_are_refused(tmp_path, drive, monkeypatch):
    def refused(match, name="m.gif", frames=(), rate=25.0):
        with pytest.raises(ax.InvalidArgument, match=match):
            write_movie(tmp_path / name, frames, rate)

    refused(r"a movie ends in \.mp4, \.webm, \.gif, \.apng, unlike '.*m\.avi'", "m.avi")
    refused("rate: expected 0.01 to 1000 frames per second, got 0", rate=0.0)
    refused("rate: a GIF shows at most 50 frames per second, got 60", rate=60.0)
    refused("a movie needs at least one frame: nothing is written to '.*m.gif'")
    odd = [np.zeros((8, 8, 3), np.uint8), np.zeros((8, 9, 3), np.uint8)]
    refused(
        r"frames: expected pictures \(height, width, 3\) of one size, got \(8, 9, 3\)", frames=odd
    )
    with pytest.raises(ax.FileError, match="cannot write"):
        write_movie(tmp_path / "nowhere" / "m.gif", pictures())
    for match, options in {
        "size: expected a width and a height from 16 to 8192 pixels, got": {"size": (4, 4)},
        "speed: expected a finite number > 0, got -1": {"speed": -1.0},
        r"speed: 2 s at speed 1e-06 are 5e\+07 frames, and at most": {"speed": 1e-6},
        "times: expected finite numbers, at least one": {"times": []},
    }.items():
        with pytest.raises(ax.InvalidArgument, match=match):
            drive.animate(tmp_path / "m.gif", **options)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ax.NotApplicable, match=r"movies that end in \.mp4 need PyAV, which is not"):
        drive.animate(tmp_path / "m.mp4")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ax.NotApplicable, match="GIFs and clocks need Pillow, which is not"):
        drive.animate(tmp_path / "m.gif")
    assert not list(tmp_path.iterdir())


def test_an_installation_without_encoders_is_reported(tmp_path, monkeypatch):
    av = pytest.importorskip("av", reason="`make test-all` installs it")
    monkeypatch.setattr(av, "codecs_available", set())
    with pytest.raises(ax.NotApplicable, match=r"has no encoder for \.webm: libvpx-vp9 and libvpx"):
        write_movie(tmp_path / "m.webm", pictures())


def test_a_batch_has_to_be_chosen_from(model, tmp_path):
    two = ax.simulate(model, 0.1, input={model.inputs[0]: [0.0, 0.1]}, progress=False)
    with pytest.raises(ax.InvalidArgument, match="a movie shows one run, not a batch of shape"):
        two.animate(tmp_path / "m.gif")


def test_the_command_writes_a_movie(tmp_path, capsys, drive):
    from PIL import Image

    out, saved = tmp_path / "m.gif", tmp_path / "run.npz"
    drive.save(saved)
    asked = ["animate", "differential_drive", "--run", str(saved), "--out", str(out)]
    assert command([*asked, "--size", "64x48", "--rate", "4", "--no-clock"]) == 0
    with Image.open(out) as film:
        assert film.n_frames == 9 and film.size == (64, 48)
    assert "wrote" in capsys.readouterr().out
    again = ["animate", "differential_drive", "--out", str(tmp_path / "n.gif"), "--size", "big"]
    assert command(again) == 2
    assert "is not WIDTHxHEIGHT, as in 640x480" in " ".join(capsys.readouterr().err.split())
    both = [*again[:4], "--run", str(saved), "--start", "x=1"]
    assert command(both) == 2
