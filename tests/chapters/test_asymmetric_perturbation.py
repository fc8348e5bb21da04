"""Property tests of the functions on the page of asymmetric-perturbation, and wrong answers that its exercises must reject."""
import numpy as np
import press
import pytest
from hypothesis import given, settings, strategies as st

page = press.definitions("asymmetric-perturbation")
few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 10_000)
strengths = st.just(0.0) | st.floats(1e-3, 3)
START = np.array([[0.7, 0.1, 0.2]])


def game(seed, m=3, n=3):
    return np.random.default_rng(seed).uniform(-1, 1, (m, n))


def simplex(n):
    return np.ones((1, n))


def value_of(A):
    return page.solve(A, simplex(A.shape[0]), simplex(A.shape[1]))[0]


# --- projection, NashConv, dynamics --------------------------------------------------------------------------------------

@few
@given(seeds, st.integers(1, 6))
def test_projection_is_the_nearest_point_of_the_simplex(seed, n):
    v = np.random.default_rng(seed).normal(size=(4, n)) * 3
    p = page.project(v)
    assert p.min() >= 0 and p.sum(axis=1) == pytest.approx(np.ones(4))
    # the defining inequality <v - p, z - p> <= 0, at every corner z
    assert np.all((v - p) @ np.eye(n) - ((v - p) * p).sum(axis=1, keepdims=True) <= 1e-12)
    assert page.project(p) == pytest.approx(p)


def test_projection_by_hand():
    assert page.project(np.array([[1.0, 0.5, -3]])) == pytest.approx(np.array([[0.75, 0.25, 0]]))


@few
@given(seeds)
def test_nash_conv_is_positive_and_zero_at_an_equilibrium(seed):
    A, rng = game(seed, 3, 4), np.random.default_rng(seed)
    x, y = rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(4), 2)
    assert np.all(page.nash_conv(A, x, y) >= 0)
    _, x_star, y_star, *_ = page.facts(A)
    assert page.nash_conv(A, x_star[None], y_star[None]) == pytest.approx(0, abs=1e-8)


def test_one_step_by_hand_in_turn_and_at_once():
    A, x, y = page.PENNIES, np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])
    # A y = (-1/6, 1/6), so x_1 rises by 0.1 / 6; then A'x = (-1/6, 1/6) + (1/60, -5/180)
    xs, ys = page.play(A, x, y, 0.1, 1)
    assert xs[-1, 0, 0] == pytest.approx(0.5 + 1 / 60)
    gain = A.T @ xs[-1, 0]
    assert ys[-1, 0, 0] == pytest.approx(0.5 + 0.05 * (gain[0] - gain[1]))
    _, ys = page.play(A, x, y, 0.1, 1, alternate=False)
    assert ys[-1, 0, 0] == pytest.approx(0.5 - 1 / 60)


def test_shapes_and_recording():
    x, y = page.starts(3, 3, 4, 2, np.random.default_rng(0))
    assert x.shape == (8, 3) and np.array_equal(x[:4], x[4:])
    xs, ys = page.play(page.BRPS, x, y, 0.1, 20, every=5)
    assert xs.shape == ys.shape == (5, 8, 3) and np.array_equal(xs[0], x)
    assert np.array_equal(page.play(page.BRPS, x, y, 0.1, 20)[0][::5], xs)


@few
@given(seeds)
def test_batched_games_are_single_games(seed):
    games, rng = np.stack([game(seed), game(seed + 1)]), np.random.default_rng(seed)
    x, y = rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(3), 2)
    both = page.play(games, x, y, 0.1, 9, mu_x=0.3)[0][-1]
    for k in range(2):
        assert both[k] == pytest.approx(page.play(games[k], x[k:k + 1], y[k:k + 1], 0.1, 9, mu_x=0.3)[0][-1, 0])


def test_asymmetric_is_two_runs():
    xs, ys = page.asymmetric(page.BRPS, START, START, 0.7, 0.05, 50)
    assert np.allclose(xs, page.play(page.BRPS, START, START, 0.05, 50, mu_x=0.7)[0])
    assert np.allclose(ys, page.play(page.BRPS, START, START, 0.05, 50, mu_y=0.7)[1])


