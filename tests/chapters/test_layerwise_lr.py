"""Property tests of the functions on the page of layerwise-lr, and wrong answers that its exercises must reject."""
import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

page = press.definitions("layerwise-lr")
torch.set_num_threads(1)
seeds = st.integers(0, 10_000)
few = settings(max_examples=15, deadline=None)
N = len(page.MATRICES)


def matrix(seed, m=12, n=20):
    return torch.randn(m, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tokens(seed, runs=1, T=9):
    return torch.randint(page.VOCAB, (runs, 2, T), generator=torch.Generator().manual_seed(seed))


# --- the gauge --------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.floats(1e-3, 1e3))
def test_exponent_ignores_scale_transposition_and_rotation(seed, scale):
    W = matrix(seed)
    Q = torch.linalg.qr(matrix(seed + 1, 12, 12))[0]
    alpha = float(page.hill(page.eigenvalues(W)))
    for other in (scale * W, W.mT, Q @ W):
        assert float(page.hill(page.eigenvalues(other))) == pytest.approx(alpha, rel=1e-8)


@few
@given(seeds)
def test_eigenvalues_ascend_and_add_up_to_the_squared_norm(seed):
    W = matrix(seed)
    lam = page.eigenvalues(W)
    assert lam.shape == (12,) and bool((lam.diff() >= 0).all())
    assert float(lam.sum()) == pytest.approx(float(W.square().sum()))


def test_exponent_by_hand_odd_count_zeros_stacks_and_too_few():
    lam = torch.tensor([1.0, 2, 4, 8, 16], dtype=torch.float64)
    assert float(page.hill(lam)) == pytest.approx(1 + 3 / np.log(8))
    assert float(page.hill(torch.tensor([0.0, 1, 2, 4]))) == pytest.approx(1 + 2 / np.log(2), rel=1e-5)
    assert torch.isfinite(page.hill(torch.tensor([0.0, 0, 0, 4])))
    assert page.hill(torch.stack([lam, lam])[None]).shape == (1, 2)
    with pytest.raises(ValueError, match="too few"):
        page.hill(torch.ones(3))


@few
@given(seeds, st.sampled_from([2.0, 3.0, 5.0]))
def test_exponent_finds_a_true_power_law(seed, alpha):
    u = np.random.default_rng(seed).random(20_000)
    lam = torch.tensor(np.sort(u ** (-1 / (alpha - 1))))
    assert float(page.hill(lam)) == pytest.approx(alpha, rel=0.06)


def test_noise_of_a_wider_shape_has_a_larger_exponent():
    gen = torch.Generator().manual_seed(0)
    means = [float(page.random_exponents(32, n, 30, gen).mean()) for n in (32, 64, 128)]
    assert means[0] + 0.3 < means[1] and means[1] + 0.3 < means[2]


def test_tail_test_has_the_right_sign_and_ignores_scale():
    u = torch.rand(5000, generator=torch.Generator().manual_seed(0), dtype=torch.float64).sort().values
    power, light = (1 - u) ** -0.5, -(1 - u).log()
    assert float(page.tail_test(power)) > 5 and float(page.tail_test(light)) < -5
    assert float(page.tail_test(9 * light)) == pytest.approx(float(page.tail_test(light)))


# --- the rules ----------------------------------------------------------------------------------------------------------

def alphas(seed, runs=3):
    rng = np.random.default_rng(seed)
    return torch.tensor(2 + rng.random((runs, N))), torch.tensor(np.stack([rng.permutation(N) for _ in range(runs)]))


@few
@given(seeds, st.floats(1.5, 9), st.floats(0.1, 10), st.floats(-3, 3))
def test_map_fills_its_range_keeps_order_and_ignores_affine_changes(seed, s, scale, shift):
    alpha, _ = alphas(seed)
    m = page.rank_map(alpha, s)
    assert m.amin(1).allclose(torch.ones(3, dtype=m.dtype)) and m.amax(1).allclose(torch.full((3,), s, dtype=m.dtype))
    assert torch.equal(m.argsort(1), alpha.argsort(1))
    assert torch.allclose(page.rank_map(scale * alpha + shift, s), m)


@few
@given(seeds)
def test_spoilt_rules_keep_the_mean_and_the_ends(seed):
    alpha, order = alphas(seed)
    m = {rule: page.adaptive_multipliers(rule, alpha, order) for rule in page.ADAPTIVE}
    for rule, values in m.items():
        assert values.shape == (3, N + 1)
        assert torch.allclose(values[:, :-1].mean(1), m["LLR"][:, :-1].mean(1))
        assert torch.equal(values[:, -1], torch.full((3,), page.S, dtype=values.dtype))
    for rule in ("reversed", "permuted"):
        assert torch.allclose(m[rule][:, :-1].sort(1).values, m["LLR"][:, :-1].sort(1).values)
    assert torch.equal(m["reversed"][:, :-1].argsort(1), alpha.argsort(1, descending=True))
    assert torch.allclose(m["permuted"][:, :-1], m["LLR"].gather(1, order))


def test_equal_exponents_do_not_divide_by_zero_and_unknown_rules_are_refused():
    assert torch.equal(page.rank_map(torch.full((1, 3), 2.0)), torch.ones(1, 3))
    with pytest.raises(ValueError, match="choose from"):
        page.adaptive_multipliers("best", *alphas(0))
    with pytest.raises(ValueError, match="choose from"):
        page.group_multipliers("best")


def test_group_rules_raise_their_group_alone():
    raised = {rule: set(np.flatnonzero(page.group_multipliers(rule) != 1)) for rule in ("uniform", "ends", "attention", "mlp")}
    attention = {i for i, name in enumerate(page.MATRICES) if name[0] in "qkvo"}
    assert raised == {"uniform": set(), "ends": {N}, "attention": attention, "mlp": set(range(N)) - attention}
    assert len(attention) == 8 and torch.equal(page.group_multipliers("raised"), torch.full((N + 1,), 3.0))


def test_controller_ramps_arrives_and_freezes():
    w = page.init_weights([0, 0], 16)
    control = page.Controller([("LLR", 1e-3, 0), ("uniform", 1e-3, 0)], steps=100, every=10, share=0.2, ramp=5)
    target = page.adaptive_multipliers("LLR", page.exponents(w), control.order)[0]
    seen = {}
    for t in range(1, 101):
        seen[t] = control(t, w)
        if t == 9:
            w["q0"][0, 0] *= 30  # a heavier tail
        if t == 29:
            w["o1"][0, 0] *= 30  # too late to matter
    assert torch.allclose(seen[1][0], 1 + (target - 1) / 5) and torch.allclose(seen[5][0], target)
    assert torch.equal(seen[9], seen[5]) and not torch.allclose(seen[15], seen[9])
    assert seen[15][0, 0] == 1 and torch.equal(seen[25], seen[100])
    assert all(torch.equal(m[1], torch.ones(N + 1)) for m in seen.values())


# --- the network ----------------------------------------------------------------------------------------------------------

def test_text_is_split_and_numbered():
    first, last = page.load_text()
    assert len(first) > 8 * len(last) > 300_000 and int(first.min()) >= 0 and int(first.max()) < page.VOCAB


@few
@given(seeds)
def test_equal_seeds_see_equal_batches(seed):
    ids = torch.arange(500)
    x = next(page.batches(ids, [seed, seed + 1, seed], 3, 7))
    assert x.shape == (3, 3, 8) and torch.equal(x[0], x[2]) and not torch.equal(x[0], x[1])
    assert bool((x.diff(dim=-1) == 1).all())


@few
@given(seeds)
def test_runs_in_one_tensor_do_not_touch_each_other(seed):
    w, x = page.init_weights([seed, seed + 1], 16), tokens(seed, 2)
    alone = [page.losses({n: p[i:i + 1] for n, p in w.items()}, x[i:i + 1]) for i in (0, 1)]
    assert torch.allclose(page.losses(w, x), torch.cat(alone), atol=1e-5)
    assert abs(float(alone[0]) - np.log(page.VOCAB)) < 0.1


@few
@given(seeds)
def test_the_next_character_is_the_target(seed):
    w, x = page.init_weights([seed], 16), tokens(seed)
    w["head"] *= 50
    other = x.clone()
    other[..., -1] = (other[..., -1] + 1) % page.VOCAB  # the last one is predicted and never read
    assert abs(float(page.losses(w, x) - page.losses(w, other))) > 1e-4


@few
@given(seeds)
def test_the_future_has_no_influence_and_positions_matter_relatively(seed):
    w, x = page.init_weights([seed], 16), torch.randn(1, 10, 16, generator=torch.Generator().manual_seed(seed))
    changed = x.clone()
    changed[:, 6:] += 1
    a, b = (page.attend(w, v, 0, (1, 1, 10, 16)) for v in (x, changed))
    assert torch.allclose(a[:, :6], b[:, :6], atol=1e-6) and not torch.allclose(a[:, 6:], b[:, 6:])
    q, k = (page.rotate(v.expand(8, 16)) for v in torch.randn(2, 16, generator=torch.Generator().manual_seed(seed)))
    assert torch.allclose(q.norm(dim=-1), q[0].norm().expand(8))
    assert torch.allclose((q @ k.mT).diagonal(2), (q @ k.mT)[0, 2].expand(6), atol=1e-4)


@few
@given(seeds, st.floats(0.1, 50))
def test_normalised_rows_have_root_mean_square_one(seed, scale):
    y = page.normalise(scale * matrix(seed), torch.ones(1, 20, dtype=torch.float64))
    assert torch.allclose(y.square().mean(-1), torch.ones(12, dtype=torch.float64), atol=1e-3)


# --- training ---------------------------------------------------------------------------------------------------------------

def test_schedule_by_hand():
    assert page.schedule(5, 100) == 0.5 and page.schedule(10, 100) == 1
    assert page.schedule(55, 100) == pytest.approx(0.55) and page.schedule(100, 100) == pytest.approx(0.1)


def short(optimiser, m, eta=(1e-2, 1e-2)):
    w, data = page.init_weights([0, 0], 16), page.batches(torch.arange(2000) % 7, [0, 0], 2, 8)
    curve = page.train(w, torch.tensor(eta), lambda t, w: m, data, 12, optimiser)
    return w, curve


@pytest.mark.parametrize("optimiser", ["AdamW", "Muon"])
def test_multipliers_reach_their_matrix_and_only_that(optimiser):
    m = torch.ones(2, N + 1)
    m[:, 0], m[:, -1] = 0, 0
    w, curve = short(getattr(page, optimiser), m)
    start = page.init_weights([0, 0], 16)
    still = {n for n in w if torch.equal(w[n].detach(), start[n])}
    assert still == {"q0", "embed", "head"} and curve.shape == (12, 2) and curve[-1].mean() < curve[0].mean()


def test_a_multiplier_on_everything_is_a_larger_base_rate_apart_from_the_norm_scales():
    m = torch.ones(2, N + 1)
    m[1] = 2
    w, _ = short(page.AdamW, m, eta=(2e-3, 1e-3))
    assert torch.allclose(w["q0"][0], w["q0"][1], atol=2e-3)
    assert not torch.allclose(w["scale0"][0], w["scale0"][1], atol=1e-3)


def test_first_adam_step_is_the_sign():
    g = torch.tensor([[[2.0, -0.1]]])
    assert torch.allclose(page.AdamW({"x": g}).direction("x", g, 1), g.sign(), atol=1e-5)


@few
@given(seeds)
def test_muon_equalises_singular_values(seed):
    G = matrix(seed).float()
    X = page.orthogonalise(G)
    values = torch.linalg.svdvals(X)
    assert 0.5 < values.min() and values.max() < 1.3
    assert torch.allclose(page.orthogonalise(G.mT), X.mT, atol=1e-4)


class Still:
    """An optimiser without steps, which keeps the squared norm of the gradients that it was given."""

    def __init__(self, w):
        Still.norm = torch.zeros(2)

    def direction(self, name, g, t):
        Still.norm += g.square().sum((1, 2))
        return torch.zeros_like(g)


def test_gradients_are_clipped_to_norm_one_and_weights_decay_at_their_own_rate():
    w, start = page.init_weights([0, 0], 16), page.init_weights([0, 0], 16)
    w["head"][0] *= 300  # large gradients in the first run
    m, data = torch.ones(2, N + 1), page.batches(torch.arange(2000) % 7, [0, 0], 2, 8)
    m[:, 0] = 3
    page.train(w, torch.tensor([0.1, 0.2]), lambda t, w: m, data, 1, Still)
    assert float(Still.norm[0]) == pytest.approx(1, rel=1e-4) and 0 < Still.norm[1] <= 1.0001
    shrunk = (1 - 0.1 * torch.tensor([0.1, 0.2]) * page.schedule(1, 1))[:, None, None]
    assert torch.allclose(w["v0"], start["v0"] * shrunk) and torch.allclose(w["q0"], start["q0"] * (3 * shrunk - 2))
    assert torch.equal(w["scale0"], start["scale0"])


def test_muon_remembers_the_last_gradient():
    g = [torch.randn(1, 16, 16, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
    muon = page.Muon({"q0": g[0]})
    first, second = (muon.direction("q0", x.clone(), t) for t, x in enumerate(g, 1))
    assert torch.allclose(first, 0.8 * page.orthogonalise(g[0]), atol=1e-4)
    assert torch.allclose(second, 0.8 * page.orthogonalise(1.95 * g[1] + 0.95 ** 2 * g[0]), atol=1e-4)


# --- bookkeeping --------------------------------------------------------------------------------------------------------------

def test_tables_and_best_rates_by_hand():
    runs = [("uniform", 1, 0), ("uniform", 1, 1), ("uniform", 2, 0), ("uniform", 2, 1), ("LLR", 1, 0), ("LLR", 1, 1)]
    table = page.tabulate(runs, [3.0, 5, 2, 4, 1, 1])
    assert page.best_rate(table["uniform"]) == 2 and page.at_best(table, "uniform").tolist() == [2, 4]
    assert page.saved(table, "LLR", [1]).tolist() == [[2, 4]]
    assert page.saved(table, "LLR", [1], [2]).tolist() == [[1, 3]]


@few
@given(seeds, st.integers(1, 9))
def test_running_mean(seed, window):
    x = np.random.default_rng(seed).normal(size=(2, 30))
    expected = np.stack([np.convolve(row, np.ones(window) / window, "valid") for row in x])
    assert np.allclose(page.smooth(x, window), expected)


def test_agreement_of_equal_and_opposite_rankings():
    x = np.arange(5.0)
    assert page.agreement(np.stack([x, 2 * x])) == pytest.approx(1) and page.agreement(np.stack([x, -x])) == pytest.approx(-1)


# --- plausible wrong answers to the exercises, which the hidden tests must reject -----------------------------------------------

TAIL = '''def tail_exponent(W):
    if min(W.shape) < 4:
        raise ValueError("too few")
    lam = np.sort({lam})
    i = {i}
    return 1 + {k} / np.log(lam[i:] / lam[i]).sum()
'''
LAM = "np.linalg.svd(W, compute_uv=False) ** 2"
MAP = "answer_rates, answer_ratio, answer_fix, answer_run = {}, {}, {!r}, {!r}\n"
RIGHT = "[1e-3, 2e-3, 5e-3]"
SQUARES = '''def square_exponent(W, side):
    rows, columns = W.shape[0] // side, W.shape[1] // side
    if rows * columns == 0:
        raise ValueError("no block fits")
    blocks = [W[r * side:(r + 1) * side, c * side:(c + 1) * side] for r in range({rows}) for c in range({columns})]
    return {result}
'''
MEAN = "np.mean([block_exponent(b) for b in blocks])"
MUTANTS = {
    "tail": {
        "forgets the square": TAIL.format(lam="np.linalg.svd(W, compute_uv=False)", i="len(lam) // 2", k="(len(lam) - i)"),
        "does not count the threshold": TAIL.format(lam=LAM, i="len(lam) // 2", k="(len(lam) - i - 1)"),
        "rounds the median up": TAIL.format(lam=LAM, i="(len(lam) + 1) // 2", k="(len(lam) - i)"),
        "counts the zeros of a wide matrix": TAIL.format(
            lam="np.abs(np.linalg.eigvalsh(W.T @ W)) + 1e-300", i="len(lam) // 2", k="(len(lam) - i)"),
        "counts rows alone": TAIL.replace("min(W.shape)", "W.shape[0]").format(lam=LAM, i="len(lam) // 2", k="(len(lam) - i)"),
        "takes half of N": TAIL.format(lam=LAM, i="len(lam) // 2", k="len(lam) / 2"),
    },
    "map": {
        "ranks instead of measuring": MAP.format("[1e-3, 3e-3, 5e-3]", 5, "c", "b"),
        "heavy tails get the most": MAP.format("[5e-3, 4e-3, 1e-3]", 5, "c", "b"),
        "lets s multiply the range": MAP.format("[1e-3, 2.25e-3, 6e-3]", 5, "c", "b"),
        "takes the ratio of the exponents": MAP.format(RIGHT, 2.2 / 2.1, "c", "b"),
        "subtracts the mean": MAP.format(RIGHT, 5, "d", "b"),
        "compares with the largest rate": MAP.format(RIGHT, 5, "c", "a"),
    },
    "square": {
        "takes the first block only": SQUARES.format(rows="1", columns="1", result=MEAN),
        "cuts columns only": SQUARES.format(rows="1", columns="columns", result=MEAN),
        "cuts rows only": SQUARES.format(rows="rows", columns="1", result=MEAN),
        "keeps incomplete blocks": SQUARES.format(rows="-(-W.shape[0] // side)", columns="-(-W.shape[1] // side)",
                                                  result="np.mean([block_exponent(b) for b in blocks if min(b.shape) > 2])"),
        "takes the median": SQUARES.format(rows="rows", columns="columns", result="np.median([block_exponent(b) for b in blocks])"),
        "averages the blocks first": SQUARES.format(rows="rows", columns="columns", result="block_exponent(np.mean(blocks, axis=0))"),
        "refuses only a matrix smaller in both directions": SQUARES.replace("rows * columns", "rows + columns").format(
            rows="rows", columns="columns", result=MEAN),
        "measures the whole": SQUARES.format(rows="rows", columns="columns", result="block_exponent(W)"),
    },
}
