"""Property tests of the functions on the page of lipschitz-transformer."""
import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

page = press.definitions("lipschitz-transformer")

seeds = st.integers(0, 10_000)
few = settings(max_examples=15, deadline=None)


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- the blocks -----------------------------------------------------------------------------------------------------

def test_attention_by_hand():
    Z, Y = torch.tensor([[0.7], [-2.0]]), torch.tensor([[1.0], [-1.0]])
    assert torch.allclose(page.attend(Z, Y, torch.eye(1), 0.5), Z - 0.5 * torch.tanh(Z))
    assert page.attend(torch.tensor([[0.7]]), Y, torch.eye(1), 0.5).item() == pytest.approx(0.39781, abs=1e-5)
    assert torch.allclose(page.attend(Z, Y[:1], torch.eye(1), 0.5), Z - 0.5)


@few
@given(seeds)
def test_both_blocks_are_gradient_steps(seed):
    Z, Y, A, W, b = draw(seed, 4, 3), draw(seed + 1, 6, 3), draw(seed + 2, 3, 3), draw(seed + 3, 5, 3), draw(seed, 5)
    potential = lambda Z: page.log_partition(Z, Y, A).sum() * 0.3
    assert torch.allclose(page.attend(Z, Y, A, 0.3), Z - torch.func.grad(potential)(Z))
    energy = lambda Z: 0.5 * (torch.relu(Z @ W.T + b) ** 2).sum() * 0.2
    assert torch.allclose(page.contract(Z, W, b, 0.2), Z - torch.func.grad(energy)(Z))


@few
@given(seeds)
def test_the_jacobian_is_identity_minus_covariance(seed):
    x, Y, A = draw(seed, 3), draw(seed + 1, 6, 3), draw(seed + 2, 3, 3)
    J = torch.func.jacrev(lambda x: page.attend(x[None], Y, A, 0.7)[0])(x)
    assert torch.allclose(J, torch.eye(3) - 0.7 * page.softmax_covariance(x, Y, A))
    assert torch.linalg.eigvalsh(page.softmax_covariance(x, Y, A))[0] > -1e-12
    norms = page.stretch(lambda x: page.attend(x, Y, A, 0.7), x[None])
    assert norms.item() == pytest.approx(torch.linalg.matrix_norm(J, 2).item())


@few
@given(seeds, st.floats(0, 1), st.floats(0.001, 10))
def test_admissible_steps_never_push_two_queries_apart(seed, share, apart):
    Z, Y, A, W, b = draw(seed, 20, 3), draw(seed + 1, 6, 3), draw(seed + 2, 3, 3), draw(seed + 3, 5, 3), draw(seed, 5)
    partner = Z + apart * draw(seed + 4, 20, 3)
    before = torch.linalg.norm(Z - partner, dim=-1)
    eta = share * 2 / torch.linalg.norm(Y @ A.T, dim=-1).max() ** 2
    tau = share * 2 / torch.linalg.matrix_norm(W, 2) ** 2
    for block in (lambda Z: page.attend(Z, Y, A, eta), lambda Z: page.contract(Z, W, b, tau)):
        assert torch.all(torch.linalg.norm(block(Z) - block(partner), dim=-1) <= before * (1 + 1e-9))


@few
@given(seeds)
def test_the_bounds_are_sharp(seed):
    y, W = draw(seed, 1, 3), draw(seed + 1, 1, 3)
    layer = lambda x: page.attend(x, torch.cat([y, -y]), torch.eye(3, dtype=y.dtype), 3 / (y**2).sum())
    assert page.stretch(layer, torch.zeros(1, 3, dtype=y.dtype)).item() == pytest.approx(2)
    assert page.worst_mlp(W, 2 / (W**2).sum()) == pytest.approx(1)
    assert page.worst_mlp(W, 3 / (W**2).sum()) == pytest.approx(2)


def test_the_adversary_finds_the_known_worst_query():
    y = draw(3, 1, 4)
    layer = lambda x: page.attend(x, torch.cat([y, -y]), torch.eye(4, dtype=y.dtype), 3 / (y**2).sum())
    assert page.worst_stretch(layer, 0.3 * draw(4, 10, 4)) == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("seed", [0, 31])
def test_the_adversary_is_not_content_with_a_stretch_of_one(seed):
    rng = torch.Generator().manual_seed(seed)  # far from 0 these layers are flat: stretch 1, and no slope to climb
    assert page.worst_blocks(1.0, rng) == pytest.approx([1, 1])
    for _ in range(2):
        assert page.worst_blocks(1.1, rng) == pytest.approx([1.2, 1.2], abs=1e-3)


