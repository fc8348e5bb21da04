"""Property tests of the functions on the page of daisi, and wrong answers that its exercises must reject."""
import math

import press
import pytest
import torch
from hypothesis import given, settings, strategies as st

page = press.definitions("daisi")
torch.set_num_threads(1)
few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 999)
times = st.floats(0.02, 0.95)
means, variances = st.floats(-2, 2), st.floats(0.1, 5)
ONE, ZERO = torch.ones(1), torch.zeros(1)


# --- the exact drift --------------------------------------------------------------------------------------------------

@few
@given(times, means, variances)
def test_the_drift_of_one_gaussian_has_its_closed_form(t, m, v):
    z = torch.linspace(-3, 3, 7)
    drift = page.exact_drift(z, t, torch.ones(1), torch.tensor([m]), torch.tensor([v]))
    by_hand = m + (t * v - (1 - t)) / (t**2 * v + (1 - t) ** 2) * (z - t * m)
    assert torch.allclose(drift, by_hand, atol=1e-4)


@few
@given(times, seeds)
def test_the_drift_of_a_mixture_gives_the_score_of_its_density(t, seed):
    torch.manual_seed(seed)
    w, m, v = torch.rand(3).softmax(0), torch.randn(3), 0.1 + torch.rand(3)
    z = torch.randn(20, requires_grad=True)
    spread = t**2 * v + (1 - t) ** 2
    density = (w * (-((z[:, None] - t * m) ** 2) / spread / 2).exp() / spread.sqrt()).sum(1)
    score, = torch.autograd.grad(density.log().sum(), z)
    b = page.exact_drift(z.detach(), t, w, m, v)
    assert torch.allclose((t * b - z.detach()) / (1 - t), score, atol=2e-3, rtol=2e-3)


@few
@given(st.floats(-3, 3), st.floats(0.2, 3), seeds)
def test_the_posterior_of_a_mixture_is_prior_times_likelihood(y, sigma, seed):
    torch.manual_seed(seed)
    mixture = torch.rand(2).softmax(0), torch.randn(2), 0.1 + torch.rand(2)
    grid = torch.linspace(-9, 9, 4001)

    def density(w, m, v):
        return (w * (-((grid[:, None] - m) ** 2) / v / 2).exp() / v.sqrt()).sum(1)

    want = density(*mixture) * (-((y - grid) ** 2) / sigma**2 / 2).exp()
    got = density(*page.mixture_posterior(y, sigma, *mixture))
    assert torch.allclose(got / got.sum(), want / want.sum(), atol=1e-5)


def test_equal_components_are_one_component():
    z = torch.linspace(-2, 2, 9)
    twice = page.exact_drift(z, 0.4, torch.tensor([0.3, 0.7]), torch.ones(2), 0.5 * torch.ones(2))
    assert torch.allclose(twice, page.exact_drift(z, 0.4, torch.ones(1), torch.ones(1), 0.5 * torch.ones(1)), atol=1e-6)


# --- the world and the classical filters ------------------------------------------------------------------------------

@few
@given(seeds)
def test_lorenz_is_symmetric_and_the_square_observation_cannot_see_it(seed):
    torch.manual_seed(seed)
    x, mirror = torch.randn(5, 3) * 8, torch.tensor([-1.0, -1.0, 1.0])
    assert torch.allclose(page.velocity(mirror * x), mirror * page.velocity(x), atol=1e-3)
    h, _ = page.REGIMES["square"]
    assert torch.equal(h(x), h(mirror * x))