@few
@given(st.floats(0.1, 3))
def test_symmetric_equilibrium_does_not_move(mu):
    for A in (page.BRPS, page.PENNIES):
        x, y = (z[None] for z in page.symmetric_equilibrium(A, mu))
        xs, ys = page.play(A, x, y, 0.1, 3, mu, mu)
        assert np.allclose(xs, x) and np.allclose(ys, y)
        assert page.perturbed_gap(A, x, y, mu, mu) == pytest.approx(0, abs=1e-12)


def test_symmetric_equilibrium_must_be_interior():
    with pytest.raises(ValueError, match="interior"):
        page.symmetric_equilibrium(np.array([[0.0, 1], [5, 6]]), 0.1)


# --- value, smallest norm, threshold ----------------------------------------------------------------------------------------

@few
@given(seeds)
def test_value_is_the_same_from_both_sides(seed):
    A = game(seed, 3, 5)
    assert value_of(A) == pytest.approx(-value_of(-A.T), abs=1e-9)


@few
@given(seeds)
def test_smallest_norm_point_is_optimal_and_smallest(seed):
    A = game(seed, 4, 2)  # more rows than columns: often many optimal x
    A[3] = A[:3].mean(axis=0)
    x = page.min_norm(A)
    value, vertex = page.solve(A, simplex(4), simplex(2))
    assert x.min() > -1e-9 and (x @ A).max() <= value + 1e-9
    assert x @ x <= vertex @ vertex + 1e-9


def test_smallest_norm_on_the_game_with_many_equilibria():
    assert page.min_norm(page.MNE) == pytest.approx(np.array([1, 1, 1, 0, 0]) / 3, abs=1e-9)
    assert page.min_norm(-page.MNE.T) == pytest.approx(np.full(5, 0.2), abs=1e-9)


def test_thresholds_worked_out_by_hand():
    A = np.array([[2.0, -1], [-1, 1]])
    value, x, y, mu_x, mu_y = page.facts(A)
    assert (value, *x, *y) == pytest.approx((0.2, 0.4, 0.6, 0.4, 0.6))
    assert (mu_x, mu_y) == pytest.approx((15, 10))


@few
@given(seeds, st.floats(0.3, 3), st.floats(-2, 2))
def test_threshold_scales_with_the_game_and_ignores_constants(seed, factor, shift):
    A = game(seed)
    x = page.min_norm(A)
    first = page.threshold(A, x, x, simplex(3), simplex(3))
    second = page.threshold(factor * A + shift, x, x, simplex(3), simplex(3))
    assert second == pytest.approx(factor * first, rel=1e-5, abs=1e-6) or first == second == np.inf


def test_threshold_refuses_what_is_not_optimal():
    x = np.array([0.5, 0.3, 0.2])
    with pytest.raises(ValueError, match="not optimal"):
        page.threshold(page.BRPS, x, x, simplex(3), simplex(3))


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_the_program_separates_exact_from_moved(seed):
    A = game(seed)
    value, x, _, mu, _ = page.facts(A)
    if 0.3 < mu < 5:
        strength = np.array([[0.8 * mu], [1.2 * mu]])
        start = np.tile(START, (2, 1))
        xs, _ = page.play(A, start, start, 0.3, 4000, mu_x=strength, every=4000)
        assert np.abs(xs[-1, 0] - x).max() < 1e-7 < 1e-5 < np.abs(xs[-1, 1] - x).max()


# --- duality gap, halving, slopes, counting ----------------------------------------------------------------------------------

@few
@given(seeds, st.floats(0.05, 5))
def test_lowest_is_the_minimum(seed, mu):
    rng = np.random.default_rng(seed)
    g, z = rng.normal(size=(1, 4)), rng.dirichlet(np.ones(4), 200)
    assert page.lowest(g, mu) <= (z @ g[0] + mu / 2 * (z ** 2).sum(axis=1)).min() + 1e-12
    assert page.lowest(g, 0) == pytest.approx(g.min())
    assert page.lowest(g, 1e-9) == pytest.approx(g.min(), abs=1e-8)


