"""Networks f(t, u, x with hidden sites, y) → one logit a state.

All of them take ``(t, u, x, hidden, y)``: u is always explicit, ``x`` is (..., sites) tokens, ``hidden`` marks the sites
that the network must not look at (site u is always hidden), and t, u and y broadcast against x's leading axes. A hidden
site is an all-zero one-hot, so the first layer stays linear in the one-hot of x.
"""
