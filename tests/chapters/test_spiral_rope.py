"""Property tests of the functions on the page of spiral-rope, and wrong answers that its exercises must reject."""
import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings, strategies as st

page = press.definitions("spiral-rope")
SIZES = st.sampled_from([(32, 2), (32, 4), (64, 2), (64, 4), (64, 8), (64, 16)])

RULERS = """def spiral_directions(d_h, K, f_max=1.5, theta=100.0):
    if K < 2 or K % 2 or d_h % (2 * K):
        raise ValueError("bad")
    N, R = d_h // 4, K // 2
    n = np.arange(N)
    f = f_max * theta ** (-n / N)
    a = (n // 2 % R) * np.pi / (2 * R)
    return np.concatenate([np.stack([f * np.cos(a), -f * np.sin(a)], 1), np.stack([f * np.sin(a), f * np.cos(a)], 1)])
"""
HEADS = """def turned_heads(omega, K, H):
    out = []
    for h in range(H):
        a = h * np.pi / (K * H)
        out.append(omega @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]))
    return np.concatenate(out)
"""
#: solution cell -> {what is wrong: the wrong answer}
MUTANTS = {
    "spiral-directions": {
        "deals singly": RULERS.replace("n // 2 % R", "n % R"),
        "turns over the half circle": RULERS.replace("/ (2 * R)", "/ R"),
        "rows counted upwards": RULERS.replace("-f * np.sin(a)", "f * np.sin(a)").replace("f * np.sin(a), f * np.cos(a)]", "-f * np.sin(a), f * np.cos(a)]"),
        "accepts anything": RULERS.replace("if K < 2 or K % 2 or d_h % (2 * K):", "if False:"),
        "frequencies reach the end of the range": RULERS.replace("-n / N", "-n / (N - 1)"),
        "accepts a negative K": RULERS.replace("K < 2", "K == 0"),
        "second half points the other way": RULERS.replace("[f * np.sin(a), f * np.cos(a)]", "[-f * np.sin(a), -f * np.cos(a)]"),
        "ignores theta": RULERS.replace("theta **", "100.0 **"),
    },
    "additive": {
        "a diagonal is partly a sum": "diagonal, row, block, cover = 0.2, 1.0, 0.5, 0.2",
        "one direction of the block": "diagonal, row, block, cover = 0.0, 1.0, 0.25, 0.2",
        "cover of a point": "diagonal, row, block, cover = 0.0, 1.0, 0.5, 0.04",
        "half for a row": "diagonal, row, block, cover = 0.0, 0.5, 0.5, 0.2",
    },
    "turned-heads": {
        "clockwise": HEADS.replace("a = h", "a = -h"),
        "a full direction for each head": HEADS.replace("(K * H)", "K"),
        "turns over the whole circle": HEADS.replace("h * np.pi", "2 * h * np.pi"),
        "turns the second half the other way": HEADS.replace("    return", "        out[-1][len(omega) // 2 :] = omega[len(omega) // 2 :] @ np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])\n    return"),
        "does not turn": "def turned_heads(omega, K, H):\n    return np.tile(omega, (H, 1))",
    },
}


@given(SIZES, st.integers(0, 999), st.floats(-20, 20), st.floats(-20, 20))
@settings(max_examples=30, deadline=None)
def test_logits_depend_on_offsets_alone_and_are_the_sum_of_waves(size, seed, dx, dy):
    d_h, K = size
    rng = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 9, d_h, dtype=torch.float64, generator=rng)
    omega, p = torch.tensor(page.spiral_omega(d_h, K)), torch.tensor(page.grid(3), dtype=torch.float64)
    table = page.logits(q, k, omega, p)
    assert torch.allclose(table, page.logits(q, k, omega, p + torch.tensor([dx, dy])), atol=1e-8)
    pairs = torch.view_as_complex(q.unflatten(-1, (-1, 2)))[0].conj() * torch.view_as_complex(k.unflatten(-1, (-1, 2)))[5]
    waves = pairs.abs() * torch.cos(omega @ (p[5] - p[0]) + pairs.angle())
    assert table[0, 5].item() == pytest.approx(waves.sum().item(), abs=1e-8)


