"""``python -m rlcourse``: what ``rlcourse`` does, for launchers that start modules."""

from rlcourse.cli import main

if __name__ == "__main__":
    main()
