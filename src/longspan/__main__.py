"""`python -m longspan` is the command `longspan`."""

from longspan.cli import script

if __name__ == "__main__":
    script()
