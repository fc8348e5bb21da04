"""Property tests of the functions on the page of low-regret-robustification."""
import itertools

import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings, strategies as st

page = press.definitions("low-regret-robustification")
few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)
probabilities = st.floats(0, 1)


def every(T):
    return (np.arange(2 ** T)[:, None] >> np.arange(T)) & 1


# --- the game -----------------------------------------------------------------------------------------------------------

@few
@given(probabilities, st.integers(1, 5000))
def test_soft_response_is_symmetric_and_at_most_the_theory_away_from_the_best(p, T):
    q = float(page.qbr(p, T))
    assert 0 <= q <= 1 and q == pytest.approx(1 - page.qbr(1 - p, T), abs=1e-9)
    lost = max(p, 1 - p) - (p * q + (1 - p) * (1 - q))  # eta ln 2, which the proof of the distance relies on
    assert -1e-12 <= lost <= np.log(2) / np.sqrt(T)


def test_soft_response_by_hand_and_refused():
    assert page.qbr(0.5, 64) == 0.5 and page.qbr(1 / 3, 64) == pytest.approx(1 / (1 + np.exp(8 / 3)))
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            page.qbr(p, 4)


@few
@given(seeds, st.integers(1, 12))
def test_regret_is_subadditive_over_segments(seed, cut):
    rng = np.random.default_rng(seed)
    theta, pi = (rng.random(13) < 0.5).astype(int), rng.random(13)
    whole = page.regret_path(theta, pi)[-1]
    assert whole <= page.regret_path(theta[:cut], pi[:cut])[-1] + page.regret_path(theta[cut:], pi[cut:])[-1] + 1e-12


def test_regret_by_hand():
    assert page.regret_path(np.array([1, 1, 0]), np.array([0.5, 1, 1])) == pytest.approx([0.5, 0.5, 0.5])


def test_urn_is_a_distribution_that_treats_orders_alike():
    theta = every(6)
    said = page.urn(theta)[:, :-1]
    p = np.where(theta == 1, said, 1 - said).prod(1)
    for k in range(7):
        at = p[theta.sum(1) == k]
        assert np.ptp(at) < 1e-15 and at.sum() == pytest.approx(1 / 7)


# --- the wire -------------------------------------------------------------------------------------------------------------

@few
@given(seeds, st.floats(0.1, 6), st.integers(2, 24))
def test_robust_model_is_the_base_before_and_a_fresh_urn_after(seed, rho, T):
    rng = np.random.default_rng(seed)
    theta, base = page.mixed_opponents(rng, 5, T), rng.random((5, T + 1))
    robust, switched = page.robustify(theta, base, rho)
    path = page.regret_path(theta, page.qbr(base[:, :-1], T))
    for i in range(5):
        over = np.flatnonzero(path[i] > rho)
        k = over[0] + 1 if len(over) else T + 1
        assert switched[i].tolist() == [t >= k for t in range(T + 1)]
        assert np.array_equal(robust[i, :k], base[i, :k])
        if k <= T:
            assert robust[i, k:] == pytest.approx(page.urn(theta[i:i + 1, k:])[0])


@few
@given(seeds, st.floats(0.5, 4))
def test_regret_guarantee_for_any_base_model(seed, rho):
    T, base = 9, None
    theta = every(T)
    base = np.random.default_rng(seed).random((len(theta), T + 1))  # not even consistent: the guarantee needs nothing
    robust, _ = page.robustify(theta, base, rho)
    regret = page.regret_path(theta, page.qbr(robust[:, :-1], T))[:, -1]
    assert regret.max() <= rho + 1 + page.urn_regret(T).max() + 1e-9


def test_robustify_refuses_predictions_that_do_not_fit():
    with pytest.raises(ValueError, match="4 prefixes"):
        page.robustify(np.zeros((2, 3), int), np.zeros((2, 3)), 1)