def test_rotation_keeps_lengths_and_a_quarter_turn_swaps_the_pair():
    x = torch.tensor([[1.0, 0.0, 0.0, 2.0]])
    assert torch.allclose(page.rotate(x, torch.tensor([[torch.pi / 2, torch.pi / 2]])), torch.tensor([[0.0, 1, -2, 0]]), atol=1e-6)
    x = torch.randn(5, 8)
    assert torch.allclose(page.rotate(x, torch.randn(5, 4)).norm(dim=-1), x.norm(dim=-1), atol=1e-5)


@given(SIZES, st.sampled_from([1, 2]), st.booleans())
def test_rulers_are_evenly_spread_and_used_alike(size, run, shared):
    d_h, K = size
    omega = page.spiral_omega(d_h, K, run=run, shared=shared)
    degrees = np.degrees(np.arctan2(-omega[:, 1], omega[:, 0])).round(6) % 180
    values, counts = np.unique(degrees, return_counts=True)
    if run == 1 or d_h >= 4 * K:                       # two at a time need two frequencies for each turn
        assert values == pytest.approx(np.arange(K) * 180 / K)
        assert (counts == d_h // 2 // K).all()
    distinct = len(np.unique(np.linalg.norm(omega, axis=1).round(9)))
    assert distinct == (d_h // 4 // (K // 2) if shared and (run == 1 or d_h >= 4 * K) else distinct)
    assert np.linalg.norm(omega, axis=1).max() == pytest.approx(1.5)


def test_two_directions_are_axial_and_shared_lists_are_then_the_same():
    assert (np.abs(page.spiral_omega(64, 2)).min(1) < 1e-12).all()
    assert page.spiral_omega(64, 2) == pytest.approx(page.spiral_omega(64, 2, shared=True))
    for d_h, K in ((64, 3), (60, 4), (64, 0)):
        with pytest.raises(ValueError, match="even K"):
            page.spiral_omega(d_h, K)


def test_rulers_by_hand():
    step, diagonal = 100 ** (-1 / 16), np.array([1, -1]) / np.sqrt(2)
    assert page.spiral_omega(64, 4)[2] == pytest.approx(1.5 * step**2 * diagonal)           # the third frequency
    assert page.spiral_omega(64, 4)[18] == pytest.approx(1.5 * step**2 * diagonal * [1, -1])
    assert page.spiral_omega(64, 4, run=1)[1] == pytest.approx(1.5 * step * diagonal)       # dealt singly: the second
    assert page.spiral_omega(64, 4, shared=True)[[2, 3]] == pytest.approx(1.5 * np.outer([1, step**2], diagonal))
    assert page.spiral_omega(64, 2, f_max=2, theta=1e4)[15] == pytest.approx([2 * 1e4 ** (-15 / 16), 0])


def test_interaction_by_hand():
    assert page.interaction(np.add.outer([1.0, 5, 2], [0.0, 3, 3])) == pytest.approx(0, abs=1e-20)
    assert page.interaction(np.eye(5)) == pytest.approx(1)
    assert page.interaction(np.outer(np.arange(9) < 3, np.arange(9) < 3).astype(float)) == pytest.approx(0.5)


@given(st.integers(1, 25), st.integers(0, 999))
def test_rank_one_attention_never_covers_more_than_the_bound(m, seed):
    a, b = np.random.default_rng(seed).dirichlet(np.full(m, 0.2), 2)
    assert page.overlap(np.outer(a, b).ravel(), np.eye(m).ravel() / m) <= 1 / np.sqrt(m) + 1e-12


def test_overlap_of_equal_and_disjoint():
    assert page.overlap(np.array([0.25, 0.75]), np.array([0.25, 0.75])) == 1
    assert page.overlap(np.array([[1.0, 0], [0.5, 0.5]]), np.array([0.0, 1])) == pytest.approx([0, 0.5])


@pytest.mark.parametrize("degrees", [0, 22.5, 45, 90, 135])
def test_bands_lie_on_their_line_as_seen_on_the_page(degrees):
    a = np.radians(degrees)
    on = np.outer([-3.0, 1, 4], [np.cos(a), -np.sin(a)])
    assert page.band(on, degrees, 0.5) == pytest.approx(1)
    assert page.band(np.array([[np.sin(a), np.cos(a)]]), degrees, 0.5) == pytest.approx(np.exp(-2))


def test_fit_reaches_a_wave_of_its_own_rulers_and_no_diagonal_by_axial_ones():
    offsets, omega = page.window(5), page.spiral_omega(64, 4)
    wave = np.cos(offsets @ omega[3] + 0.4)[:, None]
    fit, r2 = page.best_fit(omega, offsets, wave)
    assert fit == pytest.approx(wave, abs=1e-6) and r2[0] > 1 - 1e-9
    exact = (offsets[:, :1] == offsets[:, 1:]).astype(float)
    assert page.best_fit(page.spiral_omega(64, 2), offsets, exact)[1][0] == pytest.approx(0, abs=1e-9)


def test_lines_are_distributions_over_others():
    M = page.lines(4, (0, 45)).numpy()
    assert M[0, 5] == pytest.approx(np.isin(np.arange(16), [4, 6, 7]) / 3)          # patch 5: row 1
    assert M[1, 5] == pytest.approx(np.isin(np.arange(16), [8, 2]) / 2)             # rising to the right
    assert M[1, 0].sum() == 0                                                       # a corner is alone


def test_line_task_is_the_mean_along_the_line():
    M = page.lines(3, (0,))
    x, y, variance = page.line_task(M, torch.Generator().manual_seed(0), 4000)
    assert y[0, 4, 0] == (x[0, 3, 0] + x[0, 5, 0]) / 2
    assert variance.item() == pytest.approx(0.5) and y.var(0).mean().item() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("name", ["axial (K = 2)", "Spiral, K = 8", "K = 4, shared list", "RoPE-Mixed", "learned table"])
def test_networks_without_a_table_see_a_moved_picture_moved_alike(name):
    torch.manual_seed(0)
    net = page.PatchNet(5, 2, 3, **page.position_code(name, 0), blocks=2)
    x = torch.randn(2, 25, 2)
    out = net(x)
    assert out.shape == (2, 25, 3)
    net.p += torch.tensor([4.0, -9.0])                                              # all positions move together
    assert torch.allclose(net(x), out, atol=1e-4)
    order = torch.randperm(25)                                                      # positions do matter
    assert not torch.allclose(net(x[:, order]), out[:, order], atol=1e-3)


def test_photographs_are_cut_and_hidden_as_said():
    photos = page.photographs()
    assert [photo.shape for photo in photos] == [(213, 320)] * 2
    x, patches, hide = page.hidden_patches(photos, np.random.default_rng(0), 6)
    assert hide.sum(1).tolist() == [25] * 6 and (x[..., :9][hide] == 0).all() and (x[..., 9] == hide).all()
    assert torch.equal(x[..., :9][~hide], patches[~hide]) and patches.mean((1, 2)).abs().max() < 1e-6
    stripes = [np.tile(np.arange(320, dtype=np.float32), (213, 1))] * 2              # a patch is 3 x 3 neighbours
    _, patches, _ = page.hidden_patches(stripes, np.random.default_rng(0), 1)
    assert patches[0, 0, :3].diff().tolist() == [1, 1] and patches[0, 0, 0] == patches[0, 0, 3]
    assert (patches[0, 1] - patches[0, 0]).tolist() == [3] * 9
