"""Property tests of the functions on the page of ou-interventions."""
import numpy as np
import press
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

page = press.definitions("ou-interventions")

seeds = st.integers(0, 10_000)
few = settings(max_examples=20, deadline=None)
kinds = st.sampled_from(["cut", "decay", "shift"])


def full(n):
    return np.ones((n, n), dtype=bool)


def system(seed, mask):
    return page.random_system(np.random.default_rng(seed), mask)


def hidden_truth(parameters, mask, targets, kind):
    """The true unknowns theta, in the page's order."""
    A, b, d = parameters
    rest = page.stationary(A, b, d)
    sizes = [size for k in targets for size in page.typical_sizes(A, *rest, k, kind)]
    return np.concatenate([A[mask], b, d, sizes])


# --- equilibrium ----------------------------------------------------------------------------------------------------

def test_equilibrium_by_hand():
    mean, cov = page.stationary([[-2.0]], [1.0], [1.0])
    assert mean == pytest.approx([0.5]) and cov == pytest.approx(np.array([[0.25]]))
    mean, cov = page.stationary([[-1, 0], [1, -1]], [1, 0], [2, 2])
    assert np.allclose(mean, [1, 1]) and np.allclose(cov, [[1, 0.5], [0.5, 1.5]])


@few
@given(seeds, st.floats(0.1, 10))
def test_equilibrium_solves_its_equations_and_forgets_the_clock(seed, speed):
    A, b, d = system(seed, full(4))
    mean, cov = page.stationary(A, b, d)
    assert np.allclose(A @ mean, -b) and np.allclose(A @ cov + cov @ A.T, -np.diag(d))
    assert np.linalg.eigvalsh(cov)[0] > 0
    for one, other in zip(page.stationary(speed * A, speed * b, speed * d), (mean, cov)):
        assert np.allclose(one, other)


@pytest.mark.parametrize("A", [[[0.0]], [[1.0]], [[-1.0, 2.0], [2.0, -1.0]]])
def test_no_equilibrium_is_refused(A):
    with pytest.raises(ValueError, match="not stable"):
        page.stationary(A, np.zeros(len(A)), np.ones(len(A)))


def test_a_long_simulation_has_the_snapshot():
    A, b, d = np.array([[-1.0, 1.5], [-1.0, -0.6]]), np.array([0.5, -0.2]), np.array([1.0, 0.4])
    rng, X, step = np.random.default_rng(0), np.zeros((2, 20_000)), 0.02
    for _ in range(600):
        X = X + step * (A @ X + b[:, None]) + np.sqrt(step * d)[:, None] * rng.normal(size=X.shape)
    mean, cov = page.stationary(A, b, d)
    assert np.allclose(X.mean(axis=1), mean, atol=0.03) and np.allclose(np.cov(X), cov, atol=0.04)


@few
@given(seeds, seeds)
def test_every_spin_has_the_same_snapshot_and_only_antisymmetric_ones_do(seed, other):
    A, b, d = system(seed, full(3))
    mean, cov = page.stationary(A, b, d)
    S = np.random.default_rng(other).normal(size=(3, 3))
    new_A, new_b = page.drift_with_spin(mean, cov, d, S - S.T)
    assert np.allclose(new_A @ cov + cov @ new_A.T, -np.diag(d))
    assert np.allclose(new_A @ mean, -new_b)
    assert np.allclose(A @ cov + np.diag(d) / 2, -(A @ cov + np.diag(d) / 2).T)
    with pytest.raises(ValueError, match="antisymmetric"):
        page.drift_with_spin(mean, cov, d, S)


# --- interventions ----------------------------------------------------------------------------------------------------

@few
@given(seeds, kinds, st.integers(0, 3))
def test_an_intervention_changes_its_targets_equation_alone(seed, kind, k):
    A, b, d = system(seed, full(4))
    before = A.copy(), b.copy()
    new_A, new_b = page.intervene(A, b, k, kind, [0.7, 0.2])
    others = np.arange(4) != k
    assert np.array_equal(new_A[others], A[others]) and np.array_equal(new_b[others], b[others])
    assert np.array_equal(A, before[0]) and np.array_equal(b, before[1])       # nothing in place
    if kind == "cut":
        assert np.all(new_A[k, others] == 0) and new_A[k, k] == A[k, k] and new_b[k] == 0.7
    elif kind == "decay":
        assert new_A[k, k] == pytest.approx(A[k, k] - 0.7) and new_b[k] == pytest.approx(b[k] + 0.2)
    else:
        assert np.array_equal(new_A, A)


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="choose one of"):
        page.intervene(-np.eye(2), np.zeros(2), 0, "replace", [1.0])


