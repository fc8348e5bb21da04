"""Property tests of the functions on the page of revit, and wrong answers to its exercises."""
import copy

import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

page = press.definitions("revit")

seeds = st.integers(0, 10_000)
quarters = st.integers(-5, 8)
few = settings(max_examples=15, deadline=None)
torch.set_num_threads(1)
CAME_FROM = np.rot90(np.arange(page.TOKENS).reshape(page.SIDE, page.SIDE), -1).ravel()


def noise(seed, count=2):
    a, b = np.random.default_rng(seed).normal(size=(2, count, page.N, page.N))
    return a + 1j * b


def smooth(seed, count=1):
    rng = np.random.default_rng(seed)
    kx, ky = page.wavenumbers()
    return np.fft.fft2(rng.normal(size=(count, page.N, page.N))) * (np.hypot(kx, ky) < 6) * (np.hypot(kx, ky) > 0)


# --- fields ---------------------------------------------------------------------------------------------------------------

@few
@given(seeds, quarters, quarters)
def test_turns_form_a_group(seed, p, q):
    U = noise(seed)
    assert np.array_equal(page.turn(page.turn(U, p), q), page.turn(U, p + q))
    assert np.array_equal(page.turn(U, 4), U) and np.abs(page.turn(U, 1) - U).max() > 0


@few
@given(quarters)
def test_the_field_of_positions_looks_the_same_from_all_sides(q):
    assert np.allclose(page.turn(page.PLANE, q), page.PLANE)


def test_a_uniform_wind_turns_anticlockwise():
    assert np.allclose(page.turn(np.ones((28, 28)), 1), 1j)


@few
@given(seeds)
def test_patches_neighbourhoods_and_their_inverse(seed):
    U = noise(seed)
    P, near = page.patches(U), page.neighbourhoods(U)
    assert P.shape == (2, 49, 16) and near.shape == (2, 49, 64)
    assert np.array_equal(page.assemble(P), U)
    assert np.array_equal(near.reshape(2, 49, 8, 8)[..., 2:6, 2:6].reshape(2, 49, 16), P)
    assert P[0, 8, 5] == U[0, 5, 5] and near[0, 0, 0] == U[0, -2, -2]


@few
@given(seeds, quarters)
def test_needles_turn_along_and_have_length_one(seed, q):
    U = noise(seed)
    needle, speed = page.frames(U)
    turned, same_speed = page.frames(page.turn(U, 1))
    assert np.allclose(turned, 1j * needle[:, CAME_FROM]) and np.allclose(same_speed, speed[:, CAME_FROM])
    assert np.allclose(abs(needle), 1)
    assert np.array_equal(page.frames(np.zeros((28, 28)))[0], np.zeros(49))  # at rest: no needle, no error


# --- the solver -----------------------------------------------------------------------------------------------------------

@few
@given(seeds)
def test_vorticity_undoes_velocity_and_the_flow_has_no_divergence(seed):
    w = smooth(seed)
    U = page.velocity(w, 0.3 - 0.2j)
    kx, ky = page.wavenumbers()
    assert np.allclose(page.vorticity(U), np.fft.ifft2(w).real)
    assert abs((1j * kx * np.fft.fft2(U.real) + 1j * ky * np.fft.fft2(U.imag))).max() < 1e-9
    assert np.allclose(U.mean(axis=(-2, -1)), 0.3 - 0.2j)


@few
@given(seeds)
def test_projection_keeps_flows_and_commutes_with_turns(seed):
    U = noise(seed)
    once = page.incompressible(U)
    assert np.allclose(page.incompressible(once), once) and not np.allclose(once, U)
    assert np.allclose(page.incompressible(page.turn(U, 1)), page.turn(once, 1))


@settings(max_examples=5, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 0.05))
def test_taylor_green_in_a_wind(a, b, nu):
    x, y = page.PLANE.real, page.PLANE.imag
    end = page.solve(np.fft.fft2(2 * np.cos(x) * np.cos(y)), a + 1j * b, 0.4, nu=nu)
    exact = 2 * np.cos(x - 0.4 * a) * np.cos(y - 0.4 * b) * np.exp(-0.8 * nu)
    assert np.allclose(np.fft.ifft2(end).real, exact, atol=1e-5)


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_solver_commutes_with_turns_and_conserves_without_viscosity(seed):
    before, after = page.flows(np.random.default_rng(seed), 2, True)
    assert np.allclose(page.solver_step(page.turn(before, 1)), page.turn(after, 1), atol=1e-11)
    w = np.fft.fft2(page.vorticity(before))
    end = page.solve(w, before.mean(axis=(-2, -1), keepdims=True), 0.2, nu=0)
    assert (abs(end) ** 2).sum() == pytest.approx((abs(w) ** 2).sum(), rel=1e-3)
    assert (abs(page.solve(w, 0, 0.2, nu=0.05)) ** 2).sum() < (abs(w) ** 2).sum()