def test_pair_ratios_find_the_largest_singular_value_of_a_linear_network():
    class Linear:
        offset, M = torch.zeros(2, 1, 1), torch.diag(torch.tensor([3.0, 0.5], dtype=torch.float64))

        def features(self, Y, X):
            return Y, X @ self.M

    Y, X = page.contexts(1, 4, 12, torch.Generator().manual_seed(0), torch.float64)
    ratios = lambda climbs: page.pair_ratios(Linear(), Y, X, torch.Generator().manual_seed(1), climbs)
    assert ratios(0).shape == (2, 1, 12)
    assert ratios(0).min() >= 0.5 - 1e-9 and ratios(0).median() < 2.95
    assert torch.all(ratios(10) >= ratios(0)) and ratios(10).max().item() == pytest.approx(3, abs=1e-3)


def test_the_steepest_slope_of_each_run_is_its_own():
    class Waves:
        offset = torch.zeros(2, 1, 1)

        def __call__(self, Y, X):
            return torch.tensor([2.0, 5.0])[:, None, None] * torch.sin(X[..., 0]) * (1 + 0 * Y.mean(dim=(-2, -1))[..., None])

    assert page.steepest(Waves(), 0).tolist() == pytest.approx([2, 5], abs=1e-2)


def test_sorting_is_one_block():
    Z = draw(0, 50, 2)
    W = torch.tensor([[-1.0, 1.0]], dtype=Z.dtype) / 2**0.5
    out = page.contract(Z, W, torch.zeros(1, dtype=Z.dtype), 2.0)
    assert torch.allclose(out, Z.sort(dim=-1, descending=True).values)


# --- networks ----------------------------------------------------------------------------------------------------------

def certified(seed, depth=3, **options):
    torch.manual_seed(seed)
    model = page.Certified(2, depth, **options).double().requires_grad_(False)
    for name, value in model.named_parameters():  # far from the initial values too
        value += 0.5 * torch.randn_like(value)
    return model


@few
@given(seeds, st.booleans(), st.integers(1, 6))
def test_certified_networks_are_lipschitz_in_the_query_for_any_parameters(seed, orthogonal, depth):
    model = certified(seed, depth, orthogonal=orthogonal)
    Y, X = page.contexts(2, 9, 30, torch.Generator().manual_seed(seed), torch.float64)
    _, other = page.contexts(2, 9, 30, torch.Generator().manual_seed(seed + 1), torch.float64)
    for partner in (other, X + 1e-3 * (other - X)):
        gap = torch.linalg.norm(X - partner, dim=-1)
        assert torch.all((model(Y, X) - model(Y, partner)).abs() <= gap * (1 + 1e-9))
        features = model.features(Y, X)[1] - model.features(Y, partner)[1]
        assert torch.all(torch.linalg.norm(features, dim=-1) <= gap * (1 + 1e-9))


@few
@given(seeds)
def test_token_norms_stay_below_the_radius_that_the_steps_assume(seed):
    model = certified(seed, 4)
    corners = torch.tensor([[[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0.3, 0.1]]], dtype=torch.float64)
    layers = page.admissible_layers(model.A, model.W, model.b, model.attention_step, model.mlp_step, model.radius)
    Z = corners @ page.unit_norm(model.Q)[:, None].mT
    for A, eta, W, b, tau in layers:
        beta = (torch.linalg.norm(Z @ A.mT, dim=-1) ** 2).amax(dim=(1, 2))
        assert torch.all(eta.ravel() * beta <= 2 + 1e-9)
        assert torch.all(tau.ravel() * torch.linalg.matrix_norm(W[:, 0], 2) ** 2 <= 2 + 1e-9)
        Z = page.contract(page.attend(Z, Z, A, eta), W, b, tau)


@few
@given(seeds, st.sampled_from(["certified", "standard", "normalised"]))
def test_contexts_are_measures(seed, kind):
    torch.manual_seed(seed)
    model = certified(seed) if kind == "certified" else page.Standard(2, 3, normed=kind == "normalised").double()
    Y, X = page.contexts(2, 5, 7, torch.Generator().manual_seed(seed), torch.float64)
    out = model(Y, X)
    assert out.shape == (2, 2, 7)
    again = Y.repeat(1, 3, 1)[:, torch.randperm(15)]
    assert torch.allclose(model(again, X), out, atol=1e-10)
    assert torch.allclose(model(Y, X[:, :1]), out[..., :1], atol=1e-10)  # queries do not see one another