def test_fixed_points_stay_and_a_finer_step_changes_little():
    root = math.sqrt(8 / 3 * 27)
    still = torch.tensor([[root, root, 27.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(page.advance(still), still, atol=1e-2)
    x = torch.tensor([[5.0, 3.0, 20.0]])
    assert (page.advance(x) - page.advance(x, dt=0.005)).abs().max() < 1e-3
    assert (page.advance(x, rho=26.0) - page.advance(x)).abs().max() > 0.1


def test_the_world_has_its_shapes_and_its_noise():
    torch.manual_seed(0)
    h, sigma = page.REGIMES["linear"]
    xs, ys = page.world(page.climatology(400), 5, h, sigma)
    assert xs.shape == (5, 400, 3) and ys.shape == (5, 400)
    assert (ys - xs[..., 0]).std() == pytest.approx(1, abs=0.1)


def test_the_ensemble_kalman_filter_agrees_with_kalman():
    torch.manual_seed(0)
    x = torch.tensor([1.0, 0.0, 0.0]) + torch.randn(1, 40_000, 3) * torch.tensor([2.0, 1.0, 1.0])
    x[..., 1] += x[..., 0]                                  # the hidden coordinate moves with the observed one
    out = page.enkf(x, torch.tensor([[3.0]]), lambda v: v[..., 0], 1.0, 1.0)[0]
    assert torch.allclose(out.mean(0), torch.tensor([2.6, 2.6, 0.0]), atol=0.05)
    assert out[:, 0].var() == pytest.approx(0.8, abs=0.05)


@few
@given(seeds)
def test_a_useless_observation_changes_neither_filter(seed):
    torch.manual_seed(seed)
    x = torch.randn(2, 60, 3)
    y, h = torch.zeros(2, 1), page.REGIMES["linear"][0]
    assert torch.allclose(page.enkf(x, y, h, 1e4, 1.0), x, atol=1e-2)
    assert torch.equal(page.particle_filter(x, y, h, 1e6).sort(1).values, x.sort(1).values)


def test_particles_are_copies_of_the_likely_ones():
    x = torch.tensor([[[0.0, 1, 2], [10, 3, 4], [0, 5, 6]]])
    out = page.particle_filter(x, torch.tensor([[10.0]]), page.REGIMES["linear"][0], 0.1)
    assert torch.equal(out, torch.tensor([[[10.0, 3, 4]]]).expand(1, 3, 3))


def test_jitter_kicks_the_copies_apart_by_its_size():
    torch.manual_seed(0)
    x, y, h = torch.zeros(2, 3000, 3), torch.zeros(2, 1), page.REGIMES["linear"][0]
    assert torch.equal(page.jittered(x, y, h, 1.0, 0.0), x)
    assert page.jittered(x, y, h, 1.0, 2.0).std() == pytest.approx(2, rel=0.05)
    assert len(page.JITTERS) == len(page.INFLATIONS)


# --- scores -----------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.integers(1, 12))
def test_crps_is_the_double_sum(seed, n):
    torch.manual_seed(seed)
    x, truth = torch.randn(4, n, 3), torch.randn(4, 3)
    pairs = (x[:, :, None] - x[:, None]).abs().mean((1, 2)) / 2
    assert torch.allclose(page.crps(x, truth), ((x - truth[:, None]).abs().mean(1) - pairs).mean(-1), atol=1e-5)


def test_an_empty_ensemble_is_refused():
    with pytest.raises(ValueError, match="at least one member"):
        page.crps(torch.zeros(0, 3), torch.zeros(3))


def test_scores_keep_variants_and_truths_apart_and_drop_the_first_quarter():
    truth = torch.zeros(8, 2, 3)
    x = torch.zeros(8, 4, 2, 5, 3)
    x[:2] = 100.0                                           # the first quarter
    x[2:, 1, 0] = 3.0
    assert torch.equal(page.score(x, truth), torch.tensor([[0.0, 0], [3, 0], [0, 0], [0, 0]]))


@few
@given(seeds)
def test_ranks_count_the_members_below(seed):
    torch.manual_seed(seed)
    x, truth = torch.randn(30, 7, 2), torch.randn(30, 2)
    rank = page.ranks(x, truth)
    assert rank.shape == (30, 2)
    assert torch.equal(rank, (torch.cat([x, truth[:, None]], 1).argsort(1).argsort(1))[:, -1])
    tied = page.ranks(torch.zeros(500, 3, 1), torch.zeros(500, 1))
    assert tied.min() == 0 and tied.max() == 3


def test_a_calibrated_ensemble_is_recognised():
    torch.manual_seed(0)
    x, truth = torch.randn(4000, 1, 19, 2), torch.randn(4000, 1, 2)
    rmse, spread, outside = page.calibration(x, truth)
    assert rmse == pytest.approx(spread, rel=0.1) and outside == pytest.approx(0.1, abs=0.02)
    assert page.calibration(0.2 * x, truth)[2] > 0.5


# --- the flow ---------------------------------------------------------------------------------------------------------

def a_prior():
    torch.manual_seed(0)
    return page.Drift(torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6]), 16).requires_grad_(False)


@few
@given(seeds)
def test_encode_and_decode_undo_each_other(seed):
    torch.manual_seed(seed)
    x, prior = torch.randn(5, 2, 3) * 10, a_prior()
    assert torch.allclose(prior.decode(prior.encode(x)), x, atol=1e-4)
    assert prior(x, torch.tensor([0.3])).shape == x.shape


@few
@given(st.floats(0, 0.9), seeds)
def test_without_noise_the_way_back_undoes_the_way_there(t, seed):
    torch.manual_seed(seed)
    prior, z, t_min = page.GaussianPrior(0.5, 2.0), torch.randn(50, 1), torch.tensor([t])
    latent = page.invert(prior, z, t_min, ZERO, 400)
    assert (page.come_back(prior, latent, t_min, ZERO, 400) - z).abs().max() < 0.03


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([0.0, 0.1, 1.0]), st.sampled_from([0.0, 0.4]))
def test_every_noise_level_keeps_the_distribution(eps, t):
    torch.manual_seed(1)
    prior, t_min = page.GaussianPrior(1.0, 2.0), torch.tensor([t])
    z = 1 + math.sqrt(2) * torch.randn(20_000, 1)
    latent = page.invert(prior, z, t_min, torch.tensor([eps]), 100)
    assert latent.mean() == pytest.approx(t, abs=0.06)
    assert latent.var() == pytest.approx(t**2 * 2 + (1 - t) ** 2, rel=0.08)
    back = page.come_back(prior, latent, t_min, torch.tensor([eps]), 100)
    assert back.mean() == pytest.approx(1, abs=0.06) and back.var() == pytest.approx(2, rel=0.08)


