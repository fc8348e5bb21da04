"""The errors that a user of the press can mend: one clear sentence, no traceback."""


class PressError(ValueError):
    """Says what is wrong and what to do; the command line prints it and exits with code 2."""
