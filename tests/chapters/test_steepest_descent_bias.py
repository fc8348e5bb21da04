"""Property tests of the functions on the page of steepest-descent-bias."""
import numpy as np
import press
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

page = press.definitions("steepest-descent-bias")

seeds = st.integers(0, 10_000)
norms = st.sampled_from(page.NORMS)
few = settings(max_examples=25, deadline=None)

# The textbook norms and their duals, written independently of the page.
NORM = {"max": lambda W: np.abs(W).max(), "fro": lambda W: np.sqrt((W ** 2).sum()),
        "spec": lambda W: np.linalg.svd(W, compute_uv=False)[0]}
DUAL = {"max": lambda G: np.abs(G).sum(), "fro": lambda G: np.sqrt((G ** 2).sum()),
        "spec": lambda G: np.linalg.svd(G, compute_uv=False).sum()}


def matrix(seed, K=3, d=5):
    return np.random.default_rng(seed).normal(size=(K, d))


def problem(seed):
    return page.gaussian_data(np.random.default_rng(seed), K=3, d=12, per_class=4)


# --- the steepest direction -------------------------------------------------------------------------------------------

@few
@given(seeds, norms, st.sampled_from([1e-30, 1e-3, 1.0, 1e6]))
def test_direction_has_norm_one_and_attains_the_dual_norm_at_any_length(seed, norm, scale):
    G = matrix(seed) * scale
    D = page.lmo(G, norm)
    assert NORM[norm](D) == pytest.approx(1)
    assert (G * D).sum() == pytest.approx(DUAL[norm](G))
    assert page.dual_norm(G, norm) == pytest.approx(DUAL[norm](G))
    assert page.norm_of(G, norm) == pytest.approx(NORM[norm](G))


@few
@given(seeds, seeds, norms)
def test_no_other_matrix_of_norm_one_does_better(seed, other, norm):
    G, D = matrix(seed), matrix(other + 20_000)
    assert (G * D).sum() / NORM[norm](D) <= page.dual_norm(G, norm) + 1e-9


@few
@given(seeds)
def test_spectral_direction_of_a_gradient_has_singular_values_one_one_zero(seed):
    x, y = problem(seed)
    G = page.residuals(matrix(seed, d=12), x, y) @ x
    assert np.allclose(G.sum(axis=0), 0)
    assert np.linalg.svd(page.lmo(G, "spec"), compute_uv=False) == pytest.approx([1, 1, 0], abs=1e-5)


@few
@given(seeds)
def test_for_rank_one_frobenius_and_spectral_agree(seed):
    a, b = np.random.default_rng(seed).normal(size=(2, 4))
    G = np.outer(a, b)
    assert np.allclose(page.lmo(G, "fro"), page.lmo(G, "spec"), atol=1e-10)


def test_direction_by_hand_zero_matrix_batches_and_bad_norm():
    G = np.array([[3.0, 0.0], [0.0, -4.0]])
    assert np.array_equal(page.lmo(G, "max"), [[1, 0], [0, -1]])
    assert np.allclose(page.lmo(G, "fro"), [[0.6, 0], [0, -0.8]])
    assert np.allclose(page.lmo(G, "spec"), [[1, 0], [0, -1]])
    for norm in page.NORMS:
        assert np.array_equal(page.lmo(np.zeros((2, 3)), norm), np.zeros((2, 3)))
        stack = np.stack([matrix(1), matrix(2)])[None]
        assert np.allclose(page.lmo(stack, norm)[0, 1], page.lmo(matrix(2), norm))
    with pytest.raises(ValueError, match="choose one of"):
        page.lmo(G, "nuclear")


# --- data, residuals and margins ----------------------------------------------------------------------------------------

@few
@given(seeds)
def test_data_are_one_hot_and_scaled(seed):
    x, y = problem(seed)
    assert x.shape == (12, 12) and y.shape == (3, 12) and y.dtype == bool
    assert np.all(y.sum(axis=0) == 1)
    assert np.linalg.norm(x, axis=1).max() == pytest.approx(1)


@few
@given(seeds)
def test_residuals_sum_to_zero_and_match_the_softmax(seed):
    x, y = problem(seed)
    W = matrix(seed, d=12)
    R = page.residuals(W, x, y)
    p = np.exp(W @ x.T) / np.exp(W @ x.T).sum(axis=0)
    assert np.allclose(R, p - y) and np.allclose(R.sum(axis=0), 0)
    stacked = page.residuals(np.stack([W, 2 * W])[None], x[None, None], y[None, None])
    assert stacked.shape == (1, 2, 3, 12) and np.allclose(stacked[0, 0], R)


