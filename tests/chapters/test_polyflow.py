"""Property tests of the functions on the page of polyflow."""
import math

import press
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

page = press.definitions("polyflow")
torch.set_num_threads(1)          # networks this small only wait for a second thread

seeds = st.integers(0, 10_000)
few = settings(max_examples=20, deadline=None)
A, B = page.HEX_A, page.HEX_B
SQUARE_A = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
SQUARE_B = torch.tensor([1.0, 0, 1, 0])


def polytope(seed, n, m):
    """A random polytope around the origin that is bounded, since it includes a box."""
    torch.manual_seed(seed)
    rows = torch.nn.functional.normalize(torch.randn(m, n), dim=1)
    return torch.cat([rows, torch.eye(n), -torch.eye(n)]), torch.cat([0.5 + torch.rand(m), torch.ones(2 * n)])


def unit(*shape):
    return torch.nn.functional.normalize(torch.randn(*shape), dim=-1)


CENTRE, RADIUS = page.chebyshev_ball(A, B)


def inside(models, N=64):
    return page.ball(CENTRE[None], RADIUS, models, N)


# --- walls ------------------------------------------------------------------------------------------------------------

def test_slack_and_excess_by_hand():
    x = torch.tensor([[0.25, 0.5], [1.5, 0.5]])
    assert torch.allclose(page.slack(x, SQUARE_A, SQUARE_B), torch.tensor([[0.75, 0.25, 0.5, 0.5], [-0.5, 1.5, 0.5, 0.5]]))
    assert page.excess(x, SQUARE_A, SQUARE_B).tolist() == pytest.approx([-0.25, 0.5])


def test_slack_refuses_points_of_another_dimension():
    with pytest.raises(ValueError, match="coordinates"):
        page.slack(torch.zeros(3, 3), SQUARE_A, SQUARE_B)


def test_corners_lie_on_exactly_two_walls():
    slack = page.slack(page.corners(A, B), A, B)
    assert (slack > -1e-5).all() and ((slack.abs() < 1e-5).sum(1) == 2).all()


def test_boxes_as_rows():
    rows, limits = page.box_rows(torch.tensor([[0.0, 0], [1, 1]]), torch.tensor([[1.0, 2], [3, 5]]))
    assert rows.shape == (2, 4, 2) and limits.tolist() == [[1, 2, 0, 0], [3, 5, -1, -1]]


# --- where the noise lives --------------------------------------------------------------------------------------------

def test_chebyshev_ball_of_the_square_and_of_the_hexagon():
    centre, radius = page.chebyshev_ball(SQUARE_A, SQUARE_B)
    assert centre.tolist() == pytest.approx([0.5, 0.5]) and radius == pytest.approx(0.5)
    centre, radius = page.chebyshev_ball(A, B)
    assert radius == pytest.approx(0.751, abs=1e-3)
    assert page.slack(centre, A, B).min() == pytest.approx(radius, abs=1e-5)


def test_a_set_without_a_largest_ball_is_refused():
    with pytest.raises(ValueError, match="largest ball"):
        page.chebyshev_ball(SQUARE_A[:1], SQUARE_B[:1])


@few
@given(seeds, st.integers(1, 6))
def test_ball_is_uniform_and_inside(seed, n):
    torch.manual_seed(seed)
    centre = torch.randn(n)
    radius = (page.ball(centre, 2.0, 4000) - centre).norm(dim=1)
    assert radius.max() <= 2 + 1e-5
    assert float((radius < 2 * 0.5 ** (1 / n)).float().mean()) == pytest.approx(0.5, abs=0.05)   # half of the volume


def test_matched_pairs_are_shorter_than_random_ones_and_use_each_point_once():
    torch.manual_seed(0)
    data = page.hugging_data(256)
    x0, x1 = page.transport_pairs(inside, data, batch=64, batches=4)(2)
    y0, y1 = page.independent_pairs(inside, data, 64)(2)
    assert x0.shape == x1.shape == y0.shape == y1.shape == (2, 64, 1, 2)
    assert (x1 - x0).norm(dim=-1).mean() < 0.8 * (y1 - y0).norm(dim=-1).mean()
    assert len(torch.unique(x1[0].flatten(1), dim=0)) == 64


# --- ray shooting -----------------------------------------------------------------------------------------------------

@few
@given(seeds, st.sampled_from([(2, 3), (3, 10), (8, 30)]))
def test_a_ray_ends_on_a_wall_and_not_beyond(seed, size):
    rows, limits = polytope(seed, *size)
    x, d = 0.3 * unit(40, size[0]), unit(40, size[0])
    slack = page.slack(x + page.ray_shoot(x, d, rows, limits)[:, None] * d, rows, limits)
    assert slack.min() > -1e-5 and slack.amin(-1).max() < 1e-4


