"""Property tests of the functions on the page of meta-dns, and wrong answers that its exercises must reject."""
import itertools
import math

import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings, strategies as st

page = press.definitions("meta-dns")
few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 999)


def all_states(D):
    return torch.tensor(list(itertools.product((0, 1), repeat=D)))


# --- the model and its exact answers -----------------------------------------------------------------------------------------

@few
@given(st.floats(0, 1.2))
def test_rows_agree_with_a_list_of_all_states(beta):
    for L in (2, 3):
        system, x = page.Ising(L), all_states(L * L)
        listed = np.bincount(system.bins(x).numpy(), np.exp(-beta * system.energy(x).double().numpy()))
        assert np.allclose(np.log(listed), page.exact_log_weights(L, beta), atol=1e-5)


def test_without_interaction_the_weights_are_binomial():
    assert np.allclose(np.exp(page.exact_log_weights(4, 0.0)), [math.comb(16, u) for u in range(17)])


@few
@given(seeds)
def test_energy_has_the_symmetries_of_the_torus(seed):
    system = page.Ising(4)
    x = torch.randint(2, (5, 16), generator=torch.Generator().manual_seed(seed))
    assert torch.equal(system.energy(x), system.energy(1 - x))
    assert torch.equal(system.energy(x), system.energy(x.view(5, 4, 4).roll((1, 2), (1, 2)).flatten(1)))
    assert torch.equal(system.bins(x) + system.bins(1 - x), torch.full((5,), 16))


def test_energies_worked_out_by_hand():
    system, up = page.Ising(4), torch.ones(16, dtype=torch.long)
    one, stripe = up.clone(), up.clone()
    one[5] = 0
    stripe[:8] = 0
    assert system.energy(up) == -32 and system.energy(one) == -24 and system.energy(stripe) == -16


# --- the sampler -------------------------------------------------------------------------------------------------------------

def test_sampling_decides_every_site_and_knows_its_probability():
    torch.manual_seed(0)
    net = page.Samplers(2, 4, width=8)
    x, log_q = page.sample(net, 30_000)
    assert x.shape == (2, 30_000, 4) and set(x.unique().tolist()) == {0, 1}
    # For any network the mean of 1 / q is the number of states.
    assert torch.allclose((-log_q).exp().mean(1), torch.tensor(16.0), rtol=0.03)
    for p in net.parameters():
        p.data.zero_()
    assert torch.allclose(page.sample(net, 10)[1], torch.tensor(-4 * math.log(2)))


def test_log_q_is_the_product_of_the_conditionals():
    torch.manual_seed(1)
    net = page.Samplers(1, 1, width=4)
    x, log_q = page.sample(net, 50)
    p = net(torch.full((1, 1, 1), 2)).softmax(2)[0, 0, :, 0]
    assert torch.allclose(log_q[0], p.log()[x[0, :, 0]])


def test_models_side_by_side_do_not_touch_each_other():
    torch.manual_seed(0)
    net = page.Samplers(2, 9, width=8)
    page.sample(net, 4)[1][0].sum().backward()
    for p in net.parameters():
        assert p.grad[1].abs().max() == 0 and p.grad[0].abs().max() > 0


# --- hills -------------------------------------------------------------------------------------------------------------------

def test_second_hill_by_hand():
    V = page.deposit(np.zeros((1, 3)), np.array([[1, 1]]), np.eye(3), np.array([2.0]), np.array([9.0]))
    assert V.tolist() == [[0, pytest.approx(1 + math.exp(-1 / 9)), 0]]


@few
@given(seeds)
def test_without_tempering_hills_add_up_in_any_order(seed):
    rng = np.random.default_rng(seed)
    bins, hills = rng.integers(5, size=(2, 7)), rng.random((5, 5))
    hills = hills + hills.T
    V0, height = rng.random((2, 5)), np.array([1.0, 3.0])
    V = page.deposit(V0, bins, hills, height, np.full(2, math.inf))
    counts = page.count(torch.tensor(bins), 5)
    assert np.allclose(V, V0 + height[:, None] / 7 * counts @ hills)


@few
@given(seeds, st.floats(0.1, 50))
def test_tempering_only_shrinks_hills_and_leaves_the_input_alone(seed, dT):
    rng = np.random.default_rng(seed)
    V0, bins, hills = rng.random((1, 6)), rng.integers(6, size=(1, 9)), np.eye(6)
    before = V0.copy()
    tempered, plain = (page.deposit(V0, bins, hills, np.ones(1), np.full(1, d)) for d in (dT, math.inf))
    assert np.array_equal(V0, before) and (V0 <= tempered).all() and (tempered <= plain + 1e-12).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="between 0 and 2"):
        page.deposit(np.zeros((1, 3)), np.array([[3]]), np.eye(3), np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="exceed 1"):
        page.Bias(page.Ising(2), 1.0, [1.0], [1.0])