def test_blur_at_one_keeps_and_at_zero_forgets():
    torch.manual_seed(0)
    z = torch.full((5000, 1), 7.0)
    assert torch.equal(page.blur(z, ONE), z)
    assert page.blur(z, ZERO).mean() == pytest.approx(0, abs=0.1)


def test_correlation_by_hand():
    a = torch.tensor([[1.0, 1], [2, 2], [3, 3]])
    assert page.correlation(a, a * torch.tensor([2.0, -1])) == pytest.approx(0, abs=1e-6)
    assert page.correlation(a, 5 * a + 1) == pytest.approx(1, abs=1e-6)


# --- the guidance -----------------------------------------------------------------------------------------------------

@few
@given(times, means, variances, st.floats(0.2, 3), st.floats(-3, 3))
def test_guidance_is_exact_for_gaussian_data(t, m, v, sigma, y):
    prior, z = page.GaussianPrior(m, v), torch.linspace(-2, 2, 5)[:, None]
    spread = t**2 * v + (1 - t) ** 2
    eta, left = m + t * v / spread * (z - t * m), v * (1 - t) ** 2 / spread
    s_obs = t * v / spread * (y - eta) / (sigma**2 + left)                  # the gradient of log N(y; eta, sigma^2 + left)
    for eps, strength in ((0.0, 1.0), (0.5, 2.0)):
        guide = page.guided(prior, torch.full((5,), y), page.first, sigma, strength)
        b, pull = guide(z, torch.tensor([t]), torch.tensor([eps]))
        assert torch.allclose(b, prior(z, torch.tensor([t])), atol=1e-5)
        assert torch.allclose(pull, strength * (1 - t) * (1 / t + eps) * s_obs, rtol=2e-2, atol=2e-2)


def test_guided_from_noise_gives_bayes_rule():
    torch.manual_seed(0)
    guide = page.guided(page.GaussianPrior(), torch.ones(1), page.first, 0.5)
    out = page.come_back(page.GaussianPrior(), torch.randn(8000, 1), ZERO, torch.tensor([0.1]), 100, guide)
    assert out.mean() == pytest.approx(0.8, abs=0.03) and out.var() == pytest.approx(0.2, abs=0.03)