@few
@given(seeds, strengths, strengths)
def test_perturbed_gap_is_not_negative(seed, mu_x, mu_y):
    A, rng = game(seed), np.random.default_rng(seed)
    x, y = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), 5)
    assert page.perturbed_gap(A, x, y, mu_x, mu_y).min() >= -1e-12
    assert page.perturbed_gap(A, x, y, 0, 0) == pytest.approx(page.nash_conv(A, x, y))


@pytest.mark.parametrize("both", [False, True])
def test_halving_reaches_what_was_asked(both):
    x, y, mu, total = page.halving(page.BRPS, START, START, 0.05, 0.05, both=both)
    assert page.nash_conv(page.BRPS, x, y).max() <= 0.05 and total % 20 == 0
    assert (mu == 2) != both
    with pytest.raises(ValueError, match="limit"):
        page.halving(page.BRPS, START, START, 0.05, 1e-6, both=both, limit=200)


@few
@given(st.floats(0.001, 0.01))
def test_fitted_slope_of_an_exponential(rate):
    assert page.fitted_slope(3 * np.exp(-rate * 20 * np.arange(501)), 20) == pytest.approx(-rate)


def test_updates_needed_by_hand():
    conv = np.array([[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0.0]])[..., None]
    assert page.updates_needed(conv, 10, 0.5).tolist() == [10, 20, np.inf, 0]
    two = np.stack([conv[..., 0], conv[::-1, :, 0]], axis=-1)
    assert page.updates_needed(two, 10, 0.5)[0] == np.inf  # the slowest start decides


def test_optimism_by_hand():
    A, x = page.PENNIES, np.array([[0.5, 0.5]])
    xs, ys = page.optimistic(A, x, x, 0.1, 2)
    # A y = A'x = (-1/6, 1/6) moves each by 1/60, at once; the base point then steps with the new gradient
    assert (xs[1, 0, 0], ys[1, 0, 0]) == pytest.approx((0.5 + 1 / 60, 0.5 - 1 / 60))
    g, h = A @ ys[1, 0], A.T @ xs[1, 0]
    assert xs[2, 0, 0] == pytest.approx(0.5 - 2 * 0.05 * (g[0] - g[1]))
    assert ys[2, 0, 0] == pytest.approx(0.5 + 2 * 0.05 * (h[0] - h[1]))
    # a simplex is a treeplex with one information set
    flat, tree = np.pad(A, ((1, 0), (1, 0))), [(0, slice(1, 3))]
    start = np.array([[1, 0.5, 0.5]])
    assert np.allclose(page.optimistic(flat, start, start, 0.1, 2, trees=[tree, tree])[0][..., 1:], xs)


def test_tuning_counts_both_runs():
    x, y = page.starts(3, 3, 2, 1, np.random.default_rng(0))
    table = page.tune(page.BRPS, x, y, 400, np.full(9, 0.15), [(0.4, 2.0)] * 9)
    kept = page.nash_conv(page.BRPS, *page.asymmetric(page.BRPS, x, y, 2.0, 0.4, 200))
    first = 1 + np.flatnonzero((kept >= 1e-9).any(axis=1)).max()
    assert np.all(table["one bowl"] == 10 * np.ceil(first / 5)) and np.all(table["OGDA"] < 400)
    assert np.isinf(table["GDA"]).all()


@pytest.mark.parametrize("A", [page.BRPS, page.MNE])
def test_optimism_with_a_good_step_converges(A):
    x, y = page.starts(*A.shape, 2, 1, np.random.default_rng(0))
    assert page.nash_conv(A, *page.optimistic(A, x, y, 0.15, 1500, every=1500))[-1].max() < 1e-6


# --- trees ------------------------------------------------------------------------------------------------------------------

K, *TREES = page.kuhn()
trees = st.sampled_from(TREES)


def plan(seed, tree, rows=1):
    return page.tree_starts(tree, 13, rows, np.random.default_rng(seed))


@few
@given(seeds, trees)
def test_realised_plans_satisfy_the_constraints(seed, tree):
    q = plan(seed, tree)
    x = page.realise(q, tree)
    assert page.constraints(tree, 13) @ x[0] == pytest.approx(np.eye(7)[0])
    assert page.decisions(x[0], tree) == pytest.approx(q[0])


