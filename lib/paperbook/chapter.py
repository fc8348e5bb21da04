"""The frame of a chapter: seeds, device, settings for the chosen profile, and the claims it collects."""
from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
from IPython.display import HTML, display

from . import claims, plots

PROFILES = ("quick", "full")


class Chapter:
    """Sets the stage for one chapter.

    slug: the chapter's name in the registry, such as ``"polyflow"``.
    seed: a non-negative integer; seeds ``random``, NumPy and PyTorch.
    profile: ``"quick"`` (a minute on two cores; what the book shows) or ``"full"`` (nearer the paper's scale).

    Attributes: ``device`` (a GPU only in profile ``full``), ``claims`` (id -> Claim).
    Raises ValueError for a profile that does not exist or a seed that is no non-negative integer.
    """

    def __init__(self, slug: str, seed: int = 0, profile: str = "quick"):
        if profile not in PROFILES:
            raise ValueError(f"There is no profile {profile!r}; choose 'quick' or 'full'.")
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ValueError(f"seed is {seed!r}; give an integer of 0 or more.")
        import torch  # here, since it takes seconds, and the press reads claims without it

        self.slug, self.seed, self.profile = slug, seed, profile
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        # One thread: networks as small as ours gain nothing from two, and sums in one fixed order
        # make the same seed give the same digits on every run.
        torch.set_num_threads(1)
        self.device = torch.device("cuda" if profile == "full" and torch.cuda.is_available() else "cpu")
        self.claims: dict[str, claims.Claim] = {}
        plots.use_house_style()

    def config(self, *, quick: dict, full: dict) -> SimpleNamespace:
        """The settings of this run; what ``full`` does not name it takes from ``quick``."""
        return SimpleNamespace(**(quick if self.profile == "quick" else {**quick, **full}))

    def claim(self, id: str, statement: str, **evidence) -> None:
        """Judge a claim (see :func:`paperbook.claims.judge` for ``evidence``), show its card and keep it."""
        self._keep(claims.judge(id, statement, **evidence))

    def out_of_reach(self, id: str, statement: str, *, paper: str, needs: str) -> None:
        """Record a claim that this scale cannot test, with what it would take."""
        self._keep(claims.Claim(id, statement, paper, "out of reach", f"needs {needs}"))

    def summary(self) -> None:
        """Show the table of all claims, in the order of their ids."""
        display(HTML(claims.table(sorted(self.claims.values(), key=lambda c: claims.natural(c.id)))))

    def _keep(self, claim: claims.Claim) -> None:
        self.claims[claim.id] = claim
        display(claim)
