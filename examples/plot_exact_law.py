"""
The exact law against samples
=============================

A 4 × 4 spin glass has 65,536 configurations, few enough to write all probabilities down. The law
of what a model draws is then known exactly, without drawing anything, and can be laid beside the
truth. Here the model learnt from 1,000 rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
data = neurise.datasets.edwards_anderson(side=4, seed=3, J=0.6)
rows = data.sample(1000, seed=0)
model = neurise.NeurISE().fit(rows, seed=0, verbose=False)

# %%
# Left: every dot is a configuration, true probability against learnt probability. Right: the
# probabilities of the 1,000 likeliest configurations. The model lies on the truth; the rows, most
# of which were seen once or never, are far from it.

learnt = neurise.exact.law(model).numpy()
seen = neurise.exact.law(neurise.Memorize().fit(rows)).numpy()
order = np.argsort(-data.pmf)
likely = order[:1000]

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.3))
chosen = np.random.default_rng(0).choice(len(order), 4000, replace=False)
left.loglog(data.pmf[chosen], learnt[chosen], ".", markersize=2, alpha=0.5)
left.axline((1e-7, 1e-7), (1e-2, 1e-2), color="0.3", linewidth=1)
left.set(xlabel="true probability", ylabel="learnt probability", title="all kinds of configurations")
right.semilogy(seen[likely], ".", color="C4", markersize=3, label="share of the 1,000 rows")
right.semilogy(learnt[likely], ".", color="C0", markersize=2, label="learnt law")
right.semilogy(data.pmf[likely], color="0.2", label="truth")
right.set(xlabel="configurations, likeliest first", title="the likeliest configurations")
right.legend()
plt.show()

# %%
# The total variation distance sums this up. No sampling is involved, so the first number has no
# statistical error.

error = float(neurise.metrics.total_variation(learnt, data.pmf))
memorised = float(neurise.metrics.total_variation(seen, data.pmf))
print(f"total variation: {error:.3f} of the model, {memorised:.3f} of the rows that it learnt from")
assert error < 0.5 * memorised