def test_residuals_survive_large_margins():
    R = page.residuals(np.array([[300.0], [0.0]]), np.ones((1, 1)), np.array([[True], [False]]))
    assert R[1, 0] == pytest.approx(np.exp(-300)) and R[0, 0] == -R[1, 0]


def test_margin_by_hand():
    x, y = np.eye(2), np.array([[True, False], [False, True]])
    W = np.array([[3.0, 1.0], [1.0, 5.0]])
    assert page.margin(W, x, y) == 2  # sample 1: 3 - 1, sample 2: 5 - 1


# --- the best margin ----------------------------------------------------------------------------------------------------

@settings(max_examples=8, deadline=None)
@given(seeds, norms)
def test_bounds_certify_each_other_and_no_classifier_beats_them(seed, norm):
    x, y = problem(seed)
    lower, upper, W = page.max_margin(x, y, norm)
    assert 0 < lower <= upper + 1e-9 and upper / lower < 1.003
    assert page.margin(W, x, y) / NORM[norm](W) == pytest.approx(lower)
    other = matrix(seed + 1, d=12)
    assert page.margin(other, x, y) / NORM[norm](other) <= upper + 1e-9
    assert page.margin_rows(x, y).shape == (24, 3, 12)


def test_orthogonal_samples_have_the_margin_worked_out_by_hand():
    s = np.array([1.0, 0.5, 0.25])
    y = np.array([[True, False, True], [False, True, False]])
    for norm in ("fro", "spec"):  # two classes: the same problem
        assert page.max_margin(np.diag(s), y, norm)[1] == pytest.approx(np.sqrt(2 / (s ** -2).sum()), rel=1e-4)


def test_inseparable_data_are_refused():
    x, y = np.ones((2, 1)), np.array([[True, False], [False, True]])
    for norm in page.NORMS:
        with pytest.raises(ValueError, match="not linearly separable"):
            page.max_margin(x, y, norm)


# --- batches ------------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.integers(1, 7), st.sampled_from(["Reshuffle", "Replace"]))
def test_weights_of_a_batch_sum_to_one(seed, b, name):
    deal = getattr(page, name)(np.random.default_rng(seed), 2, 7, np.array([b, 7]))
    for t in range(1, 9):
        weights, _ = deal(t)
        assert weights.shape == (2, 2, 7) and np.allclose(weights.sum(axis=-1), 1) and np.all(weights >= 0)


