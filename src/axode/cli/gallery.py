"""`axode gallery`: the mechanisms that come with Axode."""

from axode.cli.shared import AsJson, print_json


def gallery(as_json: AsJson = False) -> None:
    """List the mechanisms that come with Axode.

    axode gallery

    axode gallery --json
    """
    from axode import gallery as shelf

    if as_json:
        print_json(shelf.NAMES)
        return
    width = max((len(name) for name in shelf.NAMES), default=0)
    for name, words in shelf.NAMES.items():
        print(f"{name:<{width}}  {words}")
