"""
What ``network=None`` chooses
=============================

By default the data choose the network. Narrow data are tried with an energy first. Wide data are
given to several kinds of networks, which race for a few steps, and rows that were held back say
which of them go on.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import neurise
from neurise.modeling.kinds import candidates

plt.style.use("neurise.look")
rng = np.random.default_rng(0)
sites, stay = 210, 0.85
kept = np.where(rng.random((500, sites)) < stay, 1, -1)
kept[:, 0] = rng.choice([-1, 1], 500)
rows = np.cumprod(kept, axis=1)  # spins that mostly agree with the one before
model = neurise.NeurISE().fit(rows, max_steps=100, seed=0, verbose=False)
print(model.race_.told())

# %%
# Left: which networks may compete, by the number of sites that vary and of rows, on a machine
# without a GPU; the dot is this data set. Right: the race. Neighbours alone matter here, which
# suits ``sparse``: it is already at the entropy of the truth, the best that any model can reach.

wide, many = np.geomspace(10, 2000, 120), np.geomspace(100, 50_000, 120)
kinds = [("site_mlp",), ("site_mlp", "sparse"), ("masked", "sparse")]
table = np.array([[kinds.index(candidates(int(n), int(q), (), gpu=False).kinds) for q in wide] for n in many])
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), width_ratios=(3, 2))
left.pcolormesh(wide, many, table, cmap=ListedColormap(["#dfe9f2", "#f6dfc9", "#d5ecdf"]))
left.plot(sites, len(rows), "o", color="0.1")
for place, kind in zip(((40, 2000), (700, 400), (500, 20_000)), kinds, strict=True):
    left.text(*place, "\n".join(kind), ha="center", va="center")
left.set(xscale="log", yscale="log", xlabel="sites that vary", ylabel="rows")
entropy = np.log(2) - (sites - 1) * (stay * np.log(stay) + (1 - stay) * np.log(1 - stay))
scores = model.race_.scores
right.bar(list(scores), list(scores.values()), color=["C6", "C0"], width=0.6)
right.axhline(entropy, color="0.2", linestyle="--", linewidth=1)
right.text(1, entropy + 2, "entropy\nof the truth", ha="center", va="bottom", fontsize=8)
right.set(ylabel="nats per held-back row")
plt.show()

assert min(scores, key=scores.get) == "sparse"
assert -model.score(rows) < 1.05 * entropy