@few
@given(seeds, st.sampled_from([1, 2, 3, 6]))
def test_reshuffling_visits_every_sample_once_an_epoch(seed, b):
    deal = page.Reshuffle(np.random.default_rng(seed), 1, 6, np.array([b]))
    for epoch in range(2):
        steps = [deal(epoch * (6 // b) + k + 1) for k in range(6 // b)]
        assert np.allclose(sum(w for w, _ in steps), 1 / b)
        assert [len(new) for _, new in steps] == [1] + [0] * (6 // b - 1)


def test_impossible_batch_sizes_are_refused():
    for b in (0, 8):
        with pytest.raises(ValueError, match="between 1 and"):
            page.Reshuffle(np.random.default_rng(0), 1, 7, np.array([b]))


# --- training -----------------------------------------------------------------------------------------------------------

def run(norm, seed=0, steps=40, eta0=0.1, **setting):
    x, y = problem(seed)
    return page.train(x[None], y[None], norm, eta0=eta0, steps=steps, keep=[steps], seed=seed, **setting)


@settings(max_examples=10, deadline=None)
@given(seeds, norms)
def test_full_batch_is_steepest_descent_written_out(seed, norm):
    x, y = problem(seed)
    W = np.zeros((3, 12))
    for t in range(1, 6):
        W = W - 0.1 / np.sqrt(t) * page.lmo(page.residuals(W, x, y) @ x / 12, norm)
    ours, noise = run(norm, seed, steps=5, b=[12])
    assert ours.shape == (1, 1, 1, 3, 12) and np.allclose(ours[0, 0, 0], W, atol=1e-9)
    assert np.allclose(noise, 0, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(seeds, norms)
def test_variance_reduction_on_the_full_batch_is_the_full_batch(seed, norm):
    W, noise = run(norm, seed, b=[12, 12], svrg=[False, True])
    assert np.allclose(W[0, 0, 0], W[0, 0, 1], atol=1e-8) and np.allclose(noise, 0, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_batch_one_facts(seed):
    assert np.abs(run("fro", seed, b=[1])[0] - run("spec", seed, b=[1])[0]).max() < 1e-12
    assert np.allclose(run("max", seed, b=[1], eta0=0.01)[0] * 10, run("max", seed, b=[1])[0])


def test_every_step_has_full_length_and_noise_is_relative():
    x, y = problem(3)
    W, noise = page.train(x[None], y[None], "fro", [1, 4], [0, 0.9], eta0=0.5, steps=9, keep=range(1, 10))
    moves = np.linalg.norm(np.diff(W, axis=0), axis=(-2, -1))
    assert moves == pytest.approx(np.tile(0.5 / np.sqrt(np.arange(2, 10))[:, None, None], (1, 1, 2)))
    assert noise.shape == (9, 1, 2) and np.all(noise > 0)


def test_momentum_averages_before_normalising_unless_asked():
    votes, _ = run("max", b=[1], beta=[0.9], vote_first=True)
    proper, _ = run("max", b=[1], beta=[0.9])
    assert not np.allclose(votes, proper)
    assert np.allclose(run("max", b=[2], vote_first=True)[0], run("max", b=[2])[0])  # without memory the order is moot


@few
@given(seeds, norms)
def test_ratio_is_one_at_the_best_classifier_and_blind_to_scale(seed, norm):
    x, y = problem(seed)
    W = matrix(seed, d=12)[None, None]
    first, second = (page.margin_ratio(c * W, x[None], y[None], norm, np.ones(1)) for c in (1, 7))
    assert first == pytest.approx(second)
    lower, upper, best = page.max_margin(x, y, norm)
    assert page.margin_ratio(best[None, None], x[None], y[None], norm, np.array([upper])) == pytest.approx(1, abs=3e-3)


# --- the hard sample, the toy, the plain loop ------------------------------------------------------------------------------

@few
@given(seeds, st.floats(0.1, 1.4))
def test_hard_data_and_its_threshold(seed, theta):
    x, y = page.hard_data(np.random.default_rng(seed), theta=theta)
    signed = x * (2.0 * y[0] - 1)[:, None]
    assert np.allclose(signed[:-1, 0], 1) and np.allclose(signed[-1, :2], [-np.cos(theta), np.sin(theta)])
    f = page.critical_fraction(theta)
    assert 0 < f < 0.5 and f == pytest.approx((1 - f) * np.cos(theta))  # gain equals loss


def test_hard_threshold_limits():
    assert page.critical_fraction(0) == 0.5 and page.critical_fraction(np.pi / 2) == pytest.approx(0)


def test_toy_full_batch_solves_and_batch_one_does_not():
    z = page.toy_samples()
    assert z.shape == (6, 2) and np.allclose(np.linalg.norm(z, axis=1), 1)
    full, one = (page.toy_path(z, b, 200, np.random.default_rng(0))[-1] for b in (6, 1))
    assert (z @ full).min() > 0 > (z @ one).min()


def test_plain_signsgd_agrees_with_the_trainer_on_the_full_batch():
    x, y = problem(1)
    loss, margins = page.signsgd(x, y, 12, 20, np.random.default_rng(0))
    W = run("max", 1, steps=20, b=[12])[0][0, 0, 0]
    assert margins[-1] == pytest.approx(page.margin(W, x, y) / np.abs(W).max())
    logits = W @ x.T
    assert loss[-1] == pytest.approx((np.log(np.exp(logits).sum(axis=0)) - logits[y.argmax(axis=0), np.arange(12)]).mean())


@few
@given(seeds)
def test_plain_sgd_on_the_full_batch_is_gradient_descent(seed):
    x, y = problem(seed)
    W = np.zeros((3, 12))
    for _ in range(4):
        W = W - 0.5 * page.residuals(W, x, y) @ x / 12
    assert np.allclose(page.plain_sgd(x, y, 12, 4, np.random.default_rng(seed)), W)


def test_without_normalisation_batches_of_one_recover_the_hard_sample():
    x, y = page.hard_data(np.random.default_rng(0))
    plain = page.plain_sgd(x, y, 1, 1500, np.random.default_rng(0))
    stretched = page.train(x[None], y[None], "fro", [1], eta0=0.5, steps=1500, keep=[1500])[0][0, 0, 0]
    assert page.margin(plain, x, y) > 0 > page.margin(stretched, x, y)


# --- plausible wrong answers to the exercises, which the hidden tests must reject --------------------------------------------

LMO = '''def lmo(G, norm):
    if norm == "max":
        return {max}
    if norm == "fro":
        return {fro}
    if norm == "spec":
        U, values, Vt = np.linalg.svd(G, full_matrices=False)
        rank = int((values > 1e-6 * values[0]).sum())
        return {spec}
    raise ValueError(norm)
'''
CUT = "1e-6 * values[0]"
GOOD = {"max": "np.sign(G)", "fro": "G / np.linalg.norm(G)", "spec": "U[:, :rank] @ Vt[:rank]"}
FRACTION = "answer_batch, answer_limit, answer_copies, answer_step = {}, {}, {}, {}\n"
SVRG = '''def svrg_direction(W, snapshot, x, y, batch):
    here = residuals(W, x[batch], y[:, batch]) @ x[batch] / {m}
    there = residuals(snapshot, x[batch], y[:, batch]) @ x[batch] / {m}
    return {result}
'''
INTERVAL = '''def signsgd_svrg(direction, x, y, steps, interval=1, decay=True):
    n, W = len(x), np.zeros((len(y), x.shape[1]))
    for t in range(1, steps + 1):
        epoch, place = divmod(t - 1, n)
        if place == 0:
            order = np.random.default_rng({order}).permutation(n)
            {snapshot}
        step = {step}
        W = W - step * np.sign(direction(W, snapshot, x, y, order[place:place + 1]))
    return max_norm_margin(W, x, y)
'''
TAKE = "snapshot = W if epoch % interval == 0 else snapshot"
RETURN = "return max_norm_margin(W, x, y)"
STEP = "0.1 * t ** -0.5 if decay else 0.03"
MUTANTS = {
    "lmo": {
        "full SVD keeps the arbitrary direction of the value zero": LMO.format(**GOOD | {"spec": "U @ Vt"}),
        "divides by the spectral norm instead of equalising singular values": LMO.format(**GOOD | {"spec": "G / values[0]"}),
        "cuts at an absolute size": LMO.format(**GOOD).replace(CUT, "1e-6"),
        "cuts what is only small": LMO.format(**GOOD).replace(CUT, "1e-2 * values[0]"),
        "max-norm divides by the largest entry": LMO.format(**GOOD | {"max": "G / np.abs(G).max()"}),
        "Frobenius divides by the squared norm": LMO.format(**GOOD | {"fro": "G / (G ** 2).sum()"}),
    },
    "fraction": {
        "rounds up one too far": FRACTION.format(19, 0.5, 10, "'c'"),
        "takes the limit to be one": FRACTION.format(18, 1.0, 10, "'c'"),
        "counts copies against all samples equally": FRACTION.format(18, 0.5, 11, "'c'"),
        "believes in small steps": FRACTION.format(18, 0.5, 10, "'a'"),
    },
    "svrg": {
        "uses the full gradient at W": SVRG.format(m="len(batch)", result="here - there + residuals(W, x, y) @ x / len(x)"),
        "forgets the correction": SVRG.format(m="len(batch)", result="residuals(snapshot, x, y) @ x / len(x)"),
        "correction with the wrong sign": SVRG.format(
            m="len(batch)", result="there - here + residuals(snapshot, x, y) @ x / len(x)"),
        "sums over the batch instead of averaging": SVRG.format(
            m="1", result="here - there + residuals(snapshot, x, y) @ x / len(x)"),
    },
    "interval": {
        "new snapshot every epoch": INTERVAL.format(order="epoch", snapshot="snapshot = W", step=STEP),
        "one order for all epochs": INTERVAL.format(order="0", snapshot=TAKE, step=STEP),
        "always decays": INTERVAL.format(order="epoch", snapshot=TAKE, step="0.1 * t ** -0.5"),
        "returns the margin without the norm": INTERVAL.format(order="epoch", snapshot=TAKE, step=STEP).replace(
            RETURN, RETURN + " * np.abs(W).max()"),
        "judges the snapshot": INTERVAL.format(order="epoch", snapshot=TAKE, step=STEP).replace(
            RETURN, "return max_norm_margin(snapshot, x, y)"),
        "forgets the square root": INTERVAL.format(order="epoch", snapshot=TAKE, step="0.1 / t if decay else 0.03"),
    },
    "constant": {"hopes for the best": 'answer_constant = "b"\n'},
}