def test_bias_keeps_its_history_and_reads_its_own_model():
    system = page.Ising(2)
    bias = page.Bias(system, 2.0, [0.5, 0.0], [10.0, math.inf])
    bias.deposit(torch.tensor([[0, 0], [4, 4]]))
    assert len(bias.history) == 2 and not bias.history[0].any() and not bias.V[1].any()
    assert bias.V[0, 0] == pytest.approx(0.5 + 0.5 * math.exp(-0.5 / 18))     # T = 2: height 1, dT = 18
    assert torch.allclose(bias(torch.tensor([[0], [0]])), torch.tensor([[bias.V[0, 0]], [0.0]], dtype=torch.float32))


# --- estimates ---------------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.floats(-2000, 2000))
def test_weights_do_not_mind_a_constant(seed, shift):
    rng = np.random.default_rng(seed)
    w, bins = rng.normal(size=40), rng.integers(6, size=40)
    assert page.ess(w + shift) == pytest.approx(page.ess(w)) and 1 / 40 <= page.ess(w) <= 1
    assert page.log_mean(w + shift) == pytest.approx(page.log_mean(w) + shift)
    assert np.allclose(page.weighted(bins, w + shift, 6), page.weighted(bins, w, 6))
    assert page.weighted(bins, w, 6).sum() == pytest.approx(1)


def test_extreme_effective_sample_sizes():
    assert page.ess(np.zeros(10)) == pytest.approx(1) and page.ess(np.array([0.0, -99, -99, -99])) == pytest.approx(0.25)


def test_share_up_counts_a_tie_half():
    assert page.share_up(np.array([0.1, 0.4, 0.5])) == pytest.approx(0.7)
    assert page.share_up(np.array([0.1, 0.2, 0.3, 0.4])) == pytest.approx(0.7)
    assert page.share_seen(np.array([0, 0, 3]), 4) == 0.5


@few
@given(seeds)
def test_divergence_is_symmetric_and_bounded(seed):
    P, Q = np.random.default_rng(seed).dirichlet(np.ones(5), size=2)
    assert page.jensen_shannon(P, Q) == pytest.approx(page.jensen_shannon(Q, P))
    assert 0 <= page.jensen_shannon(P, Q) <= math.log(2) and page.jensen_shannon(P, P) == 0
    assert page.jensen_shannon(np.array([1.0, 0]), np.array([0, 1.0])) == pytest.approx(math.log(2))


@few
@given(seeds, st.floats(-50, 50))
def test_profile_error_removes_the_constant_and_punishes_gaps(seed, shift):
    F = np.random.default_rng(seed).random(9) * 10
    assert page.profile_error(F + shift, F) == pytest.approx(0, abs=1e-9)
    blind = np.where(F > np.median(F), np.nan, F)
    assert page.profile_error(blind, F) > 0
    assert page.profile_error(np.array([0, 0.0]), np.array([0, 2.0])) == pytest.approx(1)


@few
@given(seeds, st.floats(1.5, 40))
def test_a_settled_bias_returns_the_free_energy(seed, gamma):
    F = np.random.default_rng(seed).random(7)
    settled = (1 - 1 / gamma) * (F.max() - F)
    assert page.profile_error(page.from_bias(settled, gamma), F) == pytest.approx(0, abs=1e-9)
    assert np.array_equal(page.from_bias(F, math.inf), -F)


def test_free_energy_marks_what_was_not_seen():
    F = page.free_energy(np.array([0.5, 0.0, 0.25]), 2.0)
    assert F[0] == 0 and np.isnan(F[1]) and F[2] == pytest.approx(2 * math.log(2))
    both = page.errors(np.array([0, 2]), np.zeros(2), np.zeros(3), 10.0, np.zeros(3), 1.0)
    assert both == [0, 0]


def test_lopsided_knows_the_two_symptoms():
    one_side = page.lopsided(np.full(9, 4), np.full(9, 3.0), 3.0 + math.log(2), 5)
    assert one_side == pytest.approx(math.log(2))
    assert page.lopsided(np.array([0, 4]), np.full(2, 3.0), 3.0, 5) == 0