@few
@given(seeds)
def test_redundant_rows_and_scaled_rows_do_not_matter(seed):
    rows, limits = polytope(seed, 3, 8)
    x, d, scale = 0.3 * unit(20, 3), unit(20, 3), 0.5 + torch.rand(len(rows))
    alpha = page.ray_shoot(x, d, rows, limits)
    more = page.ray_shoot(x, d, torch.cat([rows, rows[:2]]), torch.cat([limits, limits[:2] + 1]))
    assert torch.allclose(more, alpha)
    assert torch.allclose(page.ray_shoot(x, d, scale[:, None] * rows, scale * limits), alpha, rtol=1e-4, atol=1e-4)


def test_ray_shoot_by_hand_cap_and_wall():
    x = torch.tensor([[0.25, 0.5], [0.5, 0.5], [1.0, 0.5]])
    d = torch.tensor([[-0.6, 0.8], [0.0, 1.0], [1.0, 0.0]])
    assert page.ray_shoot(x, d, SQUARE_A, SQUARE_B).tolist() == pytest.approx([0.25 / 0.6, 0.5, 0], abs=1e-4)
    assert page.ray_shoot(x[1], d[1], SQUARE_A[:1], SQUARE_B[:1]) == 1000


def test_each_point_of_a_path_has_its_own_walls():
    rows, limits = page.box_rows(torch.zeros(2, 2), torch.tensor([[1.0, 1], [4, 4]]))
    x, d = torch.full((5, 2, 2), 0.5), torch.tensor([1.0, 0]).expand(5, 2, 2)
    assert page.ray_shoot(x, d, rows, limits)[0].tolist() == pytest.approx([0.5, 3.5], abs=1e-4)


# --- the guarantee ----------------------------------------------------------------------------------------------------

@few
@given(seeds, st.sampled_from(["PolyFlow", "AnchoredPolyFlow"]), st.sampled_from([1.0, 3.0, 10.0]), st.sampled_from([0.0, 1.0, 30.0]))
def test_any_network_keeps_every_state_inside(seed, kind, K, noise):
    torch.manual_seed(seed)
    Ks = torch.full((2,), K)
    model = getattr(page, kind)(Ks, A, B, width=16, hidden=8)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(noise * torch.randn_like(p))
    path = page.sample(model, inside(2), Ks)
    assert path.shape == (int(K) + 1, 2, 64, 1, 2)
    assert page.excess(path, A, B).max() < page.TOLERANCE


@few
@given(seeds)
def test_one_step_keeps_the_share_one_minus_gate_of_every_slack(seed):
    torch.manual_seed(seed)
    Ks = torch.tensor([10.0])
    model = page.PolyFlow(Ks, A, B, width=16, hidden=8)
    x, k = inside(1), torch.zeros(1, 64)
    d, alpha, gate = model.parts(x, k, k + 10)
    after = page.slack(x + (gate * alpha)[..., None] * d, A, B)
    assert torch.allclose(d.norm(dim=-1), torch.ones(1, 64, 1), atol=1e-5)
    assert ((gate > 0) & (gate < 1)).all()
    assert (after - (1 - gate)[..., None] * page.slack(x, A, B)).min() > -1e-6


def test_the_first_gate_is_one_over_k_plus_one():
    Ks = torch.tensor([1.0, 4.0, 10.0])
    gate = page.PolyFlow(Ks, A, B).parts(inside(3), torch.zeros(3, 64), Ks[:, None].expand(3, 64))[2]
    assert gate[:, 0, 0].tolist() == pytest.approx([0.5, 0.2, 1 / 11])


def test_the_anchored_form_starts_as_an_euler_step_towards_its_endpoint():
    torch.manual_seed(0)
    Ks, k = torch.tensor([10.0]), torch.full((1, 64), 3.0)
    model, x = page.AnchoredPolyFlow(Ks, A, B), inside(1)
    model.gates.W[-1].data.zero_()
    euler = (model.field(x, k, k + 7) - x) / 7
    assert torch.allclose(model(x, k, k + 7), euler, atol=1e-4)


def test_a_fixed_gate_is_fixed():
    k = torch.zeros(1, 64)
    assert torch.allclose(page.FixedGate(torch.tensor([10.0]), A, B).parts(inside(1), k, k + 10)[2], torch.tensor(0.1))


# --- training and sampling --------------------------------------------------------------------------------------------

def test_models_in_one_tensor_do_not_touch_each_other():
    torch.manual_seed(0)
    net, h = page.MLPs(3, 4, 8, 2), torch.randn(3, 5, 4)
    changed = h.clone()
    changed[1] += 1
    same = (net(h) == net(changed)).all(-1).all(-1)
    assert same.tolist() == [True, False, True] and net(h).shape == (3, 5, 2)


