"""Property tests of the functions on the page of orthogonal-subspace-carving."""
import numpy as np
import press
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

page = press.definitions("orthogonal-subspace-carving")

seeds = st.integers(0, 10_000)
few = settings(max_examples=20, deadline=None)


def fillers(seed, p=3, K=4, d=12):
    return page.unit(np.random.default_rng(seed).normal(size=(p, K, d)))


def roles(seed, p=3, d=12, k=3, R=4, levels=4, overlap=0.0):
    return page.make_roles(np.random.default_rng(seed + 50_000), p, d, k, R, levels, overlap)


# --- carving --------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.integers(0, 11))
def test_bases_are_orthonormal_at_every_level(seed, k):
    bases = roles(seed, k=k)
    assert bases.shape == (3, 4, 4, 12, k)
    gram = bases.swapaxes(-1, -2) @ bases
    assert np.allclose(gram, np.eye(k))


def test_levels_are_one_rotation_apart():
    bases = roles(0, R=6, k=2)
    flat = [bases[0, level].transpose(1, 0, 2).reshape(12, 12) for level in range(4)]  # all bases side by side
    turn = flat[1] @ np.linalg.inv(flat[0])
    assert np.allclose(turn.T @ turn, np.eye(12))
    assert np.allclose(turn @ flat[1], flat[2]) and np.allclose(turn @ flat[2], flat[3])


@pytest.mark.parametrize("k", [-1, 12, 20])
def test_a_role_cannot_carve_everything(k):
    with pytest.raises(ValueError, match="between 0 and d - 1"):
        roles(0, k=k)


@few
@given(seeds, st.lists(st.integers(0, 3), max_size=4))
def test_binding_carves_the_outermost_role_and_keeps_unit_length(seed, path):
    F, bases = fillers(seed), roles(seed)
    bound = page.bind(F, bases, path)
    assert bound.shape == F.shape and np.allclose(np.linalg.norm(bound, axis=-1), 1)
    if path:
        assert np.abs(bound @ bases[:, 0, path[0]]).max() < 1e-10
    else:
        assert np.allclose(bound, F)
    single = page.bind(F[:, [1]], bases, path)
    assert np.allclose(single, bound[:, [1]])


@few
@given(seeds)
def test_the_path_operator_is_the_product_of_projections(seed):
    bases = roles(seed)
    path = [2, 0, 3]
    for j in range(3):
        expected = np.eye(12)
        for level in (2, 1, 0):                   # innermost first, for row vectors
            B = bases[j, level, path[level]]
            expected = expected @ (np.eye(12) - B @ B.T)
        assert np.allclose(page.path_operator(bases, path)[j], expected)


@few
@given(seeds)
def test_order_and_repetition_count_only_because_levels_differ(seed):
    F, bases = fillers(seed), roles(seed)
    assert not np.allclose(page.bind(F, bases, [0, 0]), page.bind(F, bases, [0]))
    assert not np.allclose(page.bind(F, bases, [0, 1]), page.bind(F, bases, [1, 0]))
    still = np.repeat(bases[:, :1], 4, axis=1)
    assert np.allclose(page.bind(F, still, [0, 0]), page.bind(F, still, [0]))


def test_shared_subspaces_are_shared():
    bases = roles(1, k=4, overlap=0.5)
    values = np.linalg.svd(bases[0, 0, 0].T @ bases[0, 0, 1], compute_uv=False)
    assert np.allclose(values[:2], 1) and values[2] < 0.999
    assert np.allclose(np.linalg.svd(roles(1, k=4, overlap=1)[0, 0, 0].T @ roles(1, k=4, overlap=1)[0, 0, 1],
                                     compute_uv=False), 1)


# --- the memory -----------------------------------------------------------------------------------------------------

@few
@given(seeds, st.integers(2, 4), st.integers(1, 6))
def test_scores_equal_the_kernel_form_and_deletion_is_exact(seed, p, N):
    items, candidates = fillers(seed, p, N, 5), fillers(seed + 1, p, 7, 5)
    M = page.store(items)
    assert M.shape == (5,) * p
    kernel = np.prod(items @ candidates.swapaxes(-1, -2), axis=0).sum(axis=0)
    assert np.allclose(page.recognise(M, candidates), kernel)
    assert np.allclose(M - page.store(items[:, :1]), page.store(items[:, 1:]) if N > 1 else 0)
    assert page.recognise(page.store(items[:, :1]), items[:, :1])[0] == pytest.approx(1)


def test_store_by_hand():
    b = np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]])
    assert page.store(b)[1, 0, 1] == 2 * 3 * 6


@few
@given(seeds, st.integers(1, 4), st.integers(1, 4))
def test_random_trees_have_distinct_paths(seed, R, m):
    N = min(R**m, 9)
    paths, what = page.random_tree(np.random.default_rng(seed), R, m, N, 5)
    assert paths.shape == (N, m) and len({tuple(path) for path in paths}) == N
    assert paths.min() >= 0 and paths.max() < R and what.shape == (N,) and what.max() < 5
    with pytest.raises(ValueError, match="paths of depth"):
        page.random_tree(np.random.default_rng(seed), R, m, R**m + 1, 5)


