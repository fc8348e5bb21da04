"""Property tests of the functions on the page of jacobi-forcing, and wrong answers that its exercises must reject."""
import numpy as np
import press
import pytest
import torch
from hypothesis import given, settings, strategies as st

page = press.definitions("jacobi-forcing")
LENGTH = 16  # of an answer with three symbols
torch.set_num_threads(1)  # small tensors: a second thread would wait for the first

#: the right decoder, from which some wrong ones are made
DECODE = '''def decode(predict, first, length, n, blocks=1):
    done, draft, passes = [], [first], 0
    while len(done) < length:
        end = min((len(done) // n + blocks) * n, length)
        draft = (draft + [0] * (length + blocks * n))[: end - len(done)]
        g = predict(done + draft)[len(done):]
        a = 1
        while a < len(draft) and draft[a] == g[a - 1]:
            a += 1
        done, draft, passes = done + draft[:a], g[a - 1:], passes + 1
    return done[:length], passes'''

#: solution cell -> {what is wrong: the wrong answer}
MUTANTS = {
    "accept": {
        "forgets that the first token is right": '''def accept(q, g):
    a = int((q[1:] == g[:-1]).int().cumprod(0).sum())
    return a, g[a:-1]''',
        "counts agreement after the first error": '''def accept(q, g):
    a = 1 + int((q[1:] == g[:-1]).sum())
    return a, g[a - 1:-1]''',
        "gives the last prediction to this block": '''def accept(q, g):
    a = 1 + int((q[1:] == g[:-1]).int().cumprod(0).sum())
    return a, g[a - 1:] if len(q) == a else g[a - 1:-1]''',
    },
    "schedule": {
        "takes the settled share for the noise": "state = 3\nratio = 7 / 16\npacked_length = 74",
        "packs every block once": "state = 3\nratio = 9 / 16\npacked_length = 42",
        "counts the states from 0": "state = 2\nratio = 9 / 16\npacked_length = 74",
        "takes the nearest from below": "state = 4\nratio = 4 / 16\npacked_length = 74",
    },
    "depth": {
        "counts a known parent as a delay": '''def passes_needed(parents):
    depth = [1]
    for before in parents[1:]:
        depth.append(1 + max((depth[j] for j in before), default=0))
    return max(depth) + 1''',
        "forgets the last look": '''def passes_needed(parents):
    depth = [0]
    for before in parents[1:]:
        depth.append(1 + max((depth[j] for j in before), default=0))
    return max(max(depth), 1) if max(depth) < 2 else max(depth)''',
        "looks at the nearest parent alone": '''def passes_needed(parents):
    depth = [0]
    for before in parents[1:]:
        depth.append(1 + (depth[max(before)] if before else 0))
    return max(depth) + 1''',
        "measures the longest run of neighbours": '''def passes_needed(parents):
    best = run = 0
    for i, before in enumerate(parents):
        run = run + 1 if i and i - 1 in before else min(i, 1)
        best = max(best, run)
    return best + 1''',
        "looks at the first parent alone": '''def passes_needed(parents):
    depth = [0]
    for before in parents[1:]:
        depth.append(1 + (depth[before[0]] if before else 0))
    return max(depth) + 1''',
    },
    "decode": {
        "commits one token a pass": '''def decode(predict, first, length, n, blocks=1):
    tokens = [first]
    for passes in range(1, length + 1):
        tokens.append(predict(tokens)[-1])
    return tokens[:length], passes''',
        "throws the unverified predictions away": '''def decode(predict, first, length, n, blocks=1):
    done, draft, passes = [], [first], 0
    while len(done) < length:
        end = min((len(done) // n + blocks) * n, length)
        draft = (draft + [0] * length)[: end - len(done)]
        g = predict(done + draft)[len(done):]
        a = 1
        while a < len(draft) and draft[a] == g[a - 1]:
            a += 1
        inside = min(a, n - len(done) % n)
        done, draft, passes = done + draft[:inside], g[inside - 1:][: 1 + n - inside], passes + 1
    return done, passes''',
        "drafts beyond the answer": DECODE.replace(", length)\n        draft", "\n        draft").replace("min((len", "(len"),
        "guesses another token than 0": DECODE.replace("[0] *", "[5] *"),
        "drafts beyond the block": '''def decode(predict, first, length, n, blocks=1):
    done, draft, passes = [], [first], 0
    while len(done) < length:
        draft = (draft + [0] * length)[: min(blocks * n, length - len(done))]
        g = predict(done + draft)[len(done):]
        a = 1
        while a < len(draft) and draft[a] == g[a - 1]:
            a += 1
        done, draft, passes = done + draft[:a], g[a - 1:], passes + 1
    return done, passes''',
    },
}


