"""Entry point of `python -m prbench`."""

from prbench.cli import main

if __name__ == "__main__":
    main()