def test_a_flow_to_one_point_arrives_there():
    torch.manual_seed(0)
    target = torch.tensor([0.3, -0.2])
    draw = lambda: (inside(1), target.expand(1, 64, 1, 2))
    Ks = torch.tensor([5.0])
    for model in (page.FlowMatching(1, width=16), page.FlowMatching(1, width=16, endpoint=True),
                  page.PolyFlow(Ks, A, B, width=16, hidden=16)):
        start = inside(1)
        end = page.sample(page.train(model, draw, Ks, 200), start, Ks)[-1]
        assert (end - target).norm(dim=-1).mean() < 0.35 * (start - target).norm(dim=-1).mean()


def test_a_model_stands_still_after_its_own_number_of_steps():
    Ks = torch.tensor([2.0, 5.0])
    path = page.sample(page.PolyFlow(Ks, A, B), inside(2), Ks)
    assert torch.equal(path[2, 0], path[5, 0]) and not torch.equal(path[2, 1], path[5, 1])


# --- rivals and measures ----------------------------------------------------------------------------------------------

@few
@given(seeds)
def test_projection_is_feasible_idempotent_and_nearest(seed):
    torch.manual_seed(seed)
    y, others = 2 * torch.randn(50, 2), inside(1, 200)[0, :, 0]
    x = page.project(y, A, B)
    assert page.excess(x, A, B).max() < 1e-5
    assert torch.allclose(page.project(x, A, B), x, atol=1e-5)
    assert ((y - x).norm(dim=1)[:, None] <= torch.cdist(y, others) + 1e-5).all()
    assert ((y - x) @ (others - x[:, None]).transpose(1, 2)).diagonal(dim1=0, dim2=1).max() < 1e-4     # obtuse angle


@few
@given(seeds)
def test_admm_agrees_with_the_exact_projection(seed):
    torch.manual_seed(seed)
    y = 2 * torch.randn(30, 2)
    x, multipliers = page.admm_project(y, A, B, rho=1.0, limit=3000)
    assert (x - page.project(y, A, B)).abs().max() < 1e-3 and multipliers.min() > -1e-6


def test_the_barrier_lets_a_safe_step_pass_and_stops_an_unsafe_one():
    x = torch.tensor([[[[0.0, 0.0]]]])
    small, large = torch.tensor([[[[0.01, 0.0]]]]), torch.tensor([[[[5.0, 0.0]]]])
    assert torch.allclose(page.barrier_repair(x, small, 0.0), x + small, atol=1e-5)
    assert page.excess(page.barrier_repair(x, large, 0.0), A, B).max() < 1e-5


def test_energy_distance_by_hand():
    x, y = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [1.0]])
    assert page.energy_distance(x, y) == pytest.approx(2 * 1 - 1 - 0)
    assert page.energy_distance(x, x) == pytest.approx(0)


def test_violation_counts_paths_and_has_a_tolerance():
    path = torch.full((4, 2, 2), 0.5)
    path[1, 0, 0], path[2] = 1.1, torch.tensor([1 + 1e-7, 0.5])
    assert page.violation(path, SQUARE_A, SQUARE_B) == 0.25


def test_straight_paths_are_smooth_and_racing_lines_stay_in_their_boxes():
    line = torch.linspace(0, 1, 24)[:, None].expand(24, 2)
    assert page.roughness(line[None]) == pytest.approx(0, abs=1e-6)
    torch.manual_seed(0)
    paths = page.racing_lines(200)
    assert paths.shape == (200, 24, 2)
    assert page.excess(paths, *page.box_rows(page.BOX[:, 0], page.BOX[:, 1])).max() < 0
    assert torch.allclose(paths[:, 0], torch.tensor([0.5, 1.0])) and torch.allclose(paths[:, -1], torch.tensor([3.0, 4.0]), atol=1e-4)


def test_data_hug_the_walls_from_inside():
    torch.manual_seed(0)
    excess = page.excess(page.hugging_data(2000), A, B)
    assert excess.max() < 0 and (excess > -0.05).double().mean() > 0.1


def test_clock_separates_all_times_of_ten_steps():
    assert torch.cdist(page.clock(torch.arange(10) / 10), page.clock(torch.arange(10) / 10)).fill_diagonal_(math.inf).min() > 0.5


# --- wrong answers that the exercises must reject ---------------------------------------------------------------------

