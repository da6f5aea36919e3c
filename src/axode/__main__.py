"""Run the command line as `python -m axode`."""

from axode.cli import main

if __name__ == "__main__":
    main()