def test_a_step_of_guidance_is_clipped_and_the_limit_at_one_is_the_forecast():
    prior = page.GaussianPrior()
    guide = page.guided(prior, torch.full((3,), 1e6), page.first, 0.01)
    z = torch.zeros(3, 1)
    path = page.flow(prior, z, torch.tensor([0.5]), ONE, ZERO, 10, guide)
    assert path.shape == (11, 3, 1) and path.diff(dim=0).abs().max() < page.CLIP + 0.5 and path.isfinite().all()
    x = torch.randn(4, 1)
    same = page.daisi(prior, x, torch.zeros(1), page.first, 1.0, torch.tensor([0.999]), ZERO, 5)
    assert torch.allclose(same, x, atol=0.02)


def test_with_t_min_zero_the_forecast_is_ignored():
    prior, eps = page.GaussianPrior(), torch.tensor([0.1])
    outs = []
    for shift in (0.0, 100.0):
        torch.manual_seed(3)
        outs.append(page.without_inverse(prior, torch.zeros(6, 1) + shift, torch.ones(1), page.first, 0.5,
                                         ZERO, eps, 1.0, 10))
    assert torch.equal(*outs)


def test_columns_and_variants_line_up():
    t_min, eps = page.columns([(0.3, 0.1), (0.5, 0.2), (0.7, 0.3)])
    assert t_min.shape == eps.shape == (3, 1, 1, 1) and eps.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])
    add = lambda x, y, h, sigma, dial: x + dial                             # an "analysis" that shifts by its dial
    out = page.filter_with(add, torch.zeros(2, 4), None, None, torch.zeros(4, 5, 3), t_min, move=lambda x: x)
    assert out.shape == (2, 3, 4, 5, 3)
    assert torch.allclose(out[1, :, 0, 0, 0], torch.tensor([0.6, 1.0, 1.4]))


def test_all_methods_are_tuned_with_equally_many_trials():
    assert len(page.DIALS) == len(page.STRENGTHS) == len(page.INFLATIONS) == 6