def model_and_prompts(seed, count=3):
    """A small model with random weights: as unsure of itself as a model can be, so drafts are often wrong."""
    torch.manual_seed(seed)
    prompt, answer = page.programs(count, 3, page.rng(seed))
    return page.new_model(d=16, heads=2).double(), prompt, answer


def test_a_program_worked_out_by_hand():
    x = torch.tensor([[0, 1, 15]])
    op = lambda name: torch.tensor([name])
    assert page.apply_op(op(page.COPY), x).tolist() == [[0, 1, 15]]
    assert page.apply_op(op(page.REVERSE), x).tolist() == [[15, 1, 0]]
    assert page.apply_op(op(page.PLUS_ONE), x).tolist() == [[1, 2, 0]]
    assert page.apply_op(op(page.ROTATE), x).tolist() == [[1, 15, 0]]
    text = "".join(page.NAMES[t] for t in page.as_list(x)[0])
    assert text == "[a,b,p]"


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 99))
def test_programs_have_their_shapes_and_are_reproducible(count, items, seed):
    prompt, answer = page.programs(count, items, page.rng(seed))
    assert prompt.shape == (count, items + 3) and answer.shape == (count, 4 * items + 4)
    again, _ = page.programs(count, items, page.rng(seed))
    assert torch.equal(prompt, again)
    assert (answer[:, -1] == page.END).all() and (answer < page.MASK).all()


def test_iteration_of_a_chain_is_a_staircase_and_of_a_copy_a_jump():
    chain = page.iterate(page.neighbour_plus_one, [3] + [0] * 7)
    assert len(chain) == 8 and chain[-1] == [3, 4, 5, 6, 7, 8, 9, 0]
    assert len(page.iterate(page.copy_prompt, [3] + [0] * 7)) == 2


@settings(max_examples=9, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1, 2, 4, 8, 16]))
def test_jacobi_is_greedy_decoding_in_at_most_n_passes_a_block(seed, n):
    model, prompt, _ = model_and_prompts(seed)
    answer, passes, blocks = page.jacobi(model, prompt, LENGTH, n, page.rng(seed))
    assert torch.equal(answer, page.greedy(model, prompt, LENGTH))
    assert (passes <= LENGTH).all() and (passes >= LENGTH // n).all()
    for states in blocks:  # a right prefix never shrinks, and grows until all is right
        f = page.first_wrong(states, states[:, -1:])
        assert (f.diff(dim=1) >= 0).all() and (f[:, 0] >= 1).all() and (f[:, -1] == n).all()


@settings(max_examples=9, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1, 2, 4, 8]), st.sampled_from([None, 0.1, 0.5, 0.85, 1.0]),
       st.integers(0, 4), st.booleans())
def test_serving_is_greedy_decoding_whatever_the_extras(seed, n, r, pool_size, across):
    model, prompt, _ = model_and_prompts(seed, count=1)
    answer, trace = page.serve(model, prompt, LENGTH, n, page.rng(seed), r=r, pool_size=pool_size, across=across)
    assert torch.equal(answer, page.greedy(model, prompt, LENGTH)[0])
    assert len(trace) <= LENGTH and all(len(tokens) <= LENGTH for tokens in trace)