@few
@given(seeds, st.integers(1, 8))
def test_attention_respects_its_context_bound_for_distant_contexts_too(seed, n):
    rng = np.random.default_rng(seed)
    a, eta = rng.uniform(0.2, 1.5), 0.4
    disc = lambda: torch.tensor(rng.normal(size=(n, 2)) / np.sqrt(2) / 3).clamp(-0.7, 0.7)
    one, other, x = disc(), disc(), torch.tensor(rng.normal(size=(1, 2)))
    x = x / torch.linalg.norm(x)
    cost = torch.cdist(one, other).numpy()
    w1 = cost[linear_sum_assignment(cost)].mean()
    A = a * torch.eye(2, dtype=torch.float64)
    change = torch.linalg.norm(page.attend(x, one, A, eta) - page.attend(x, other, A, eta))
    assert change <= page.context_bound(a, eta, 1.0, 1.0) * w1 * (1 + 1e-9)


def test_near_uniform_attention_has_context_constant_two_over_a():
    a, y = 1e-4, torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    A = a * torch.eye(2, dtype=torch.float64)
    x = torch.zeros(1, 2, dtype=torch.float64)
    change = page.attend(x, y, A, 2 / a**2) - page.attend(x, -y, A, 2 / a**2)
    assert torch.linalg.norm(change).item() / 2 == pytest.approx(2 / a)
    assert page.context_bound(a, 2 / a**2, 1, 0) == pytest.approx(2 / a)


def test_hard_attention_takes_the_best_token_and_breaks_the_bound():
    Y, A = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.eye(2)
    assert torch.allclose(page.hard_attend(torch.tensor([[2.0, 1.0]]), Y, A, 0.5), torch.tensor([[1.5, 1.0]]))
    rng = torch.Generator().manual_seed(0)
    bound = page.context_bound(1.0, 2.0, 1.0, 1.0)
    A = torch.eye(2, dtype=torch.float64)
    assert page.worst_context_ratio(page.attend, A, 2.0, 8, rng) <= bound
    assert page.worst_context_ratio(page.hard_attend, A, 2.0, 8, rng) > 10 * bound