@few
@given(st.floats(0.05, 0.95), st.floats(0.3, 4), st.integers(1, 9))
def test_distance_is_the_sum_over_all_sequences(p, rho, T):
    theta = every(T)
    base = np.full((2 ** T, T + 1), p)
    robust, switched = page.robustify(theta, base, rho)
    chance = lambda q: np.where(theta == 1, q[:, :-1], 1 - q[:, :-1]).prod(axis=1)
    tripped, tv = page.distance(p, page.wire(p, T, rho))
    assert tripped == pytest.approx(chance(base)[switched[:, -1]].sum(), abs=1e-12)
    assert tv == pytest.approx(0.5 * np.abs(chance(base) - chance(robust)).sum(), abs=1e-12)
    assert 0 <= tv <= tripped + 1e-12


def test_coin_and_urn_by_hand():
    assert page.coin_urn_tv(0.5, 0) == 0 and page.coin_urn_tv(0.5, 1) == pytest.approx(0)
    assert page.coin_urn_tv(0.5, 2) == pytest.approx(1 / 6)  # 1/4, 1/2, 1/4 against thirds


# --- dynamic programming ---------------------------------------------------------------------------------------------------

@few
@given(seeds, st.integers(1, 8))
def test_dynamic_program_is_the_worst_of_all_sequences(seed, T):
    rng = np.random.default_rng(seed)
    policy, theta = [rng.random(t + 1) for t in range(T)], every(T)
    ones = np.pad(np.cumsum(theta, axis=1), ((0, 0), (1, 0)))
    pi = np.stack([policy[t][ones[:, t]] for t in range(T)], axis=1)
    assert page.worst_regret(policy) == pytest.approx(page.regret_path(theta, pi)[:, -1].max())


def test_known_worst_cases_and_refusals():
    assert page.worst_regret(page.count_rule("FTL", 40)) == 10
    for name in ("Hedge", "counting"):
        assert page.worst_regret(page.count_rule(name, 100)) < 0.2 * 100
    assert page.urn_regret(30)[-1] == pytest.approx(page.worst_regret(page.count_rule("counting", 30)))
    with pytest.raises(ValueError, match="no rule"):
        page.count_rule("Hodge", 4)
    with pytest.raises(ValueError, match="2 entries"):
        page.worst_regret([np.zeros(1), np.zeros(3)])


def test_textbook_bound_of_hedge():
    for T in (4, 16, 64):
        assert page.worst_regret(page.count_rule("Hedge", T)) <= np.sqrt(T * np.log(2) / 2)


@few
@given(st.floats(0.05, 0.95), st.floats(0.3, 4), st.integers(1, 9))
def test_dynamic_program_with_a_wire_is_the_worst_of_all_sequences(p, rho, T):
    theta = every(T)
    robust, _ = page.robustify(theta, np.full((len(theta), T + 1), p), rho)
    worst = page.worst_regret(page.count_rule("coin", T, p), page.wire(p, T, rho), page.urn_regret(T))
    assert worst == pytest.approx(page.regret_path(theta, page.qbr(robust[:, :-1], T))[:, -1].max())
    assert page.robust_coin(p, rho, page.urn_regret(T)) == pytest.approx((worst, *page.distance(p, page.wire(p, T, rho))))


def test_growth_by_hand():
    horizons = np.array([16, 64, 256])
    assert page.growth(np.sqrt(horizons) * np.log2(horizons), horizons) == pytest.approx(1)
    assert page.growth(horizons, horizons) == pytest.approx(2 * 6 / 8)  # linear: the root doubles, the logarithm grows


# --- bounded memory --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("w", range(1, 9))
def test_de_bruijn_visits_every_context_once(w):
    succ, c, seen = page.de_bruijn(w), 0, []
    for _ in range(2 ** w):
        seen.append(c)
        c = (2 * c + succ[c]) % 2 ** w
    assert c == 0 and len(set(seen)) == 2 ** w
    half = 2 ** w // 2
    assert np.all(succ[:half] + succ[half:] == 1)  # two predecessors of a context part


