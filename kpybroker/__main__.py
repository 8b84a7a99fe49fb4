"""`python -m kpybroker`."""

from kpybroker.cli.main import main

if __name__ == "__main__":
    main()