def test_directional_flows_have_a_wind_and_isotropic_ones_do_not():
    wind, calm = (page.flows(np.random.default_rng(0), 40, which)[0].mean(axis=(-2, -1)) for which in (True, False))
    assert wind.real.mean() == pytest.approx(0.6, abs=0.1) and abs(wind.imag.mean()) < 0.06
    assert abs(calm).max() < 1e-12


# --- tokens -----------------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.booleans(), st.booleans())
def test_tokens_are_invariant_with_frames_only(seed, around, positions):
    U = noise(seed)
    for framed in (True, False):
        x, powers = page.tokens(U, framed, around, positions)
        assert x.shape == (2, 49, 53) and powers.shape == (2, 49, 11)
        y, _ = page.tokens(page.turn(U, 1), framed, around, positions)
        assert (abs(y - x[:, CAME_FROM]).max() < 1e-9) == framed


@few
@given(seeds)
def test_without_surroundings_a_token_sees_its_patch_only(seed):
    U = noise(seed, 1)
    other = np.where(page.assemble(np.repeat(np.arange(49) == 24, 16).reshape(49, 16)), U, noise(seed + 20_000, 1))
    one, two, three = (page.tokens(T, around=around)[0][0, 24] for T, around in ((U, False), (other, False), (other, True)))
    assert np.allclose(one, two) and not np.allclose(one, three)


def test_a_patch_at_rest_keeps_only_what_needs_no_direction():
    x, powers = page.tokens(np.zeros((28, 28)))
    assert np.all(x == 0) and np.array_equal(powers[0], np.eye(11)[5])
    assert np.allclose(page.phases(np.array([1j]), np.array([-2, -1, 0, 3])), [[-1, -1j, 1, -1j]])


def test_local_moments_are_the_moments_of_local_velocities_at_local_offsets():
    """The phase formula against the definition, psi evaluated at turned offsets."""
    U = noise(3, 1)
    place = (np.arange(8) - 3.5) / 4
    q = (place[None, :] + 1j * place[:, None]).ravel()
    needle = page.frames(U)[0][0, 10]
    turned = q / needle
    r = abs(turned)
    psi = np.exp(-0.5 * ((r - 0.64) / 0.22) ** 2) * np.exp(3j * np.angle(turned))
    expected = (psi.conj() / np.linalg.norm(psi) * page.neighbourhoods(U)[0, 10] / needle).sum()
    column = 1 + 5 + 4 + 3  # radius 0.64 is the third, orders -4..4
    assert page.ENCODE_M[column] == 3
    x = page.tokens(U)[0][0, 10]
    assert x[column] + 1j * x[26 + column] == pytest.approx(expected)


def test_harmonics_by_shape():
    assert page.ENCODE.shape == (64, 26) and page.DECODE.shape == (16, 15)
    assert np.allclose(np.linalg.norm(page.ENCODE, axis=0), 1)
    assert np.allclose(np.rot90(page.ENCODE[:, -1].reshape(8, 8), -1).ravel(), page.ENCODE[:, -1] * (-1j) ** 5)


def test_displacements_and_kernels():
    z = page.displacements()
    assert np.array_equal(z, -z.T) and abs(z.real).max() == 3 and z[0, 1] == 1 and z[0, 7] == 1j and z[0, 6] == -1
    assert np.allclose(z, (1j * z)[CAME_FROM][:, CAME_FROM])
    K = page.kernels().numpy()
    assert K.shape == (4, 5, 49, 49) and np.all(np.diagonal(K[1:], axis1=2, axis2=3) == 0)
    assert K[0, 2, 0, 2] == pytest.approx(1) and K[1, 1, 0, 7] == pytest.approx(1j)


# --- networks -----------------------------------------------------------------------------------------------------------------