def test_first_all_by_hand():
    history = np.array([[[1, 0], [1, 0]], [[1, 0], [2, 0]], [[0, 1], [1, 0]]])     # (cycles 3, models 2, bins 2)
    assert page.first_all(history).tolist() == [3, 3]                              # the second: never
    assert page.first_all(history[1:, :1]).tolist() == [2]


# --- training ----------------------------------------------------------------------------------------------------------------

def test_reverse_training_deposits_from_hold_on():
    torch.manual_seed(0)
    system = page.Ising(2)
    bias = page.Bias(system, 1.0, [0.5], [10.0])
    history = page.train_reverse(page.Samplers(1, 4, width=8), system, [0.5] * 12, bias, hold=5, batch=16)
    assert history.shape == (12, 1, 5) and (history.sum(2) == 16).all() and len(bias.history) == 8


def test_reverse_training_lowers_the_energy():
    torch.manual_seed(0)
    system = page.Ising(2)
    net = page.Samplers(1, 4, width=16)
    page.train_reverse(net, system, [1.0] * 150, batch=64, lr=1e-2)
    assert system.energy(page.sample(net, 500)[0]).mean() < -6.5                   # random states: 0, best: -8


def test_denoising_training_deposits_fresh_samples_only():
    torch.manual_seed(0)
    system = page.Ising(2)
    bias = page.Bias(system, 1.0, [0.5, 0.0], [10.0, 10.0])
    average, history = page.train_mdns(page.Samplers(2, 4, width=8), system, 0.5, bias, 20, hold=1, batch=16)
    assert history.shape == (4, 2, 5) and len(bias.history) == 4                   # 4 batches, the first one held back
    assert bias.V[0].max() > 0 and not bias.V[1].any()
    assert not any(p.requires_grad for p in average.parameters())


def test_denoising_loss_ignores_a_constant_and_samples_without_weight():
    net = page.Samplers(1, 4, width=8)
    x = torch.tensor([[[0, 1, 0, 1], [1, 1, 1, 1]]])
    losses = []
    for log_w, second in ((0.0, 1), (7.0, 1), (0.0, 0)):
        torch.manual_seed(3)
        x[0, 1] = second
        losses.append(page.denoising_loss(net, x, torch.tensor([[log_w, log_w - 200]])).item())
    assert losses[0] > 0 and losses == pytest.approx([losses[0]] * 3)


def test_chains_without_hills_sample_the_boltzmann_distribution():
    system, beta = page.Ising(3), 0.25
    bias = page.Bias(system, 1 / beta, [0.0], [10.0])
    seen = page.mcmc_metadynamics(system, beta, bias, 150, 9, np.random.default_rng(0))
    exact = page.exact_log_weights(3, beta)
    exact = np.exp(exact - np.logaddexp.reduce(exact))
    got = seen[20:, 0].sum(0) / seen[20:, 0].sum()
    assert page.jensen_shannon(got, exact) < 0.002


def test_chains_with_hills_find_the_exact_profile():
    system, beta = page.Ising(3), 0.6
    bias = page.Bias(system, 1 / beta, [0.5], [10.0])
    page.mcmc_metadynamics(system, beta, bias, 250, 9, np.random.default_rng(0))
    exact = -page.exact_log_weights(3, beta) / beta
    assert page.profile_error(page.from_bias(bias.V[0], 10.0), exact) * beta < 0.3


def test_a_perfect_sampler_recovers_the_profile():
    P = np.exp(page.exact_log_weights(3, 0.6))
    bias = page.Bias(page.Ising(3), 1 / 0.6, [0.5], [10.0])
    seen = page.perfect_metadynamics(P / P.sum(), bias, 0.6, 200, np.random.default_rng(0))
    assert seen.shape == (200, 1, 10) and len(bias.history) == 201
    assert page.profile_error(page.from_bias(bias.V[0], 10.0), -np.log(P) / 0.6) * 0.6 < 0.3


# --- plausible wrong answers to the exercises, which the hidden tests must reject --------------------------------------------