def test_joined_leaves_a_gap_after_each_curve():
    out = page.joined(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    assert out[[0, 1, 3, 4]].tolist() == [1, 3, 2, 4] and out[[2, 5]].isnan().all()


# --- wrong answers that the exercises must reject ---------------------------------------------------------------------

SCORE = '''def denoise(b, z, t):
    return z + (1 - t) * b
def score_from_drift(b, z, t):
    if not 0 <= t < 1:
        raise ValueError("the score needs 0 <= t < 1")
    return (t * b - z) / (1 - t)
'''
MUTANTS = {
    "score": {
        "the whole way instead of what is left": SCORE.replace("z + (1 - t) * b", "z + t * b"),
        "divides by the square": SCORE.replace("/ (1 - t)", "/ (1 - t) ** 2"),
        "wrong sign": SCORE.replace("(t * b - z)", "(z - t * b)"),
        "forgets t before the drift": SCORE.replace("(t * b - z)", "(b - z)"),
        "accepts t = 1": SCORE.replace("0 <= t < 1:", "0 <= t <= 1:").replace("/ (1 - t)", "/ (1 - t + 1e-12)"),
        "knows the visible time alone": SCORE.replace("(1 - t) * b", "0.5 * b").replace(
            "(t * b - z) / (1 - t)", "b - 2 * z if t else -z"),
    },
    "analyse": {
        "the variance of the data": 'answer_a, answer_b, answer_c, answer_d = 9 * 0.75 ** 2, "forecast", "guided prior", "climatology"\n',
        "without the factor": 'answer_a, answer_b, answer_c, answer_d = 2.0, "forecast", "guided prior", "climatology"\n',
        "forgets the guidance": 'answer_a, answer_b, answer_c, answer_d = 4.5, "forecast", "climatology", "climatology"\n',
        "guidance without guidance": 'answer_a, answer_b, answer_c, answer_d = 4.5, "forecast", "guided prior", "guided prior"\n',
        "thinks the inverse loses all": 'answer_a, answer_b, answer_c, answer_d = 4.5, "climatology", "guided prior", "climatology"\n',
        "thinks nothing is ever lost": 'answer_a, answer_b, answer_c, answer_d = 4.5, "forecast", "guided prior", "forecast"\n',
    },
    "guidance": {
        "the transposed Jacobian": '''def guidance(J, H, miss, sigma, t):
    pull = (J * H[:, None, :]).sum(2)
    shared = (1 - t) ** 2 / t * (pull * H).sum(1)
    return pull * (miss / (sigma**2 + shared.clamp_min(0)))[:, None]
''',
        "no conditional variance": '''def guidance(J, H, miss, sigma, t):
    return (H[:, :, None] * J).sum(1) * (miss / sigma**2)[:, None]
''',
        "forgets to divide by t": '''def guidance(J, H, miss, sigma, t):
    pull = (H[:, :, None] * J).sum(1)
    shared = (1 - t) ** 2 * (pull * H).sum(1)
    return pull * (miss / (sigma**2 + shared.clamp_min(0)))[:, None]
''',
        "sigma not squared": '''def guidance(J, H, miss, sigma, t):
    pull = (H[:, :, None] * J).sum(1)
    shared = (1 - t) ** 2 / t * (pull * H).sum(1)
    return pull * (miss / (sigma + shared.clamp_min(0)))[:, None]
''',
        "no clamp": '''def guidance(J, H, miss, sigma, t):
    pull = (H[:, :, None] * J).sum(1)
    shared = (1 - t) ** 2 / t * (pull * H).sum(1)
    return pull * (miss / (sigma**2 + shared))[:, None]
''',
        "absolute value instead of the clamp": '''def guidance(J, H, miss, sigma, t):
    pull = (H[:, :, None] * J).sum(1)
    shared = (1 - t) ** 2 / t * (pull * H).sum(1)
    return pull * (miss / (sigma**2 + shared.abs()))[:, None]
''',
        "no Jacobian in the direction": '''def guidance(J, H, miss, sigma, t):
    pull = (H[:, :, None] * J).sum(1)
    shared = (1 - t) ** 2 / t * (pull * H).sum(1)
    return H * (miss / (sigma**2 + shared.clamp_min(0)))[:, None]
''',
    },
    "ranks": {
        "counts from above": '''def rank_counts(x, truth):
    return torch.bincount((x > truth[:, None]).sum(1), minlength=x.shape[1] + 1)
def outside_ratio(x, truth):
    counts = rank_counts(x, truth)
    return float(counts[0] + counts[-1]) / len(truth) * (x.shape[1] + 1) / 2
''',
        "drops empty ranks at the end": '''def rank_counts(x, truth):
    return torch.bincount((x < truth[:, None]).sum(1))
def outside_ratio(x, truth):
    rank = (x < truth[:, None]).sum(1)
    return float(((rank == 0) | (rank == x.shape[1])).float().mean()) * (x.shape[1] + 1) / 2
''',
        "expects the members to be sorted": '''def rank_counts(x, truth):
    return torch.bincount(torch.searchsorted(x.contiguous(), truth[:, None].contiguous())[:, 0], minlength=x.shape[1] + 1)
def outside_ratio(x, truth):
    return float(((truth < x[:, 0]) | (truth > x[:, -1])).float().mean()) * (x.shape[1] + 1) / 2
''',
        "looks below only": '''def rank_counts(x, truth):
    return torch.bincount((x < truth[:, None]).sum(1), minlength=x.shape[1] + 1)
def outside_ratio(x, truth):
    return 2 * float(rank_counts(x, truth)[0]) / len(truth) * (x.shape[1] + 1) / 2
''',
        "expects two in N": '''def rank_counts(x, truth):
    return torch.bincount((x < truth[:, None]).sum(1), minlength=x.shape[1] + 1)
def outside_ratio(x, truth):
    counts = rank_counts(x, truth)
    return float(counts[0] + counts[-1]) / len(truth) * x.shape[1] / 2
''',
        "one for every ensemble": '''def rank_counts(x, truth):
    return torch.bincount((x < truth[:, None]).sum(1), minlength=x.shape[1] + 1)
def outside_ratio(x, truth):
    return 1.0
''',
    },
}