def test_a_small_tree_is_answered_and_carving_is_why():
    rng = lambda: np.random.default_rng(3)
    assert page.osc_accuracy(rng(), 4, 20, 100) == 1
    assert page.osc_accuracy(rng(), 4, 20, 100, k=0) < 0.3
    assert page.osc_accuracy(rng(), 4, 20, 100, overlap=1.0) < 0.3


def test_tensor_products_are_exact_with_room_and_not_without():
    accuracy, floats = page.tpr_accuracy(np.random.default_rng(0), 3, 50, 200, 8)
    assert accuracy == 1 and floats == 32 * 8**3
    assert page.tpr_accuracy(np.random.default_rng(0), 3, 50, 200, 2)[0] < 0.9
    key = page.tpr_key(np.eye(3), [2, 0])
    assert key.shape == (9,) and key.argmax() == 6 and key.sum() == 1


def test_short_fillers_times_long_keys_need_no_carving():
    accuracy, numbers = page.hybrid_accuracy(np.random.default_rng(0), 12, 200, 300)
    assert accuracy == 1 and numbers == 64 * 1024 + 300 * 64 + 8 * 1024
    assert page.hybrid_accuracy(np.random.default_rng(0), 12, 200, 300, d_f=4, size=16)[0] < 0.3


@pytest.mark.parametrize("run", [page.hrr_accuracy, page.map_accuracy])
def test_symbolic_memories_work_when_large_and_fail_when_small(run):
    assert run(np.random.default_rng(0), 4096, 3, 20, 100) == 1
    assert run(np.random.default_rng(0), 4097, 3, 20, 100) == 1  # an odd length too
    assert run(np.random.default_rng(0), 32, 3, 100, 100) < 0.3