def brute_cycle_regret(q):
    """The largest mean weight of a simple cycle, by enumeration; contexts of two symbols."""
    n, best = len(q), -np.inf
    for a in (0, 1):
        for length in range(1, n + 1):
            for symbols in itertools.product((0, 1), repeat=length):
                for start in range(n):
                    c, total = start, 0.0
                    for s in symbols:
                        total += (a == s) - (q[c] if s else 1 - q[c])
                        c = (2 * c + s) % n
                    if c == start:
                        best = max(best, total / length)
    return best


@settings(max_examples=12, deadline=None)
@given(seeds)
def test_cycle_regret_brackets_enumeration(seed):
    q = np.random.default_rng(seed).random(4)
    low, high = page.cycle_regret(q)
    assert low - 1e-9 <= brute_cycle_regret(q) <= high + 1e-9 and high - low < 1e-3


@settings(max_examples=12, deadline=None)
@given(seeds, st.floats(0.3, 0.9))
def test_linear_program_is_safe_and_cannot_be_beaten_by_mixing(seed, eps):
    rng = np.random.default_rng(seed)
    q0, mu = rng.random(8), rng.dirichlet(np.ones(8))
    cost, q = page.bounded_lp(q0, mu, eps)
    assert np.isfinite(cost) and np.all((q > -1e-9) & (q < 1 + 1e-9))
    assert page.cycle_regret(q)[0] <= eps + 1e-6 and mu @ np.abs(q - q0) == pytest.approx(cost, abs=1e-7)
    mixed = 0.9 * q + 0.1 * q0  # cheaper, so it must not be safe unless the program left slack
    if cost > 1e-3:
        assert page.cycle_regret(mixed)[1] > eps - 1e-3


def test_linear_program_limits():
    q0, mu = page.bounded_model("cycle", 3)
    assert page.bounded_lp(q0, mu, 1.0)[0] == pytest.approx(0, abs=1e-9)
    assert np.isinf(page.bounded_lp(q0, mu, 0.05)[0])
    least, safest = page.bounded_lp(q0, mu)
    assert page.cycle_regret(safest)[0] <= least + 1e-6 and np.isinf(page.bounded_lp(q0, mu, least - 1e-3)[0])
    with pytest.raises(ValueError, match="no model"):
        page.bounded_model("dice", 3)


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 6), st.floats(0.25, 0.49))
def test_the_cycle_pays_at_least_half_minus_epsilon(w, eps):
    assert page.bounded_lp(*page.bounded_model("cycle", w), eps)[0] >= 0.5 - eps - 1e-7


def test_restarted_copies_keep_the_promise_of_one_copy():
    for D in (2, 5, 8):
        table = page.count_rule("Hedge", D)
        q = page.average_restart(table)
        assert q.shape == (2 ** (D - 1),)
        assert page.cycle_regret(q)[0] <= page.worst_regret(table) / D + 1e-9


def test_average_restart_by_hand():
    table = [np.array([0.5]), np.array([0.0, 1.0])]
    assert page.average_restart(table) == pytest.approx([0.25, 0.75])  # half a fresh copy, half one that saw a symbol


def test_attack_is_a_lower_bound():
    for D in (4, 8, 10):
        assert page.sliding_attack(D) <= page.cycle_regret(page.sliding_hedge(D))[1] + 1e-9
    for D in (16, 64, 256):  # and it does not fade with the window
        assert page.sliding_attack(D) > 0.25


@settings(max_examples=8, deadline=None)
@given(st.floats(0.5, 4), st.integers(1, 8))
def test_exact_program_for_the_cycle(rho, T):
    succ, found, theta = page.de_bruijn(2), [], every(T)
    for start in range(4):
        base = []
        for row in theta:
            c, said = start, [succ[start]]
            for s in row:
                c = (2 * c + s) % 4
                said.append(succ[c])
            base.append(said)
        assert np.array_equal(page.cycle_predictions(theta, succ, start), base)
        robust, _ = page.robustify(theta, np.array(base, float), rho)
        found.append(page.regret_path(theta, page.qbr(robust[:, :-1], T))[:, -1].max())
    assert page.robust_cycle_regret(succ, T, rho) == pytest.approx(max(found))