DEPOSIT = '''def deposit(V, grid, s, W, sigma, dT):
    V = V.copy()
    for center in s:
        here = V[np.abs(grid - center).argmin()]
        V += W * math.exp(-here / dT) * np.exp(-((grid - center) ** 2) / (2 * sigma**2))
    return V
'''
HIDDEN = "answer_barrier, answer_log_z, answer_ess, answer_stripe, answer_trust = {}, {}, {}, {}, {}\n"
REWEIGHT = '''def reweight(E, log_q, bins, size, beta):
    log_w = -beta * E - log_q
    top = log_w.max()
    w = np.exp(log_w - top)
    P = np.bincount(bins, w, minlength=size)
    P[np.bincount(bins, minlength=size) == 0] = np.nan
    return -np.log(P / np.nanmax(P)) / beta, top + math.log(w.mean())
'''
PERFECT = '''def perfect(drop, F, grid, T, gamma, cycles, rng):
    V, history = np.zeros(len(grid)), []
    for _ in range(cycles):
        tilt = -(F + V) / T
        p = np.exp(tilt - tilt.max())
        s = grid[rng.choice(len(grid), 64, p=p / p.sum())]
        V = drop(V, grid, s, 0.5 * T / 64, 0.05, (gamma - 1) * T)
        history.append(V)
    return np.array(history)
'''
MUTANTS = {
    "deposit": {
        "no tempering": DEPOSIT.replace("math.exp(-here / dT) * ", ""),
        "the whole batch sees the old bias": DEPOSIT.replace("here = V[", "here = old[").replace("V = V.copy()", "old, V = V, V.copy()"),
        "hill centred at the grid point": DEPOSIT.replace("(grid - center) ** 2", "(grid - grid[np.abs(grid - center).argmin()]) ** 2"),
        "shrinks by the largest bias": DEPOSIT.replace("V[np.abs(grid - center).argmin()]", "V.max()"),
        "shrinks each grid point by its own bias": DEPOSIT.replace("math.exp(-here / dT)", "np.exp(-V / dT)"),
        "forgets the two in the width": DEPOSIT.replace("(2 * sigma**2)", "sigma**2"),
        "takes the grid point below": DEPOSIT.replace("np.abs(grid - center).argmin()", "int((center - grid[0]) / 0.2 + 1e-9)"),
        "sorts the batch": DEPOSIT.replace("in s:", "in sorted(s):"),
        "divides by the batch": DEPOSIT.replace("V += W", "V += W / len(s)"),
    },
    "hidden": {
        "flat histogram": HIDDEN.format(0.01, "-math.log(2)", 1.0, -16, "'a'"),
        "divides by gamma minus one": HIDDEN.format(0.76, "-math.log(2)", 1.0, -16, "'a'"),
        "wrong sign": HIDDEN.format(0.684, "math.log(2)", 1.0, -16, "'a'"),
        "ESS shows it": HIDDEN.format(0.684, "-math.log(2)", 0.5, -16, "'a'"),
        "an island, not a stripe": HIDDEN.format(0.684, "-math.log(2)", 1.0, -12, "'a'"),
        "counts one wall": HIDDEN.format(0.684, "-math.log(2)", 1.0, -24, "'a'"),
        "trusts the shortcut": HIDDEN.format(0.684, "-math.log(2)", 1.0, -16, "'b'"),
    },
    "reweight": {
        "sign of log q": REWEIGHT.replace("- log_q", "+ log_q"),
        "ignores q": REWEIGHT.replace("-beta * E - log_q", "-beta * E"),
        "log Z from the sum": REWEIGHT.replace("w.mean()", "w.sum()"),
        "forgets the shift": REWEIGHT.replace("top + math.log", "math.log"),
        "overflows": REWEIGHT.replace("top = log_w.max()", "top = 0.0"),
        "subtracts the mean": REWEIGHT.replace("log_w.max()", "log_w.mean()"),
        "free energy in units of T": REWEIGHT.replace(" / beta, top", ", top"),
        "mean per bin": REWEIGHT.replace("P[np.bin", "P = P / np.maximum(np.bincount(bins, minlength=size), 1)\n    P[np.bin"),
    },
    "perfect": {
        "sampler does not feel the bias": PERFECT.replace("-(F + V) / T", "-F / T"),
        "drops indices": PERFECT.replace("s = grid[rng.choice(len(grid), 64, p=p / p.sum())]", "s = rng.choice(len(grid), 64, p=p / p.sum())"),
        "forgets the temperature": PERFECT.replace("-(F + V) / T", "-(F + V)"),
        "tempers by gamma T": PERFECT.replace("(gamma - 1) * T", "gamma * T"),
        "starts anew each cycle": PERFECT.replace("V = drop(V, ", "V = drop(0 * V, "),
        "overflows": PERFECT.replace("tilt - tilt.max()", "tilt"),
    },
    "growth": {"thinks of tempering": 'answer_growth = "b"\n', "thinks it stops": 'answer_growth = "a"\n'},
}
