"""How many threads a call may use."""

from numbers import Integral

from axode.errors import InvalidArgument, shortened


def check_threads(threads: int) -> None:
    """Raise for anything but a whole number of threads."""
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise InvalidArgument(
            f"threads: must be a whole number > 0, got {shortened(threads)}; leave it out to use "
            "as many as a batch is worth"
        )