# --- the circuit, and the network --------------------------------------------------------------------------------------------

@few
@given(seeds, st.floats(0.5, 6), st.integers(2, 40))
def test_circuit_is_algorithm_one(seed, rho, T):
    rng = np.random.default_rng(seed)
    theta, base = page.mixed_opponents(rng, 6, T), rng.random((6, T + 1))
    assert page.circuit(theta, base, rho) == pytest.approx(page.robustify(theta, base, rho)[0], abs=1e-6)


@few
@given(seeds)
def test_a_tie_does_not_trip_the_wire_whatever_the_rounding(seed):
    theta = np.zeros((1, 64), int)
    base = np.full((1, 65), 0.0)
    base[0, np.random.default_rng(seed).permutation(16)[:8]] = 1  # eight misses in sixteen rounds: a regret of 8
    for predict in (page.robustify(theta, base, 8)[0], page.circuit(theta, base, 8)):
        assert predict[0, 1:17] == pytest.approx(base[0, 1:17])


def test_circuit_without_a_latch_forgets():
    theta = np.array([[1] * 12 + [0] * 40])  # trips after nine ones, and the zeros bring the regret down again
    base = np.full((1, 53), 1 / 3)
    robust, _ = page.robustify(theta, base, 8)
    off = np.abs(page.circuit(theta, base, 8, latch=False) - robust)[0]
    assert off[:14].max() < 1e-9 and off[-1] > 0.1


def test_attention_is_causal():
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(5, 5)), rng.normal(size=(5, 2))
    before = page.attend(scores, values)
    values[3:] += 9
    assert np.allclose(page.attend(scores, values)[:3], before[:3]) and np.allclose(before[0], page.attend(scores, values)[0])


def test_network_is_causal_and_predicts_after_every_prefix():
    torch.manual_seed(0)
    model, theta = page.untrained(), np.array([[1, 0, 1, 1], [1, 0, 0, 0]])
    logits = page.logits_of(model, theta)
    assert logits.shape == (2, 5, 2)
    assert torch.allclose(logits[0, :3], logits[1, :3], atol=1e-6)
    assert not torch.allclose(logits[0, 3], logits[1, 3], atol=1e-6)


def test_a_network_can_be_distilled():
    torch.manual_seed(0)
    ask = lambda theta: np.full((len(theta), 7), 0.8)
    draw = lambda rng, B: (rng.random((B, 6)) < 0.5).astype(int)
    model = page.distil(page.untrained(d=16), draw, ask, steps=60, batch=16)
    p = page.logits_of(model, draw(np.random.default_rng(1), 20)).softmax(-1)[..., 1]
    assert (p - 0.8).abs().max() < 0.1


def test_adaptive_opponent_shows_what_is_less_likely():
    theta = page.adaptive(lambda th: np.full((len(th), 31), 0.2), 30, np.random.default_rng(0))
    assert np.all(theta[0] == 1) and 0.4 < theta[-1].mean() < 1


# --- plausible wrong answers to the exercises, which the hidden tests must reject --------------------------------------------

ROBUST = '''def robust_predict(seq, p0, rho, T):
    q, counts, score = qbr(p0, T), [0, 0], 0.0
    switched, urn, out = False, [0, 0], [p0]
    for symbol in seq:
        if switched:
            urn[symbol] += 1
        counts[symbol] += 1
        score += q if symbol == 1 else 1 - q
        switched = switched or max(counts) - score > rho
        out.append((urn[1] + 1) / (sum(urn) + 2) if switched else p0)
    return np.array(out)
'''
ANALYSE = "answer_ftl, answer_round, answer_tail, answer_window = {}, {}, '{}', '{}'\n"
BOUND = '''answer_safe = 1.0
def repair_bound(succ, eps):
    n, left, total = len(succ), set(range(len(succ))), 0.0
    while left:
        c, shown = min(left), []
        while c in left:
            left.remove(c)
            shown.append(1 - succ[c])
            c = int(2 * c + shown[-1]) % n
        f = max(np.mean(shown), 1 - np.mean(shown))
        total += len(shown) * max(0.0, f - eps)
    return total / n
'''