def awake(starts=(0,), **options):
    torch.manual_seed(1)
    model = page.ReViT(list(starts), **options)
    for p in model.parameters():
        if p.requires_grad:
            p.data += 0.3 * torch.randn_like(p)
    return model


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_network_is_equivariant_in_double_precision_and_not_without_frames(seed):
    U = noise(seed)
    model = awake().double()
    assert page.mismatch(page.forecast(model, page.tokens, 1.0, 1.0), U) < 1e-10
    assert page.mismatch(page.forecast(model, lambda T: page.tokens(T, framed=False), 1.0, 1.0), U) > 1e-2


def test_average_over_four_passes_is_equivariant_too():
    U = noise(2)
    plain = page.forecast(awake().double(), lambda T: page.tokens(T, framed=False), 1.0, 1.0)
    assert page.mismatch(page.averaged(plain), U) < 1e-10 < page.mismatch(plain, U)


@few
@given(seeds, quarters)
def test_one_needle_for_the_whole_field_is_equivariant_and_keeps_the_trained_orientation(seed, q):
    U = noise(seed) + np.array([0.5 + 0.1j, 0.5j])[:, None, None]
    plain = lambda T: T**2  # blind to arrows: not equivariant
    step = page.whole_needle(plain)
    assert np.allclose(step(page.turn(U, q)), page.turn(step(U), q))
    assert np.allclose(step(U)[0], plain(U)[0]) and not np.allclose(step(U)[1], plain(U)[1])


def test_runs_do_not_see_each_other_and_equal_starts_are_equal():
    torch.manual_seed(0)
    model = page.ReViT([0, 1, 0])
    x, powers = (torch.tensor(T) for T in page.tokens(noise(1)))
    x, powers = x.float().expand(3, -1, -1, -1), powers.to(torch.complex64).expand(3, -1, -1, -1)
    out = model(x, powers)
    assert out.shape == (3, 2, 49, 16) and torch.allclose(out[0], out[2]) and not torch.allclose(out[0], out[1])
    assert torch.allclose(page.only(model, 1)(x[:1], powers[:1])[0], out[1], atol=1e-5)
    assert [len(w) for w in page.weight([1, 1], 3, 4)] == [3, 3]


def test_a_blind_bias_does_not_notice_the_direction_of_other_patches():
    """Mirror the place of all patches about the centre of the grid, keep tokens and phases: distances stay."""
    sees = torch.tensor([[1.0, 0, 0, 0]])
    x, powers = (torch.tensor(T)[None] for T in page.tokens(noise(4)))
    for blind in (True, False):
        model = awake(sees=sees if blind else None).double()
        straight, mirrored = model(x, powers), model(x.flip(2), powers.flip(2)).flip(2)
        assert torch.allclose(straight, mirrored, atol=1e-8) == blind


def test_bias_knows_ahead_from_behind_when_powers_turn():
    x, powers = (torch.tensor(T)[None] for T in page.tokens(noise(5)))
    model = awake().double()
    turned = powers * (-1.0) ** torch.tensor(page.POWERS)
    assert not torch.allclose(model(x, powers).abs(), model(x, turned).abs())


def test_vit_and_pixels():
    x, powers = page.pixels(noise(0))
    assert x.shape == (2, 49, 128) and np.all(powers == 1)
    out = page.ViT()(torch.tensor(x, dtype=torch.float32)[None], None)
    assert out.shape == (1, 2, 49, 16) and out.is_complex()


def test_training_lowers_the_error_of_every_run_and_scores_are_relative():
    data = page.flows(np.random.default_rng(0), 24, True)
    pool = page.pool(*data, page.tokens, train=16)
    assert pool[0].shape == (4, 24, 49, 53) and pool[2].shape == (4, 24, 49, 16)
    torch.manual_seed(0)
    model = page.ReViT([0, 1])
    for layer in (model.head,):
        layer.data *= 0
    assert np.allclose(page.score(model, [pool, pool], train=16), 1)  # no change forecast: persistence
    torch.manual_seed(0)
    model = page.ReViT([0, 1])
    page.fit(model, [pool, pool], 30, 0.01, 0, [False, True], [16, 16])
    scores = page.score(model, [pool, pool], train=16)
    assert scores.shape == (2, 4) and scores.max() < 0.95
    assert np.allclose(scores, scores[:, :1], rtol=1e-4)