def test_kuhn_by_hand():
    always = lambda tree, second: np.where(np.arange(13) == 0, 1.0, (np.arange(13) % 2 == 0) == second)
    for x_bets in (False, True):
        for y_bets in (False, True):
            x = page.realise(always(TREES[0], x_bets), TREES[0])
            y = page.realise(always(TREES[1], y_bets), TREES[1])
            # who alone is bold wins one chip; otherwise a fair showdown
            assert x @ K @ y == pytest.approx(float(y_bets) - float(x_bets), abs=1e-12)
    assert np.abs(K).sum() == pytest.approx(sum([1, 1, 2, 1, 2]))


@few
@given(seeds, trees)
def test_dilated_slope_is_the_gradient(seed, tree):
    psi = lambda x: sum((x[s] ** 2).sum() / 2 / x[p] for p, s in tree)
    q, d = plan(seed, tree)[0], np.random.default_rng(seed).normal(size=13)
    x = page.realise(q, tree)
    d = d * x  # stay inside
    numeric = (psi(x + 1e-6 * d) - psi(x - 1e-6 * d)) / 2e-6
    assert numeric == pytest.approx(page.dilated_slope(q, tree) @ d, rel=1e-4, abs=1e-6)


@few
@given(seeds, trees, st.floats(0.1, 5))
def test_dilated_step_minimises_its_objective(seed, tree, eta):
    rng = np.random.default_rng(seed)
    q, g = plan(seed, tree), rng.normal(size=(1, 13))

    def objective(new):
        x = page.realise(new, tree)
        return x @ g[0] + sum(x[:, p] * ((new[:, s] - q[:, s]) ** 2).sum(axis=1) for p, s in tree) / (2 * eta)

    assert objective(page.dilated_step(q, g, eta, tree))[0] <= objective(plan(seed + 1, tree, 300)).min() + 1e-9


@few
@given(seeds, trees)
def test_best_reply_beats_every_plan(seed, tree):
    gain = np.random.default_rng(seed).normal(size=13)
    assert page.best(gain, tree) >= (page.realise(plan(seed, tree, 200), tree) @ gain).max()


def test_tree_dynamics_find_the_equilibrium_and_optimism_too():
    q, r = plan(0, TREES[0]), plan(1, TREES[1])
    xs, _ = page.play_tree(K, q, r, 2.0, 1000, mu_x=0.03, every=500, trees=TREES)
    _, ys = page.play_tree(K, q, r, 2.0, 1000, mu_y=0.03, every=500, trees=TREES)
    assert xs.shape == (3, 1, 13) and page.tree_conv(K, xs[-1], ys[-1], TREES) < 1e-9
    pair = page.asymmetric(K, q, r, 0.03, 2.0, 1000, 500, page.play_tree, trees=TREES)
    assert np.allclose(pair[0], xs) and np.allclose(pair[1], ys)
    assert page.tree_conv(K, *page.optimistic(K, q, r, 1.0, 800, 800, TREES), TREES)[-1] < 1e-6


def test_ends_of_the_optimal_set_are_optimal():
    E, F = (page.constraints(tree, 13) for tree in TREES)
    ends = np.array([page.solve(K, E, F, sign * np.eye(13)[2])[1] for sign in (1, -1)])
    assert ends[:, 2] == pytest.approx([0, 1 / 3], abs=1e-9)  # bluffing with the jack
    assert page.best(ends @ K, TREES[1]) == pytest.approx(1 / 18)


# --- plausible wrong answers to the exercises, which the hidden tests must reject ------------------------------------------------

RUN = '''def asym_gda(A, mu, eta, T, x0, y0, side):
    if side not in ("x", "y"):
        raise ValueError(side)
    x, y = {start}
    mu_x, mu_y = {bowls}
    for _ in range(T):
        new = project(x - eta * (A @ y + mu_x * x))
        y = project(y + eta * (A.T @ {seen} {sign} mu_y * y))
        x = new
    return {result}
'''
RUN_OK = dict(start="x0, y0", bowls="(mu, 0) if side == 'x' else (0, mu)", seen="new", sign="-",
              result="x if side == 'x' else y")
