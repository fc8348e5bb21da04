"""The model that several chapters train: a small causal transformer, in plain PyTorch."""
from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Block(nn.Module):
    """One pre-norm layer: attention, then an MLP that is ``widen`` times as wide, both with a residual path."""

    def __init__(self, d: int, heads: int, widen: int = 4, activation: type[nn.Module] = nn.GELU):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, widen * d), activation(), nn.Linear(widen * d, d))

    def forward(self, h, mask=None, past=None):
        """h (B, T, d) -> h (B, T, d) and the keys and values (B, heads, cached + T, d / heads).

        mask: (T, cached + T), true where a token may look; without one, at itself and what is before it.
        past: keys and values of ``cached`` earlier tokens; needs a mask.
        """
        B, T, d = h.shape
        q, k, v = self.qkv(self.norm1(h)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        h = h + self.out(mixed.transpose(1, 2).reshape(B, T, d))
        return h + self.mlp(self.norm2(h)), (k, v)


class TinyLM(nn.Module):
    """A causal transformer over ``vocab`` tokens with learned positions below ``longest``."""

    def __init__(self, vocab: int, d: int = 64, heads: int = 4, layers: int = 2, longest: int = 128, widen: int = 4,
                 activation: type[nn.Module] = nn.GELU):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, d), nn.Embedding(longest, d)
        self.blocks = nn.ModuleList(Block(d, heads, widen, activation) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, tokens, positions=None, mask=None, cache=None):
        """tokens (B, T) -> logits (B, T, vocab) and the cache, which a later call can continue.

        positions: (T,), from 0 without them; mask: as in :class:`Block`; cache: what an earlier call returned.
        """
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
        h, grown = self.token(tokens) + self.position(positions), []
        for i, block in enumerate(self.blocks):
            h, keys_values = block(h, mask, cache and cache[i])
            grown.append(keys_values)
        return self.head(self.norm(h)), grown
