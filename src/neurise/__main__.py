"""``python -m neurise`` is the command line."""

from neurise.cli import main

if __name__ == "__main__":
    main()
