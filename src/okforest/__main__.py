"""``python -m okforest`` is the command ``okforest``."""

from okforest.cli import main

if __name__ == "__main__":
    main()
