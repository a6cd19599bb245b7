"""
Learning curves
===============

How much better does a model get with more rows? The law of this 3 × 3 spin glass is known, so the
error of every model is its exact distance from the truth, and the question has a definite answer.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
data = neurise.datasets.edwards_anderson(side=3, seed=1, J=0.6)
sizes = [50, 200, 800, 3200]
models = {
    "NeurISE": neurise.NeurISE(),
    "Pairwise": neurise.Pairwise(),
    "memorising the rows": neurise.Memorize(),
    "independent sites": neurise.Independent(),
}

# %%
# Each point is the mean over three draws of the rows. ``NeurISE()`` finds by itself that a pairwise
# energy explains these rows. Memorising falls with the same slope, 1/√N, but from much higher up;
# a model of independent sites stops learning at once, because it cannot express what sites share.

errors = {name: np.zeros((len(sizes), 3)) for name in models}
for i, size in enumerate(sizes):
    for seed in range(3):
        rows = data.sample(size, seed=seed)
        for name, model in models.items():
            model.fit(rows, seed=seed, verbose=False)
            errors[name][i, seed] = neurise.metrics.total_variation(neurise.exact.law(model), data.pmf)

figure, panel = plt.subplots(figsize=(6, 3.6))
for name, marker in zip(models, "osD^", strict=True):
    mean, low, high = errors[name].mean(1), errors[name].min(1), errors[name].max(1)
    panel.plot(sizes, mean, marker=marker, markersize=5, label=name)
    panel.fill_between(sizes, low, high, alpha=0.15, linewidth=0)
panel.set(xscale="log", yscale="log", xlabel="rows", ylabel="total variation distance from the truth")
panel.set_xticks(sizes, sizes)
panel.minorticks_off()
panel.legend()
plt.show()

# %%
# In rows: NeurISE needs a fraction of the rows that memorising needs for the same error.

for name, found in errors.items():
    print(f"{name:20}", "  ".join(f"{error:.3f}" for error in found.mean(1)))
assert (errors["NeurISE"].mean(1) < errors["memorising the rows"].mean(1)).all()