def test_serving_with_blocks_of_one_token_or_one_token_kept_takes_a_pass_for_each_token():
    model, prompt, _ = model_and_prompts(5, count=1)
    assert len(page.serve(model, prompt, LENGTH, 1, page.rng(0))[1]) == LENGTH
    assert len(page.serve(model, prompt, LENGTH, 4, page.rng(0), most=1)[1]) == LENGTH


def test_the_cache_changes_nothing():
    model, prompt, answer = model_and_prompts(2)
    tokens = torch.cat([prompt, answer], 1)
    whole, _ = page.extend(model, tokens)
    _, cache = page.extend(model, tokens[:, :9])
    rest, grown = page.extend(model, tokens[:, 9:], cache)
    assert torch.allclose(whole[:, 9:], rest) and grown[0][0].shape[2] == tokens.shape[1]


def test_a_causal_model_does_not_look_ahead():
    model, prompt, answer = model_and_prompts(3)
    before, _ = page.extend(model, answer)
    changed = answer.clone()
    changed[:, 7:] = page.COMMA
    after, _ = page.extend(model, changed)
    assert torch.allclose(before[:, :7], after[:, :7])


def test_noise_ratio_by_hand():
    clean = torch.tensor([1, 2, 3, 4])
    states = torch.tensor([[1, 9, 3, 4], [1, 2, 3, 9], [1, 2, 3, 4], [9, 2, 3, 4]])
    assert page.first_wrong(states, clean).tolist() == [1, 3, 4, 0]
    assert page.noise_ratio(states, clean).tolist() == [0.75, 0.25, 0.0, 1.0]


def test_targets_rise_in_every_window_and_start_again():
    assert page.targets(8, 4).tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1] * 2)
    assert page.targets(3, 2, offset=1).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="at least 2"):
        page.targets(4, 1)


@given(st.integers(0, 99), st.integers(2, 5))
def test_the_schedule_takes_the_nearest_state_and_chance_an_open_one(seed, window):
    ratios = torch.tensor([0.875, 0.5, 0.25, 0.0]).expand(2, 6, 4)
    k = page.pick_states(ratios, "progressive", window, page.rng(seed))
    offset = torch.randint(window, (2, 1), generator=page.rng(seed))
    t = page.targets(6, window, offset)
    taken = ratios.gather(2, k[..., None])[..., 0]
    assert ((taken - t).abs() <= (ratios - t[..., None]).abs().min(-1).values + 1e-6).all()
    assert (page.pick_states(ratios, "random", window, page.rng(seed)) < 3).all()


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.sampled_from(["clean", "noisy", "windowed"]), st.integers(1, 4))
def test_the_mask_keeps_its_promises(P, N, n, context, window):
    block, noisy, position = page.layout(P, N, n)
    mask = page.packed_mask(P, N, n, context, window)
    assert mask.shape == (P + 2 * N * n,) * 2
    assert not (mask & (position[None] > position[:, None])).any(), "nobody looks ahead"
    assert not (mask & ~noisy[:, None] & noisy[None]).any(), "clean copies never look at noise"
    own_clean = noisy[:, None] & ~noisy[None] & (block[:, None] == block[None])
    assert not (mask & own_clean).any(), "no noisy copy sees its own solution"
    # everyone sees each earlier position exactly once, in one copy or the other
    seen = torch.stack([mask[:, position == p].sum(1) for p in range(P + N * n)], 1)
    assert torch.equal(seen, (torch.arange(P + N * n) <= position[:, None]).long())