MUTANTS = {
    "ray-shoot": {
        "counts rows behind the point": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    times = (b - x @ A.T)[:, None, :] / ((d @ A.T).abs() + eps)
    return times.amin(-1).clamp(0, cap)
''',
        "forgets the cap": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    speed = d @ A.T
    times = torch.where(speed > eps, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), torch.inf)
    return times.amin(-1).clamp_min(0)
''',
        "goes backwards from outside": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    speed = d @ A.T
    times = torch.where(speed > eps, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), cap)
    return times.amin(-1).clamp(max=cap)
''',
        "takes the last wall": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    speed = d @ A.T
    times = torch.where(speed > eps, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), 0)
    return times.amax(-1).clamp(0, cap)
''',
        "uses the cap only where no wall is ahead": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    speed = d @ A.T
    times = torch.where(speed > eps, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), cap)
    return times.amin(-1).clamp_min(0)
''',
        "writes the cap into the code": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    speed = d @ A.T
    times = torch.where(speed > eps, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), 1e3)
    return times.amin(-1).clamp(0, 1e3)
''',
        "normalises the rows but not their limits": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    A = torch.nn.functional.normalize(A, dim=1)
    speed = d @ A.T
    times = torch.where(speed > eps, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), cap)
    return times.amin(-1).clamp(0, cap)
''',
        "counts every row with a positive product": '''def ray_shoot(x, d, A, b, eps=1e-6, cap=1e3):
    speed = d @ A.T
    times = torch.where(speed > 0, (b - x @ A.T)[:, None, :] / (speed.clamp_min(0) + eps), cap)
    return times.amin(-1).clamp(0, cap)
''',
    },
    "analyse": {
        "the shrunk part instead of the kept part": 'answer_a, answer_b, answer_c = 0.3 ** 10, "mean", False\n',
        "a straight path to the own target": 'answer_a, answer_b, answer_c = 0.7 ** 10, "x1", False\n',
        "two digits only": 'answer_a, answer_b, answer_c = 0.028, "mean", False\n',
        "trusts Euler from a Gaussian": 'answer_a, answer_b, answer_c = 0.7 ** 10, "mean", True\n',
    },
    "soft-ray": {
        "Boltzmann mean, which exceeds the minimum": '''def soft_ray(times, beta, cap=1e3):
    if beta <= 0:
        raise ValueError("beta must be positive")
    weights = torch.softmax(-beta * times, -1)
    return (weights * times.clamp(max=cap)).sum(-1).clamp(0, cap)
''',
        "exponentials that underflow": '''def soft_ray(times, beta, cap=1e3):
    if beta <= 0:
        raise ValueError("beta must be positive")
    return (-torch.log(torch.exp(-beta * times).sum(-1)) / beta).clamp(0, cap)
''',
        "walks backwards near a corner": '''def soft_ray(times, beta, cap=1e3):
    if beta <= 0:
        raise ValueError("beta must be positive")
    return (-torch.logsumexp(-beta * times, -1) / beta).clamp(max=cap)
''',
        "refuses zero alone": '''def soft_ray(times, beta, cap=1e3):
    if beta == 0:
        raise ValueError("beta must be positive")
    return (-torch.logsumexp(-beta * times, -1) / beta).clamp(0, cap)
''',
        "writes the cap into the code": '''def soft_ray(times, beta, cap=1e3):
    if beta <= 0:
        raise ValueError("beta must be positive")
    return (-torch.logsumexp(-beta * times, -1) / beta).clamp(0, 1e3)
''',
        "reduces the second axis": '''def soft_ray(times, beta, cap=1e3):
    if beta <= 0:
        raise ValueError("beta must be positive")
    return (-torch.logsumexp(-beta * times, min(times.dim() - 1, 1)) / beta).clamp(0, cap)
''',
        "accepts any beta": '''def soft_ray(times, beta, cap=1e3):
    return (-torch.logsumexp(-beta * times, -1) / beta).clamp(0, cap)
''',
    },
    "mixed-step": {
        "softmax over the points": '''def mixed_step(x, d, alpha, scores):
    return x + ((torch.softmax(scores, 0) * alpha)[..., None] * d).sum(1)
''',
        "adds the rays without weights": '''def mixed_step(x, d, alpha, scores):
    return x + (alpha[..., None] * d).sum(1)
''',
        "softmax at a temperature": '''def mixed_step(x, d, alpha, scores):
    weights = torch.softmax(scores / scores.shape[1] ** 0.5, 1)
    return x + ((weights * alpha)[..., None] * d).sum(1)
''',
        "takes the best ray alone": '''def mixed_step(x, d, alpha, scores):
    best = (scores == scores.amax(1, keepdim=True)).float()
    return x + ((best / best.sum(1, keepdim=True) * alpha)[..., None] * d).sum(1)
''',
        "ignores the scores": '''def mixed_step(x, d, alpha, scores):
    return x + (alpha[..., None] * d).mean(1)
''',
    },
}