def test_few_fields_means_few_fields():
    data = page.flows(np.random.default_rng(0), 8, False)
    pool, spoilt = (page.pool(*data, page.tokens, train=8) for _ in range(2))
    spoilt[0][:, 3:] = torch.nan
    torch.manual_seed(0)
    model = page.ReViT([0])
    page.fit(model, [spoilt], 3, 0.01, 0, [True], [3])
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_only_runs_with_turned_data_see_other_orientations():
    data = page.flows(np.random.default_rng(0), 8, False)
    pool = page.pool(*data, page.tokens, train=8)
    pool[0][1:] = torch.nan
    for turned in (False, True):
        torch.manual_seed(0)
        model = page.ReViT([0])
        page.fit(model, [pool], 3, 0.01, 0, [turned], [8])
        assert all(torch.isfinite(p).all() for p in model.parameters()) != turned


def test_train_all_returns_a_forecast_and_scores_for_each_start():
    data = page.flows(np.random.default_rng(0), 260, True)
    table = {name: page.VARIANTS[name] for name in ("ReViT", "no frames")}
    steppers, scores = page.train_all(table, {"ReViT": 2, "no frames": 1}, data, 2, 0, "cpu")
    assert len(steppers["ReViT"]) == 2 and scores["ReViT"].shape == (2, 4) and scores["no frames"].shape == (1, 4)
    assert np.allclose(scores["ReViT"], scores["ReViT"][:, :1], rtol=1e-4)
    step = steppers["ReViT"][1]
    before, after = (part[256:] for part in data)
    direct = (abs(step(before) - after) ** 2).mean() / (abs(before - after) ** 2).mean()
    assert direct == pytest.approx(scores["ReViT"][1, 0], rel=1e-3)
    assert direct == pytest.approx(page.test_error(step, data))


# --- other angles ---------------------------------------------------------------------------------------------------------------

def test_discs_turn_exactly_by_quarters_and_nearly_by_any_angle():
    U = page.flows(np.random.default_rng(1), 2, True)[0]
    start = page.disc_flow(U, 0.0)
    assert np.allclose(page.disc_flow(U, np.pi / 2), page.turn(start, 1), atol=1e-9)
    inside = abs(page.PLANE) < 1.2
    assert np.corrcoef(page.vorticity(start)[:, inside].ravel(), page.vorticity(U)[:, inside].ravel())[0, 1] > 0.95
    back = page.turn_back(page.disc_flow(U, 0.5), 0.5) * np.exp(-0.5j)
    assert np.sqrt((abs(back - start)[:, inside] ** 2).mean() / (abs(start)[:, inside] ** 2).mean()) < 0.1


def test_turn_back_undoes_a_quarter_turn():
    U = noise(0)
    assert np.allclose(page.turn_back(page.turn(U, 1), np.pi / 2) * -1j, U)


# --- three dimensions -------------------------------------------------------------------------------------------------------------

def test_cube_symmetries():
    G = page.cube_symmetries()
    assert G.shape == (48, 3, 3) and len({R.tobytes() for R in G + 0.0}) == 48
    assert np.allclose(G @ G.mT, np.eye(3)) and (np.linalg.det(G) > 0).sum() == 24


@few
@given(seeds, st.integers(0, 47), st.integers(0, 47))
def test_action_is_a_homomorphism_and_frames_follow_proper_turns_only(seed, i, j):
    G, u = page.cube_symmetries(), np.random.default_rng(seed).normal(size=(8, 8, 8, 3))
    assert np.allclose(page.act(G[i], page.act(G[j], u)), page.act(G[i] @ G[j], u))
    B = page.frames3d(u)
    assert B.shape == (2, 2, 2, 3, 3) and np.allclose(B.mT @ B, np.eye(3)) and np.allclose(np.linalg.det(B), 1)
    gap = abs(page.frames3d(page.act(G[i], u)) - page.act(G[i], B)).max()
    assert (gap < 1e-9) == (np.linalg.det(G[i]) > 0)


def test_training_time_is_positive_and_four_passes_take_longer():
    nets = {"one": (awake(), page.tokens, 1), "four": (copy.deepcopy(awake()), page.tokens, 4)}
    seconds = page.training_time(nets, noise(0), rounds=3)
    assert 0 < seconds["one"] < seconds["four"] < 10


# --- plausible wrong answers to the exercises, which the hidden tests must reject --------------------------------------------------