def test_an_unknown_context_is_refused_and_both_copies_share_positions():
    with pytest.raises(ValueError, match="no context 'dirty'"):
        page.packed_mask(3, 2, 2, "dirty")
    _, noisy, position = page.layout(3, 2, 2)
    assert position.tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6] and noisy.tolist()[3:] == [True] * 2 + [False] * 2 + [True] * 2 + [False] * 2


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 999), st.sampled_from(["clean", "noisy", "windowed"]))
def test_clean_copies_get_the_logits_they_would_get_alone(seed, context):
    model, prompt, answer = model_and_prompts(seed)
    clean = answer.view(3, 4, 4)
    noisy = torch.randint(page.SYMBOLS, clean.shape, generator=page.rng(seed))
    _, is_noisy, position = page.layout(6, 4, 4)
    packed, _ = model(page.pack(prompt, noisy, clean), position, page.packed_mask(6, 4, 4, context))
    alone, _ = page.extend(model, torch.cat([prompt, answer], 1))
    assert torch.allclose(packed[:, ~is_noisy], alone)


def test_losses_without_noise():
    """With noisy = clean nothing counts for consistency, and the AR loss is next-token prediction."""
    model, prompt, answer = model_and_prompts(7)
    clean = answer.view(3, 4, 4)
    ar, consistency = page.jf_losses(model, prompt, clean, clean, "noisy")
    assert consistency.item() == 0
    assert ar.item() == pytest.approx(page.next_token_loss(model, prompt, answer).item())


def test_the_clean_side_teaches_and_does_not_learn():
    """The consistency loss has no gradient for a token that occurs in clean copies alone."""
    model, prompt, answer = model_and_prompts(8)
    clean = torch.full((3, 2, 4), page.SEMICOLON)
    noisy = torch.full((3, 2, 4), page.COMMA)
    _, consistency = page.jf_losses(model, prompt, noisy, clean, "noisy")
    consistency.backward()
    gradient = model.token.weight.grad
    assert consistency.item() > 0
    assert gradient[page.SEMICOLON].abs().max() == 0 and gradient[page.COMMA].abs().max() > 0


def test_trajectories_end_in_the_greedy_answer():
    model, prompt, _ = model_and_prompts(9)
    data = page.collect(model, prompt, LENGTH, 4, page.rng(0))
    assert torch.equal(data.clean.flatten(1), page.greedy(model, prompt, LENGTH))
    assert data.states.shape[:2] == (3, 4) and data.states.shape[3] == 4


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 99), st.booleans(), st.sampled_from([0.0, 0.5, 1.1]))
def test_unmasking_writes_everything_within_its_passes(seed, shifted, threshold):
    model, prompt, _ = model_and_prompts(seed)
    answer, passes = page.unmask(model, prompt, LENGTH, 4, threshold, shifted)
    assert answer.shape == (3, LENGTH) and (answer != page.MASK).all()
    least, most = (4, 4) if threshold == 0 else (16, 16) if threshold > 1 else (4, 16)
    assert (passes >= least).all() and (passes <= most).all()


def test_the_shifted_dllm_starts_each_block_like_the_ar_model():
    model, prompt, _ = model_and_prompts(4)
    answer, _ = page.unmask(model, prompt, 4, 1, 1.1, shifted=True)
    assert torch.equal(answer, page.greedy(model, prompt, 4))  # blocks of one token are AR decoding


def test_accept_and_candidates_by_hand():
    rows, g = torch.tensor([[5, 2, 7, 1], [5, 9, 7, 4]]), torch.tensor([[2, 7, 4, 9], [2, 7, 4, 9]])
    assert page.accept(rows, g).tolist() == [3, 1]
    rows = page.candidates([5, 0, 0, 0], [[1, 2], [8, 5, 6, 7], [5]])
    assert rows.tolist() == [[5, 0, 0, 0], [5, 6, 7, 0], [5, 0, 0, 0]]


def test_exact_match_counts_whole_answers():
    truth = torch.tensor([[1, 2], [3, 4]])
    assert page.exact_match(torch.tensor([[1, 2], [3, 9]]), truth) == 0.5


def test_margin_by_hand():
    model, ordinary = dict(tpf={8: 2.8, 16: 4.0}), dict(tpf={8: 1.0, 16: 2.0})
    assert page.margin(model, ordinary, [8, 16]) == pytest.approx(1.25)
    assert np.isfinite(page.margin(ordinary, ordinary, [8, 16]))
