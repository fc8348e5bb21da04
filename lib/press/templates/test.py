"""Property tests of the functions on the page of __SLUG__, and wrong answers that its exercises must reject."""
import numpy as np
import press
import pytest
from hypothesis import given, strategies as st

page = press.definitions("__SLUG__")

#: solution cell -> {what is wrong: the wrong answer}
MUTANTS = {
    "median": {"forgets to sort": "def median(x):\n    return x[len(x) // 2]"},
    "bear": {"counts half as allowed": "most = 11"},
    "trimmed": {"trims above alone": "def trimmed(x, k):\n    return np.mean(np.sort(x)[: len(x) - k])"},
}


@given(st.floats(-1e6, 1e6), st.integers(0, 99))
def test_estimates_move_with_the_sample(shift, seed):
    x = np.random.default_rng(seed).standard_normal((3, 7))
    for method in ("mean", "median"):
        assert page.estimate(x + shift, method) == pytest.approx(page.estimate(x, method) + shift, abs=1e-6)


def test_a_share_outside_zero_and_one_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        page.contaminate(5, 1.5, np.random.default_rng(0))