def test_budgets_count_every_number_and_are_not_exceeded():
    assert page.osc_floats(32, 3, 8, 1000, 8) == 32_768 + 96_000 + 6_144 + 3_072
    for K, R in ((10, 2), (1000, 8)):
        D = page.vsa_size(137_984, K, R)
        assert D * (1 + K + R) <= 137_984 < (D + 1) * (1 + K + R)
    for m in range(1, 17):
        size, d_f = page.tpr_shape(137_984, 1000, 8, m)
        cost = lambda size, d_f: d_f * size**m + 1000 * d_f + 8 * size
        assert 1 <= size <= 8 and d_f >= 16
        assert cost(size, d_f) <= 137_984 < cost(size, d_f + 1)
        for r in range(1, 9):                     # no other split has a larger memory
            f = max(16, d_f * size**m // r**m + 1)
            assert cost(r, f) > 137_984
    assert page.tpr_shape(137_984, 1000, 8, 6) == (4, 27)


@few
@given(seeds, st.integers(1, 8))
def test_short_roles_are_spread_evenly(seed, size):
    V = page.tpr_roles(8, size, np.random.default_rng(seed))
    assert V.shape == (8, size) and np.allclose(np.linalg.norm(V, axis=1), 1)
    assert np.allclose(V.T @ V, 8 / size * np.eye(size), atol=1e-3)
    assert ((V @ V.T) ** 2).mean() == pytest.approx(1 / size, abs=1e-3)


# --- the laws --------------------------------------------------------------------------------------------------------

def test_role_confusion_follows_its_law_and_not_with_shared_subspaces():
    rng = np.random.default_rng(0)
    scores = [page.wrong_role_scores(rng, 3, 32, 8, m).mean() for m in (1, 6) for _ in range(6)]
    assert np.mean(scores) == pytest.approx(0.75**3, abs=0.05)
    assert page.wrong_role_scores(rng, 3, 32, 8, 3, overlap=1.0) == pytest.approx(1)
    assert page.law_deviation(0.0, 5, runs=6) < 0.08 < page.law_deviation(0.5, 5, runs=6)


def test_participation_counts_surviving_directions():
    assert page.participation(np.random.default_rng(0), 32, 0, 5) == pytest.approx(32)
    assert page.participation(np.random.default_rng(0), 32, 8, 1) == pytest.approx(24)
    deep = [page.participation(np.random.default_rng(0), 32, 8, m) for m in (1, 2, 4, 8)]
    assert np.all(np.diff(deep) < 0)


# --- geometric algebra --------------------------------------------------------------------------------------------------

@few
@given(seeds)
def test_the_geometric_product_is_associative_and_squares_vectors_to_their_length(seed):
    rng = np.random.default_rng(seed)
    u, v, w = (page.vector(rng.normal(size=6)) for _ in range(3))
    product = page.geometric
    assert np.allclose(product(product(u, v), w), product(u, product(v, w)))
    assert product(u, u)[0] == pytest.approx((u**2).sum()) and np.allclose(product(u, u)[1:], 0)
    assert np.allclose(product(u, v, wedge=True), -product(v, u, wedge=True))
    assert np.allclose(product(u, v, wedge=True)[0], 0)


def test_signs_by_hand():
    e1, e2 = (page.vector(np.eye(6)[i]) for i in (0, 1))
    assert page.geometric(e1, e2)[3] == 1 and page.geometric(e2, e1)[3] == -1
    e12 = page.geometric(e1, e2)
    assert page.geometric(e12, e12)[0] == -1


@few
@given(seeds)
def test_carving_is_rejection(seed):
    assert max(page.clifford_errors(np.random.default_rng(seed))) < 1e-12


MEMORY = '''def store(b):
    M = np.zeros((b.shape[2],) * len(b))
    for i in range(b.shape[1]):
        product = b[0, i]
        for j in range(1, len(b)):
            product = np.multiply.outer(product, b[j, i])
        M += product
    return M


def recognise(M, q):
    scores = []
    for k in range(q.shape[1]):
        rest = M
        for j in range(len(q)):
            rest = np.tensordot(q[j, k], rest, axes=1)
        scores.append(float(rest))
    return np.array(scores)
'''  # right; the wrong answers below are made from it

MUTANTS = {
    "bind": {
        "outermost first": '''def bind(F, path, roles):
    for level in range(len(path)):
        B = roles[level][path[level]]
        F = F - F @ B @ B.T
    return unit(F)
''',
        "keeps what it should carve": '''def bind(F, path, roles):
    for level in reversed(range(len(path))):
        B = roles[level][path[level]]
        F = F @ B @ B.T
    return unit(F)
''',
        "forgets the levels": '''def bind(F, path, roles):
    for role in reversed(path):
        B = roles[0][role]
        F = F - F @ B @ B.T
    return unit(F)
''',
        "no unit length": '''def bind(F, path, roles):
    for level in reversed(range(len(path))):
        B = roles[level][path[level]]
        F = F - F @ B @ B.T
    return F
''',
        "carves the joint span": '''def bind(F, path, roles):
    if path:
        B = np.linalg.qr(np.hstack([roles[level][role] for level, role in enumerate(path)]))[0]
        F = F - F @ B @ B.T
    return unit(F)
''',
        "changes F": '''def bind(F, path, roles):
    for level in reversed(range(len(path))):
        B = roles[level][path[level]]
        F -= F @ B @ B.T
    return unit(F)
'''},
    "laws": {
        "forgets the power": '''answer_kappa_3, answer_kappa_6 = 0.9, 0.85
answer_pairs, answer_pairs_tied, answer_deeper = 2048, 163.2, "b"
''',
        "standard deviation as variance": '''answer_kappa_3, answer_kappa_6 = 1 - 0.1 ** (1 / 3), 1 - 0.1 ** (1 / 6)
answer_pairs, answer_pairs_tied, answer_deeper = 8192, 652.8, "b"
''',
        "tied without the product": '''answer_kappa_3, answer_kappa_6 = 1 - 0.1 ** (1 / 3), 1 - 0.1 ** (1 / 6)
answer_pairs, answer_pairs_tied, answer_deeper = 2048, 2048 / 15, "b"
''',
        "depth helps": '''answer_kappa_3, answer_kappa_6 = 1 - 0.1 ** (1 / 3), 1 - 0.1 ** (1 / 6)
answer_pairs, answer_pairs_tied, answer_deeper = 2048, 163.2, "a"
'''},
    "memory": {
        "order three only": '''def store(b):
    return np.einsum("na,nb,nc->abc", *b) if len(b) == 3 else np.einsum("na,nb->ab", *b[:2])


def recognise(M, q):
    return np.einsum("abc,ka,kb,kc->k", M, *q) if M.ndim == 3 else np.einsum("ab,ka,kb->k", M, *q[:2])
''',
        "axes in reverse": MEMORY.replace("    return M\n", "    return M.T\n"),
        "a mean": MEMORY.replace("M += product", "M += product / b.shape[1]")},
    "forget": {
        "keeps B": '''def forget(M, B):
    flat = M.reshape(len(M), -1)
    return (B @ (B.T @ flat)).reshape(M.shape)
''',
        "last axis": '''def forget(M, B):
    return M - M @ B @ B.T
''',
        "all axes": '''def forget(M, B):
    P = np.eye(len(M)) - B @ B.T
    for axis in range(M.ndim):
        M = np.moveaxis(np.tensordot(P, M, axes=(1, axis)), 0, axis)
    return M
''',
        "order three only": '''def forget(M, B):
    P = np.eye(len(M)) - B @ B.T
    return np.einsum("ab,bcd->acd", P, M)
'''},
    "factor": {
        "length, not squared": '''answer_factor, answer_untouched = 0.75 ** 0.5, "a"
''',
        "all three axes": '''answer_factor, answer_untouched = 0.75 ** 3, "a"
''',
        "nothing is safe": '''answer_factor, answer_untouched = 0.75, "b"
'''},
}