HAND = "answer_x, answer_partner, answer_mu_x, answer_mu_y, answer_plain = {}, {}, {}, {}, {}\n"
TWO = '''def threshold_two(A):
    mix = A[0, 0] - A[0, 1] - A[1, 0] + A[1, 1]
    x, y = ((A[1, 1] - A[1, 0]) / mix, (A[1, 1] - A[0, 1]) / mix) if mix else (2, 2)
    if not {inside}:
        raise ValueError("not interior")
    speed = (1 - 2 * x) / mix
    if abs(speed) < 1e-12:
        return np.inf
    return {result}
'''
TWO_OK = dict(inside="(0 < x < 1 and 0 < y < 1)", result="(1 - y) / speed if speed > 0 else -y / speed")
ENTROPY = '''def entropy_run(A, mu, eta, T, x0, y0):
    log_x, y = np.log(x0), y0
    for _ in range(T):
        {first}
        log_x = log_x - eta * (A @ y + {bowl})
        log_x = log_x - np.log(np.exp(log_x - log_x.max()).sum()) - log_x.max()
        {last}
    return np.exp(log_x)
'''
MOVE = "y = project(y + eta * (A.T @ np.exp(log_x)))"
PLAIN = '''def entropy_run(A, mu, eta, T, x0, y0):
    x, y = x0, y0
    for _ in range(T):
        x = x * np.exp(-eta * (A @ y + mu * np.log(x)))
        x = x / x.sum()
        y = project(y + eta * (A.T @ x))
    return x
'''
MUTANTS = {
    "run": {
        "bowls for both": RUN.format(**RUN_OK | {"bowls": "(mu, mu)"}),
        "moves at once": RUN.format(**RUN_OK | {"seen": "x"}),
        "returns the partner": RUN.format(**RUN_OK | {"result": "y if side == 'x' else x"}),
        "bowl on x whatever the side": RUN.format(**RUN_OK | {"bowls": "(mu, 0)"}),
        "the second player's bowl has the wrong sign": RUN.format(**RUN_OK | {"sign": "+"}),
        "ignores the strength": RUN.format(**RUN_OK | {"bowls": "(1, 0) if side == 'x' else (0, 1)"}),
        "always returns x": RUN.format(**RUN_OK | {"result": "x"}),
    },
    "hand": {
        "takes the partner for an equilibrium strategy": HAND.format(0.4, 0.4, 15, 10, "'c'"),
        "lets the partner move down": HAND.format(0.4, 0.2, 10, 10, "'c'"),
        "the same threshold for both": HAND.format(0.4, 0.6, 15, 15, "'c'"),
        "believes in symmetry": HAND.format(0.4, 0.6, 15, 10, "'b'"),
    },
    "two": {
        "only looks at the upper wall": TWO.format(**TWO_OK | {"result": "(1 - y) / abs(speed)"}),
        "takes the nearer wall": TWO.format(**TWO_OK | {"result": "min(y, 1 - y) / abs(speed)"}),
        "mixes up the walls": TWO.format(**TWO_OK | {"result": "y / speed if speed > 0 else (y - 1) / speed"}),
        "does not check the equilibrium": TWO.format(**TWO_OK | {"inside": "mix"}),
        "checks only the first player": TWO.format(**TWO_OK | {"inside": "0 < x < 1"}),
        "checks only the second player": TWO.format(**TWO_OK | {"inside": "0 < y < 1"}),
        "forgets the game's scale": TWO.format(**TWO_OK | {
            "result": "((1 - y) / speed if speed > 0 else -y / speed) / abs(mix)"}),
    },
    "entropy": {
        "moves y first": ENTROPY.format(first=MOVE, bowl="mu * log_x", last="pass"),
        "quadratic bowl": ENTROPY.format(first="pass", bowl="mu * np.exp(log_x)", last=MOVE),
        "no bowl": ENTROPY.format(first="pass", bowl="0", last=MOVE),
        "y sees the old x": ENTROPY.format(first="old = np.exp(log_x)", bowl="mu * log_x",
                                           last="y = project(y + eta * (A.T @ old))"),
        "works without logarithms": PLAIN,
    },
    "letter": {"exact everywhere": 'answer_entropy = "a"\n', "blames the quadratic": 'answer_entropy = "b"\n'},
}