def test_standard_layer_by_hand():
    Z = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)  # one context token, one query
    eye, zero = torch.eye(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    out = page.standard_layer(Z, 1, eye, 2 * eye, eye, torch.zeros(2, dtype=torch.float64), zero, normed=False)
    assert torch.allclose(out, torch.tensor([[3.0, 0.0], [2.0, 1.0]], dtype=torch.float64))


# --- training and attack ----------------------------------------------------------------------------------------------

def test_target_and_labels_by_hand():
    Y, X = torch.tensor([[[0.0, 0.0], [0.6, 0.8]]]), torch.tensor([[[0.0, 0.0], [-0.6, -0.8]]])
    assert torch.allclose(page.mean_distance(Y, X), torch.tensor([[0.45, 1.35]]))
    assert page.labels(Y, X).tolist() == [[1.0, -1.0]]
    outputs = torch.tensor([[[0.5, -0.1]], [[-1.0, 1.0]]])
    assert torch.allclose(page.hinge(outputs, Y, X), torch.tensor([0.1, 1.3]))


@few
@given(seeds)
def test_contexts_lie_in_the_square_and_depend_on_the_generator_alone(seed):
    Y, X = page.contexts(3, 5, 4, torch.Generator().manual_seed(seed))
    assert Y.shape == (3, 5, 2) and X.shape == (3, 4, 2)
    assert Y.abs().max() <= 1 and X.abs().max() <= 1
    assert torch.equal(Y, page.contexts(3, 5, 4, torch.Generator().manual_seed(seed))[0])


def test_training_lowers_the_error_and_keeps_the_promise():
    torch.manual_seed(0)
    model = page.Certified(2, 1, width=8)
    curve = page.fit(model, page.squared_error, 40, 0.02, 0)
    assert curve.shape == (40, 2) and torch.all(curve[-5:].mean(0) < curve[:5].mean(0))
    assert torch.all(page.steepest(model, 0, steps=5) <= 1 + 1e-5)


def test_the_attack_stays_in_its_ball_and_lowers_the_margin():
    torch.manual_seed(0)
    judge = page.Standard(1, 2)
    Y, X = page.contexts(4, 6, 8, torch.Generator().manual_seed(0))
    seen = []

    class Spy(torch.nn.Module):
        def forward(self, Y, moved):
            seen.append((moved - X).norm(dim=-1).max().item())
            return judge(Y, moved)

    after = page.attack(Spy(), Y, X, 0.1)
    assert max(seen) <= 0.1 + 1e-6 and seen[-1] > 0.05
    sign = page.labels(Y, X)
    assert (sign * after).mean() < (sign * judge(Y, X)[0]).mean()


MUTANTS = {
    "attention": {
        "plus sign": '''def gd_attention(X, Y, A, eta):
    keys = Y @ A.mT
    return X + eta * torch.softmax(X @ keys.mT, dim=-1) @ keys
''',
        "values are the tokens": '''def gd_attention(X, Y, A, eta):
    return X - eta * torch.softmax(X @ (Y @ A.mT).mT, dim=-1) @ Y
''',
        "A transposed": '''def gd_attention(X, Y, A, eta):
    keys = Y @ A
    return X - eta * torch.softmax(X @ keys.mT, dim=-1) @ keys
''',
        "square root of D": '''def gd_attention(X, Y, A, eta):
    keys = Y @ A.mT
    return X - eta * torch.softmax(X @ keys.mT / X.shape[-1] ** 0.5, dim=-1) @ keys
''',
        "softmax over queries": '''def gd_attention(X, Y, A, eta):
    keys = Y @ A.mT
    return X - eta * torch.softmax(X @ keys.mT, dim=0) @ keys
''',
        "sums instead of averages": '''def gd_attention(X, Y, A, eta):
    keys = Y @ A.mT
    w = torch.softmax(X @ keys.mT, dim=-1) * len(Y) / 2
    return X - eta * w @ keys
'''},
    "bounds": {
        "forgets the square": '''answer_tau, answer_overshoot, answer_shift, answer_two = 2 / 5, 2.0, 100.0, "b"
''',
        "too timid": '''answer_tau, answer_overshoot, answer_shift, answer_two = 1 / 25, 2.0, 100.0, "b"
''',
        "eta beta itself": '''answer_tau, answer_overshoot, answer_shift, answer_two = 0.08, 3.0, 100.0, "b"
''',
        "centre only": '''answer_tau, answer_overshoot, answer_shift, answer_two = 0.08, 2.0, 81.0, "b"
''',
        "exact product": '''answer_tau, answer_overshoot, answer_shift, answer_two = 0.08, 2.0, 100.0, "a"
''',
        "the larger one": '''answer_tau, answer_overshoot, answer_shift, answer_two = 0.08, 2.0, 100.0, "c"
'''},
    "radius": {
        "leader alone falls": '''def certified_radius(outputs, L):
    if L <= 0:
        raise ValueError("L")
    top = outputs.topk(2, dim=-1).values
    return (top[:, 0] - top[:, 1]) / L
''',
        "lead over the last": '''def certified_radius(outputs, L):
    if L <= 0:
        raise ValueError("L")
    return (outputs.amax(-1) - outputs.amin(-1)) / (2 * L)
''',
        "multiplies": '''def certified_radius(outputs, L):
    if L <= 0:
        raise ValueError("L")
    top = outputs.topk(2, dim=-1).values
    return (top[:, 0] - top[:, 1]) * L / 2
''',
        "accepts zero": '''def certified_radius(outputs, L):
    top = outputs.topk(2, dim=-1).values
    return (top[:, 0] - top[:, 1]) / (2 * L) if L else torch.full((len(outputs),), float("inf"))
'''},
    "centred": {
        "not centred": '''def centred_step(Y, A):
    beta = ((Y @ A.mT) ** 2).sum(dim=-1).max().item()
    return 2 / beta if beta > 0 else float("inf")
''',
        "variance": '''def centred_step(Y, A):
    keys = (Y - Y.mean(dim=0)) @ A.mT
    beta = (keys**2).sum(dim=-1).mean().item()
    return 2 / beta if beta > 0 else float("inf")
''',
        "no square": '''def centred_step(Y, A):
    keys = (Y - Y.mean(dim=0)) @ A.mT
    beta = keys.norm(dim=-1).max().item()
    return 2 / beta if beta > 0 else float("inf")
''',
        "fails on equal tokens": '''def centred_step(Y, A):
    keys = (Y - Y.mean(dim=0)) @ A.mT
    return float(2 / max((keys**2).sum(dim=-1).max().item(), 1e-6))
'''},
    "training": {
        "fears instability": '''answer_training = "a"
''',
        "believes in invariance": '''answer_training = "c"
'''},
}
