"""Time and speed of a recording that is played."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Playback:
    """A recording that is played.

    Attributes:
        begin, end: Its first and last time [s]; the end may come before the begin.
        elapsed: How much of it has been shown [s].
        speed: Seconds of it per second on the clock.
        playing: Whether it is running.
        loop: Whether it starts again at its end.
    """

    begin: float
    end: float
    elapsed: float = 0.0
    speed: float = 1.0
    playing: bool = False
    loop: bool = True

    @property
    def length(self) -> float:
        """Duration [s]."""
        return abs(self.end - self.begin)

    @property
    def time(self) -> float:
        """The time that is shown [s]."""
        return self.begin + (self.elapsed if self.end >= self.begin else -self.elapsed)

    def toggle(self) -> None:
        """Play or pause; at the end, play from the start."""
        if not self.playing and self.elapsed >= self.length:
            self.elapsed = 0.0
        self.playing = not self.playing

    def seek(self, elapsed: float) -> None:
        """Show another instant, counted from the start [s]."""
        self.elapsed = min(max(elapsed, 0.0), self.length)

    def advance(self, seconds: float) -> None:
        """Let time pass on the clock."""
        if not self.playing:
            return
        after = self.elapsed + self.speed * seconds
        if after >= self.length:
            self.playing = self.loop and self.length > 0
            after = after % self.length if self.playing else self.length
        self.elapsed = after