@few
@given(seeds)
def test_a_knock_out_downstream_changes_nothing_upstream(seed):
    A, b, d = system(seed, page.CHAIN)
    mean, cov = page.stationary(A, b, d)
    after = page.knock_out(A, b, d, 4, -1.5)
    assert np.allclose(after[0][:4], mean[:4]) and np.allclose(after[1][:4, :4], cov[:4, :4])
    assert after[0][4] == pytest.approx(-1.5)


@few
@given(seeds, st.integers(0, 3))
def test_without_spin_a_knock_out_is_regression(seed, k):
    parameters = system(seed, full(4))
    mean, cov = page.stationary(*parameters)
    still = page.without_spin(parameters)
    assert np.allclose(page.stationary(*still)[1], cov)
    regression = mean + cov[:, k] / cov[k, k] * (-2 - mean[k])
    others = np.arange(4) != k          # the target itself keeps its own decay and level
    assert np.allclose(page.knock_out(*still, k, -2.0)[0][others], regression[others])


# --- the moment equations ---------------------------------------------------------------------------------------------

@few
@given(seeds, kinds, st.booleans())
def test_the_truth_solves_the_equations(seed, kind, scaled):
    parameters = system(seed, page.CHAIN)
    shots = page.experiment(*parameters, page.TARGETS, kind)
    theta = hidden_truth(parameters, page.CHAIN, page.TARGETS, kind)
    M = page.equation_matrix(page.CHAIN, shots, scaled)
    assert np.abs(M @ theta).max() < 1e-9
    assert np.allclose(page.residuals(theta + 1, page.CHAIN, shots, scaled), M @ (theta + 1))
    A, b, d, _ = page.unpack(theta, page.CHAIN, shots)
    assert all(np.array_equal(x, y) for x, y in zip((A, b, d), parameters))


@few
@given(st.integers(2, 4), seeds)
def test_counts_of_free_directions(n, seed):
    parameters = system(seed, full(n))
    count = lambda kind, targets: page.free_directions(full(n), page.experiment(*parameters, targets, kind))
    assert count("cut", []) == n * (n + 1) // 2
    assert count("shift", [0]) == 1 + n * (n - 1) // 2
    assert count("cut", [n - 1]) == count("decay", [n - 1]) == 1


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_free_directions_agree_with_a_numerical_jacobian_of_the_moments(seed):
    """The other way to count: how many parameter directions leave all moments still, to first order."""
    mask, targets = full(3), [1]
    A, b, d = system(seed, mask)
    for kind in ("shift", "cut"):
        theta = hidden_truth((A, b, d), mask, targets, kind)
        shots = page.experiment(A, b, d, targets, kind)

        def moments(theta):
            A, b, d, sizes = page.unpack(theta, mask, shots)
            out = []
            for shot, size in zip(shots, sizes):
                mean, cov = page.stationary(*page.intervene(A, b, shot.target, shot.kind, size), d)
                out += [mean, cov[np.triu_indices(3)]]
            return np.concatenate(out)

        J = np.array([(moments(theta + 1e-6 * e) - moments(theta - 1e-6 * e)) / 2e-6
                      for e in np.eye(len(theta))]).T
        values = np.linalg.svd(J / np.linalg.norm(J, axis=0), compute_uv=False)
        still = J.shape[1] - (values > 1e-7 * values[0]).sum()
        assert still == page.free_directions(mask, shots)


def test_two_components_that_do_not_speak_have_two_clocks():
    components, mask = page.GRAPHS["disconnected"][0], page.wiring(*page.GRAPHS["disconnected"])
    parameters = system(3, mask)
    assert page.free_directions(mask, page.experiment(*parameters, page.first(components))) == 2
    blocks = np.ix_([0, 1], [0, 1])
    A, b, d = (x.copy() for x in parameters)
    A[blocks], b[:2], d[:2] = 2 * A[blocks], 2 * b[:2], 2 * d[:2]
    for one, other in zip(page.stationary(A, b, d), page.stationary(*parameters)):
        assert np.allclose(one, other)


# --- samples and estimators --------------------------------------------------------------------------------------------