TURN = '''def turn_field(u):
    moved = {moved}
    return {result}
'''
ROT, ARROWS = "np.rot90(u, -1, axes=(-2, -1))", "np.stack([-moved[:, 1], moved[:, 0]], axis=1)"
FRAME = '''def local_frame(p, eps=0.0):
    mean = {mean}
    b1 = {b1}
    b2 = {b2}
    return np.stack([b1, b2], axis={axis})
'''
MEAN, B1 = "p.mean(axis=-2)", "mean / (np.linalg.norm(mean, axis=-1, keepdims=True) + eps)"
B2 = "np.stack([-b1[..., 1], b1[..., 0]], axis=-1)"
CHANGE = "answer_eps, answer_mirrors, answer_factor, answer_breaks = {}, {}, {}, {}\n"
EVEN = '''def displacements(side):
    c = np.arange(side)
    d = {wrap}
    {repair}
    dx = np.tile(d, (side, side))
    dy = np.repeat(np.repeat(d, side, axis=0), side, axis=1)
    both = np.stack({order}, axis=-1)
    return {result}
'''
WRAP = "(c[None, :] - c[:, None] + side // 2) % side - side // 2"
MEND = "d = np.where(2 * np.abs(d) == side, 0, d)"
MUTANTS = {
    "turn": {
        "clockwise pixels": TURN.format(moved="np.rot90(u, 1, axes=(-2, -1))", result=ARROWS),
        "clockwise altogether": TURN.format(moved="np.rot90(u, 1, axes=(-2, -1))",
                                            result="np.stack([moved[:, 1], -moved[:, 0]], axis=1)"),
        "pixels only": TURN.format(moved=ROT, result="moved"),
        "arrows only": TURN.format(moved="u", result=ARROWS),
        "swaps the components without a sign": TURN.format(moved=ROT, result="moved[:, ::-1]"),
        "a mirror image": TURN.format(moved="u.swapaxes(-2, -1)", result=ARROWS),
        "turns about a pixel": TURN.format(moved=f"np.roll({ROT}, 1, axis=-1)", result=ARROWS),
    },
    "frame": {
        "rows instead of columns": FRAME.format(mean=MEAN, b1=B1, b2=B2, axis=-2),
        "left-handed": FRAME.format(mean=MEAN, b1=B1, b2="np.stack([b1[..., 1], -b1[..., 0]], axis=-1)", axis=-1),
        "mean of directions": FRAME.format(
            mean="(p / (np.linalg.norm(p, axis=-1, keepdims=True) + 1e-30)).mean(axis=-2)", b1=B1, b2=B2, axis=-1),
        "ignores eps": FRAME.format(mean=MEAN, b1="mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-9)",
                                    b2=B2, axis=-1),
        "eps under the root": FRAME.format(mean=MEAN, b1="mean / np.sqrt((mean**2).sum(-1, keepdims=True) + eps**2)",
                                           b2=B2, axis=-1),
        "eps added to the mean": FRAME.format(
            mean="p.mean(axis=-2) + eps", b1="mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-9)",
            b2=B2, axis=-1),
        "first pixel": FRAME.format(mean="p[..., 0, :]", b1=B1, b2=B2, axis=-1),
    },
    "change": {
        "wants orthonormal frames": CHANGE.format("False", 24, "-1j", '"c"'),
        "counts mirror images": CHANGE.format("True", 48, "-1j", '"c"'),
        "counts signs only": CHANGE.format("True", 8, "-1j", '"c"'),
        "forgets the conjugate": CHANGE.format("True", 24, "-1j * -1", '"c"'),
        "forgets the vector": CHANGE.format("True", 24, "-1 + 0j", '"c"'),
        "fears distances": CHANGE.format("True", 24, "-1j", '"b"'),
        "fears larger windows": CHANGE.format("True", 24, "-1j", '"d"'),
    },
    "even": {
        "naive wrap": EVEN.format(wrap=WRAP, repair="", order="[dx, dy]", result="both"),
        "no wrap": EVEN.format(wrap="c[None, :] - c[:, None]", repair=MEND, order="[dx, dy]", result="both"),
        "drops both components": EVEN.format(
            wrap=WRAP, repair="", order="[dx, dy]",
            result="np.where((2 * np.abs(both) == side).any(axis=-1, keepdims=True), 0, both)"),
        "y first": EVEN.format(wrap=WRAP, repair=MEND, order="[dy, dx]", result="both"),
        "backwards": EVEN.format(wrap=WRAP, repair=MEND, order="[dx, dy]", result="-both"),
        "absolute value": EVEN.format(wrap=WRAP, repair="d = np.abs(d)", order="[dx, dy]", result="both"),
        "mends odd sides as well": EVEN.format(wrap=WRAP, repair="d = np.where(np.abs(d) == side // 2, 0, d)",
                                               order="[dx, dy]", result="both"),
    },
}
