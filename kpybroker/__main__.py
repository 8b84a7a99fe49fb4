"""`kpybroker`, the command, and `python -m kpybroker`: the start of a process that is ours alone."""

from kpybroker.cli.interpreter.postponed import postpone


def main() -> None:
    """Run the command line, and load what it may never need when that is needed."""
    postpone()
    from kpybroker.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