def test_measured_moments_have_the_law_of_a_sample():
    mean, cov = np.array([1.0, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    rng = np.random.default_rng(0)
    drawn = [page.measure(mean, cov, 50, rng) for _ in range(4000)]
    means, covs = np.array([m for m, _ in drawn]), np.array([c for _, c in drawn])
    assert np.allclose(means.mean(axis=0), mean, atol=0.02) and np.allclose(covs.mean(axis=0), cov, atol=0.03)
    assert np.allclose(np.cov(means.T), cov / 50, atol=4e-3)
    assert covs[:, 0, 0].var() == pytest.approx(2 * 2.0**2 / 49, rel=0.1)
    single = page.measure(np.zeros(1), np.eye(1), 20, rng)
    assert single[0].shape == (1,) and single[1].shape == (1, 1)


@few
@given(seeds, st.sampled_from(["cut", "decay"]))
def test_exact_moments_give_the_exact_system(seed, kind):
    A, b, d = system(seed, page.CHAIN)
    shots = page.experiment(A, b, d, page.TARGETS, kind)
    for fit in (page.joint_fit(page.CHAIN, shots, 0), page.joint_fit(page.EVERY, shots, 0),
                page.recursive_fit(page.PAIRS, page.CHAIN, shots, 0),
                page.recursive_fit(page.PAIRS, page.CHAIN, shots, 0, everything=True)):
        c = fit[2].sum() / d.sum()
        for found, true in zip(fit, (A, b, d)):
            assert np.allclose(found, c * true, atol=1e-5)


def moved(shots, target):
    """The same snapshots, the one of this target replaced by another."""
    return [page.Snapshot(1.5 * shot.mean + 0.1, 1.3 * shot.cov, shot.target, shot.kind)
            if shot.kind != "none" and shot.target == target else shot for shot in shots]


@few
@given(seeds)
def test_the_recursion_uses_two_snapshots_for_each_component_unless_given_everything(seed):
    shots = page.experiment(*system(seed, page.CHAIN), page.TARGETS, "cut", 2000, np.random.default_rng(seed))
    fit = lambda shots, **kwargs: page.recursive_fit(page.PAIRS, page.CHAIN, shots, **kwargs)[0]
    for last, target in ((2, 2), (4, 4)):                # what lies upstream never sees this snapshot
        assert np.allclose(fit(shots)[:last], fit(moved(shots, target))[:last])
        assert not np.allclose(fit(shots)[last:], fit(moved(shots, target))[last:])
    assert not np.allclose(fit(shots, everything=True)[:2], fit(moved(shots, 4), everything=True)[:2])


@few
@given(seeds, st.booleans())
def test_each_component_has_the_clock_it_is_given(seed, own_clock):
    """With exact moments both clocks give one answer, with noise two."""
    A, b, d = system(seed, page.CHAIN)
    shots = page.experiment(A, b, d, page.TARGETS)
    fit = page.recursive_fit(page.PAIRS, page.CHAIN, shots, 0, own_clock=own_clock)
    assert fit[2][:2].sum() == pytest.approx(2) and page.drift_error(A, fit[0]) < 1e-6
    noisy = page.experiment(A, b, d, page.TARGETS, "cut", 2000, np.random.default_rng(seed))
    one, other = (page.recursive_fit(page.PAIRS, page.CHAIN, noisy, own_clock=own)[0] for own in (True, False))
    assert np.allclose(one[:2], other[:2]) and not np.allclose(one[2:], other[2:])


@few
@given(seeds)
def test_the_ridge_shrinks_what_genes_do_to_each_other(seed):
    shots = page.experiment(*system(seed, page.CHAIN), page.TARGETS, "cut", 2000, np.random.default_rng(seed))
    off = ~np.eye(6, dtype=bool)
    for fit in (lambda ridge: page.joint_fit(page.CHAIN, shots, ridge),
                lambda ridge: page.recursive_fit(page.PAIRS[:1], page.CHAIN[:2, :2], [
                    page.Snapshot(s.mean[:2], s.cov[:2, :2], s.target, s.kind) for s in shots[:2]], ridge)):
        A = [fit(ridge)[0] for ridge in (0, 1, 100)]
        size = [np.linalg.norm(a[off[:len(a), :len(a)]]) for a in A]
        assert size[0] > size[1] > size[2] and size[2] < 0.05 and fit(1)[2].sum() == pytest.approx(len(A[0]))


@few
@given(seeds, st.floats(0.1, 100))
def test_the_error_of_a_drift_ignores_its_clock(seed, speed):
    A = system(seed, full(3))[0]
    assert page.drift_error(A, speed * A) < 1e-12
    assert page.drift_error(A, np.zeros((3, 3))) == pytest.approx(1)
    other = np.random.default_rng(seed).normal(size=(3, 3))
    assert page.drift_error(A, other) == pytest.approx(page.drift_error(A, speed * other))


@few
@given(seeds)
def test_the_scaled_fit_does_not_depend_on_units(seed):
    A, b, d = system(seed, page.CHAIN)
    shots = page.experiment(A, b, d, page.TARGETS, "cut", 5000, np.random.default_rng(seed))
    units = np.array([1, 10, 0.1, 5, 2, 0.5])
    changed = [page.Snapshot(shot.mean * units, shot.cov * np.outer(units, units), shot.target, shot.kind)
               for shot in shots]
    M, N = (page.equation_matrix(page.CHAIN, s) for s in (shots, changed))
    i, j = np.nonzero(page.CHAIN)
    columns = np.concatenate([units[i] / units[j], units, units**2, units[list(page.TARGETS)]])
    assert np.allclose(N * columns, M)


def test_labels_by_hand():
    components, mask = ((0,), (1,)), page.wiring(((0,), (1,)), [(0, 1)])
    shots = page.experiment(np.array([[-1.0, 0], [1, -1]]), np.zeros(2), np.ones(2), [1], "cut")
    home, unknowns, equations, source = page.labels(components, mask, shots)
    assert home.tolist() == [0, 1]
    assert unknowns.tolist() == [0, 1, 1, 0, 1, 0, 1, 1]     # A00 A10 A11, b0 b1, d0 d1, the cut
    assert equations.tolist() == 2 * [0, 1, 1, 0, 1]         # (0,0) (0,1) (1,1), means 0 and 1
    assert source.tolist() == 5 * [0] + 5 * [1]


@few
@given(seeds)
def test_random_graphs_have_one_root_and_no_cycle_between_components(seed):
    rng = np.random.default_rng(seed)
    components, mask = page.random_graph(rng, rng.permutation([1, 2, 3]))
    block = np.array([[mask[np.ix_(a, b)].all() for b in components] for a in components])
    assert np.array_equal(block, np.tril(block)) and block.diagonal().all()
    assert all(block[c, :c].any() for c in range(1, 3))


@few
@given(seeds)
def test_what_can_move_is_what_the_count_says(seed):
    parameters = system(seed, full(3))
    movable, count = page.movable(full(3), parameters, [], "cut")
    assert count == 6 and movable.all()
    movable, count = page.movable(full(3), parameters, [0], "cut")
    assert count == 1 and not movable.any()


MUTANTS = {
    "stationary": {
        "never refuses": '''def stationary(A, b, d):
    return -np.linalg.solve(A, b), covariance(A, d)
''',
        "looks at the diagonal": '''def stationary(A, b, d):
    if np.diag(A).max() >= 0:
        raise ValueError("unstable")
    return -np.linalg.solve(A, b), covariance(A, d)
''',
        "calls complex eigenvalues unstable": '''def stationary(A, b, d):
    values = np.linalg.eigvals(A)
    if values.real.max() >= 0 or abs(values.imag).max() > 0:
        raise ValueError("unstable")
    return -np.linalg.solve(A, b), covariance(A, d)
''',
        "looks at the symmetric part": '''def stationary(A, b, d):
    if np.linalg.eigvalsh(A + A.T).max() >= 0:
        raise ValueError("unstable")
    return -np.linalg.solve(A, b), covariance(A, d)
''',
        "treats genes one by one": '''def stationary(A, b, d):
    if np.linalg.eigvals(A).real.max() >= 0:
        raise ValueError("unstable")
    return -b / np.diag(A), -np.diag(d / np.diag(A) / 2)
''',
        "transposes": '''def stationary(A, b, d):
    if np.linalg.eigvals(A).real.max() >= 0:
        raise ValueError("unstable")
    return -np.linalg.solve(A.T, b), covariance(A.T, d)
'''},
    "counts": {
        "counts the ratios that are known": '''answer_single, answer_shift, answer_apart = 2, 11, 2
answer_true, answer_regression, answer_right = 0.0, -1.0, "c"
''',
        "forgets the clock": '''answer_single, answer_shift, answer_apart = 1, 10, 2
answer_true, answer_regression, answer_right = 0.0, -1.0, "c"
''',
        "one clock for all": '''answer_single, answer_shift, answer_apart = 1, 11, 1
answer_true, answer_regression, answer_right = 0.0, -1.0, "c"
''',
        "believes regression": '''answer_single, answer_shift, answer_apart = 1, 11, 2
answer_true, answer_regression, answer_right = -1.0, -1.0, "c"
''',
        "regresses the wrong way": '''answer_single, answer_shift, answer_apart = 1, 11, 2
answer_true, answer_regression, answer_right = 0.0, -1.5, "c"
''',
        "trusts triangles": '''answer_single, answer_shift, answer_apart = 1, 11, 2
answer_true, answer_regression, answer_right = 0.0, -1.0, "b"
'''},
    "equations": {
        "doubles one half": '''def equations(cov, target=None):
    n, columns = len(cov), []
    for unknown in np.eye(n * n + n):
        A = unknown[:n * n].reshape(n, n)
        A = A if target is None else cut(A, target)
        columns.append((2 * A @ cov + np.diag(unknown[n * n:]))[np.triu_indices(n)])
    return np.array(columns).T
''',
        "ignores the cut": '''def equations(cov, target=None):
    n, columns = len(cov), []
    for unknown in np.eye(n * n + n):
        A = unknown[:n * n].reshape(n, n)
        columns.append((A @ cov + cov @ A.T + np.diag(unknown[n * n:]))[np.triu_indices(n)])
    return np.array(columns).T
''',
        "cuts the outputs": '''def equations(cov, target=None):
    n, columns = len(cov), []
    for unknown in np.eye(n * n + n):
        A = unknown[:n * n].reshape(n, n)
        A = A if target is None else cut(A.T, target).T
        columns.append((A @ cov + cov @ A.T + np.diag(unknown[n * n:]))[np.triu_indices(n)])
    return np.array(columns).T
''',
        "takes the lower triangle": '''def equations(cov, target=None):
    n, columns = len(cov), []
    for unknown in np.eye(n * n + n):
        A = unknown[:n * n].reshape(n, n)
        A = A if target is None else cut(A, target)
        columns.append((A @ cov + cov @ A.T + np.diag(unknown[n * n:]))[np.tril_indices(n)])
    return np.array(columns).T
''',
        "cuts the self-decay too": '''def equations(cov, target=None):
    n, columns = len(cov), []
    for unknown in np.eye(n * n + n):
        A = unknown[:n * n].reshape(n, n).copy()
        if target is not None:
            A[target] = 0
        columns.append((A @ cov + cov @ A.T + np.diag(unknown[n * n:]))[np.triu_indices(n)])
    return np.array(columns).T
''',
        "stores A by columns": '''def equations(cov, target=None):
    n, columns = len(cov), []
    for unknown in np.eye(n * n + n):
        A = unknown[:n * n].reshape(n, n).T
        A = A if target is None else cut(A, target)
        columns.append((A @ cov + cov @ A.T + np.diag(unknown[n * n:]))[np.triu_indices(n)])
    return np.array(columns).T
'''},
    "estimate": {
        "leaves the length at one": '''def estimate(matrices):
    theta = np.linalg.svd(np.vstack(matrices))[2][-1]
    n = int(np.sqrt(len(theta)))
    theta = theta * np.sign(theta[-1])
    return theta[:n * n].reshape(n, n), theta[n * n:]
''',
        "uses two snapshots only": '''def estimate(matrices):
    theta = np.linalg.svd(np.vstack(matrices[:2]))[2][-1]
    n = int(np.sqrt(len(theta)))
    theta = theta * n / theta[n * n:].sum()
    return theta[:n * n].reshape(n, n), theta[n * n:]
''',
        "ordinary least squares": '''def estimate(matrices):
    M = np.vstack(matrices)
    n = int(np.sqrt(M.shape[1]))
    clock = np.r_[np.zeros(n * n), 1e4 * np.ones(n)]
    theta = np.linalg.lstsq(np.vstack([M, clock]), np.r_[np.zeros(len(M)), 1e4 * n], rcond=None)[0]
    return theta[:n * n].reshape(n, n), theta[n * n:]
''',
        "fixes a noise to one": '''def estimate(matrices):
    theta = np.linalg.svd(np.vstack(matrices))[2][-1]
    n = int(np.sqrt(len(theta)))
    theta = theta / theta[-1]
    return theta[:n * n].reshape(n, n), theta[n * n:]
'''},
    "gain": {
        "thinks identified is identified": '''answer_gain = "a"
''',
        "thinks more data confuse": '''answer_gain = "c"
'''},
}