def spoil(source, right, wrong):
    assert right in source
    return source.replace(right, wrong)


MUTANTS = {
    "robust": {
        "may switch back": spoil(ROBUST, "switched = switched or max", "switched = max"),
        "the urn is not fresh": spoil(ROBUST, "        if switched:\n            urn", "        if True:\n            urn"),
        "counts the symbol that tripped the wire": spoil(
            spoil(ROBUST, "        if switched:\n            urn[symbol] += 1\n", ""), "        out.append",
            "        if switched:\n            urn[symbol] += 1\n        out.append"),
        "compares with ones only": spoil(ROBUST, "max(counts)", "counts[1]"),
        "trips at equality": spoil(ROBUST, "> rho", ">= rho"),
        "takes the length for the horizon": spoil(ROBUST, "qbr(p0, T)", "qbr(p0, len(seq))"),
        "scores a hard choice": spoil(ROBUST, "q, counts, score = qbr(p0, T)", "q, counts, score = float(p0 > 0.5)"),
        "plays the prediction itself": spoil(ROBUST, "q, counts, score = qbr(p0, T)", "q, counts, score = p0"),
        "forgets the past when the regret is zero": """def robust_predict(seq, p0, rho, T):
    q, regret, switched, urn, out = qbr(p0, T), [0, 0], False, [0, 0], [p0]
    for symbol in seq:
        if switched:
            urn[symbol] += 1
        score = q if symbol == 1 else 1 - q
        regret = [max(0, regret[a] + (a == symbol) - score) for a in (0, 1)]
        switched = switched or max(regret) > rho
        out.append((urn[1] + 1) / (sum(urn) + 2) if switched else p0)
    return np.array(out)
""",
        "compares with the leader of each round": spoil(
            spoil(ROBUST, "counts[symbol] += 1\n", "counts[symbol] += 1\n        best += int(counts[1] >= counts[0]) == symbol\n"),
            "max(counts)", "best").replace("    switched, urn, out", "    best = 0\n    switched, urn, out"),
        "compares with the action the model dislikes": spoil(ROBUST, "max(counts)", "counts[int(p0 <= 0.5)]"),
        "no smoothing": spoil(ROBUST, "(urn[1] + 1) / (sum(urn) + 2)", "urn[1] / max(1, sum(urn))"),
    },
    "analyse": {
        "FTL loses half": ANALYSE.format(50, 21, "c", "b"),
        "rounds down": ANALYSE.format(25, 20, "c", "b"),
        "forgets that each round costs less than a point": ANALYSE.format(25, 22, "c", "b"),
        "thinks every wire is exponentially safe": ANALYSE.format(25, 21, "a", "b"),
        "thinks a fair coin always trips it": ANALYSE.format(25, 21, "d", "b"),
        "blames the rate": ANALYSE.format(25, 21, "c", "a"),
        "trusts long windows": ANALYSE.format(25, 21, "c", "d"),
    },
    "bound": {
        "lets safe loops pay for others": spoil(BOUND, "max(0.0, f - eps)", "(f - eps)"),
        "one half in place of the share": spoil(BOUND, "f = max(np.mean(shown), 1 - np.mean(shown))", "f = 0.5"),
        "share of ones only": spoil(BOUND, "max(np.mean(shown), 1 - np.mean(shown))", "np.mean(shown)"),
        "follows the cycle": spoil(BOUND, "shown.append(1 - succ[c])", "shown.append(succ[c])"),
        "loops count alike": spoil(spoil(BOUND, "len(shown) * max", "max"), "total / n", "total / 2"),
        "known for order 5 only": "answer_safe = 1.0\ndef repair_bound(succ, eps):\n    return 1 - eps if len(succ) == 2 else 0.2625\n",
        "safe at the level of a random guess": spoil(BOUND, "answer_safe = 1.0", "answer_safe = 0.5"),
    },
}
