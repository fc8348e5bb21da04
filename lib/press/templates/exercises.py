# %% [markdown] id="title"
# # Exercises: __TITLE__
# Three exercises. Replace each `raise NotImplementedError()` by your answer and run the cell of checks below it.

# %% id="bootstrap" tags=["bootstrap", "remove-cell"]
import paperbook

# %% id="imports"
import numpy as np

# %% [markdown] id="one"
# ## 1. Implement: the median
# Write `median(x)` for a list of an odd number of values, without NumPy's own.

# %% id="median" nbgrader={"grade": false, "grade_id": "median", "locked": false, "schema_version": 3, "solution": true, "task": false}
def median(x):
    """The middle value of x, a list of an odd number of values."""
    ### BEGIN SOLUTION
    return sorted(x)[len(x) // 2]
    ### END SOLUTION

# %% id="test-median" nbgrader={"grade": true, "grade_id": "test-median", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
assert median([1, 2, 3]) == 2, "of three values in order it is the second"
### BEGIN HIDDEN TESTS
assert median([3, 1, 2]) == 2, "the values come in any order"
### END HIDDEN TESTS

# %% [markdown] id="two"
# ## 2. Analyse: how many wild values
# How many wild values of 21 can the median bear without following them? Set `most`.

# %% id="bear" nbgrader={"grade": false, "grade_id": "bear", "locked": false, "schema_version": 3, "solution": true, "task": false}
most = None  # an integer
### BEGIN SOLUTION
most = 10
### END SOLUTION

# %% id="test-bear" nbgrader={"grade": true, "grade_id": "test-bear", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
assert isinstance(most, int), "an integer is asked for"
### BEGIN HIDDEN TESTS
assert most == 10, "fewer than half"
### END HIDDEN TESTS

# %% [markdown] id="three"
# ## 3. Extend: the trimmed mean
# Write `trimmed(x, k)`: the mean without the `k` smallest and the `k` largest values.

# %% id="trimmed" nbgrader={"grade": false, "grade_id": "trimmed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def trimmed(x, k):
    """The mean of x without its k smallest and its k largest values."""
    ### BEGIN SOLUTION
    return np.mean(np.sort(x)[k : len(x) - k])
    ### END SOLUTION

# %% id="test-trimmed" nbgrader={"grade": true, "grade_id": "test-trimmed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
assert trimmed([0, 1, 2, 3, 100], 1) == 2, "drop 0 and 100, then average"
### BEGIN HIDDEN TESTS
assert trimmed([0, 2, 4], 0) == 2, "with k = 0 nothing is dropped"
assert trimmed([100, 3, 0, 2, 1], 1) == 2, "the values come in any order"
### END HIDDEN TESTS
