# %% [markdown] id="title"
# # __TITLE__
# After this chapter you can … (one line: what the reader will be able to do).

# %% [markdown] id="paper-box"
# (made by `press check --fix`)

# %% id="bootstrap" tags=["bootstrap", "remove-cell"]
import paperbook

# %% id="parameters" tags=["parameters"]
seed = 0
profile = "quick"

# %% id="imports"
import matplotlib.pyplot as plt
import numpy as np
from paperbook import Chapter, explore, plots, show

# %% id="chapter"
chapter = Chapter("__SLUG__", seed=seed, profile=profile)
cfg = chapter.config(quick=dict(samples=200), full=dict(samples=20_000))

# %% [markdown] id="idea"
# ## The idea in one minute
# Say in plain words what the thing does, before how. The example of this template: the mean of a sample follows a single
# wild value anywhere, the median does not. In the figure, look at where the two lines stand once the wild value is far out.

# %% id="idea-figure"
wild = np.linspace(0, 10, 50)
line = np.array([np.append(np.arange(-2, 3), value) for value in wild])  # (50, 6)
fig, ax = plt.subplots()
ax.plot(wild, line.mean(1), label="mean")
ax.plot(wild, np.median(line, axis=1), label="median")
ax.set(xlabel="position of the wild value", ylabel="estimate")
ax.legend()
show(fig, alt="The mean rises without end with the wild value; the median stops rising.")

# %% [markdown] id="problem"
# ## The problem, seen
# Run the ordinary method and let it fail. We draw a normal sample of which a share is replaced by wild values.

# %% id="contaminate"
def contaminate(samples, share, rng, n=21):
    """(samples, n) standard normal values, of which about `share` are replaced by the value 10."""
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}; give a number between 0 and 1.")
    x = rng.standard_normal((samples, n))
    return np.where(rng.random((samples, n)) < share, 10.0, x)

# %% [markdown] id="problem-seen"
# A tenth of wild values is enough to move the mean by about one standard deviation.

# %% id="problem-figure"
rng = np.random.default_rng(seed)
x = contaminate(cfg.samples, 0.1, rng)  # (samples, 21)
fig, ax = plt.subplots()
ax.hist(x.mean(1), bins=30, color=plots.ORANGE)
ax.set(xlabel="mean of a sample whose true mean is 0", ylabel="samples")
show(fig, alt="Histogram of sample means, centred near one instead of zero.")

# %% [markdown] id="method"
# ## The method
# Show the equation, then the few lines that are that equation, then a check. The median minimises $\sum_i |x_i - m|$.

# %% id="estimate"
def estimate(x, method):
    """The location of each row of x (samples, n) by "mean" or "median"; returns (samples,)."""
    return {"mean": np.mean, "median": np.median}[method](x, axis=-1)

# %% [markdown] id="method-check"
# A value worked out by hand, and the property that the text relies on.

# %% id="method-asserts"
assert estimate(np.array([[0.0, 1.0, 9.0]]), "median")[0] == 1.0
# The size of the wild value has no effect on the median.
assert estimate(np.array([[0.0, 1.0, 9e9]]), "median")[0] == 1.0
assert estimate(np.array([[0.0, 3.0, 9.0]]), "mean")[0] == 4.0
assert x.shape == (cfg.samples, 21)
assert np.isfinite(x).all()
assert abs(np.median(x)) < 1

# %% [markdown] id="works"
# ## Does it work?
# Compare with the rivals, at the same budget, with the spread shown. Write the criterion down before tuning.

# %% id="measure"
shares = np.linspace(0, 0.4, 9)
bias = {"mean": [], "median": []}
for share in shares:
    sample = contaminate(cfg.samples, share, rng)  # both methods see the same samples
    for method, values in bias.items():
        values.append(abs(estimate(sample, method).mean()))
fig, ax = plt.subplots()
for method, values in bias.items():
    ax.plot(shares, values, marker="o", label=method)
ax.set(xlabel="share of wild values", ylabel="bias")
ax.legend()
show(fig, alt="Bias against the share of wild values: the mean's grows, the median's stays low.")

# %% [markdown] id="claim-text"
# The control is the same measurement with the mechanism taken out: here, the mean in place of the median.

# %% id="claim-c1"
chapter.claim(
    "C1", "The median stays near the truth when a tenth is wild", paper="(the paper's figure)",
    measured=bias["median"][2], control=bias["mean"][2],
    holds=lambda value: value < 0.3, criterion="bias below 0.3 at a share of 0.1")

# %% [markdown] id="bars-text"
# The same two numbers as a picture.

# %% id="one-more-figure"
fig, ax = plt.subplots()
ax.bar(["mean", "median"], [bias["mean"][2], bias["median"][2]], color=[plots.ORANGE, plots.BLUE])
show(fig, alt="Bars of the bias at a share of one tenth: the mean's is the larger.")

# %% [markdown] id="play"
# ## Play with it
# Move the slider and see which estimate holds.

# %% id="explore"
def draw(share):
    sample = contaminate(200, share, np.random.default_rng(0))
    fig, ax = plt.subplots(figsize=(6, 3))
    ax.hist([estimate(sample, m) for m in ("mean", "median")], bins=20, label=["mean", "median"])
    ax.set(xlim=(-1, 6), xlabel="estimate")
    ax.legend()
    return fig

explore(draw, alt="Histograms of the two estimates", share=[0.0, 0.1, 0.2, 0.3])

# %% [markdown] id="claims"
# ## Claims
# Every claim of the paper, those out of reach too.

# %% id="claims-table"
chapter.out_of_reach("C2", "What this scale cannot test", paper="(the paper's figure)",
                     needs="what it would take")
chapter.summary()

# %% [markdown] id="limits"
# ## What this chapter cannot show
# Scale, data, what was simplified, in plain words.

# %% [markdown] id="exercises"
# ## Exercises
# The [exercise notebook](__SLUG__-exercises.ipynb) has three exercises.

# %% [markdown] id="reading"
# ## Further reading
# Cite through `book/references.bib`.
