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
sizes = [400, 1000, 2500, 6000]
models = {
    "independent sites": neurise.Independent(),
    "memorising the rows": neurise.Memorize(),
    "NeurISE": neurise.NeurISE(architecture=neurise.Architecture(counts=False)),
}

errors = {name: [] for name in models}
for size in sizes:
    rows = data.sample(size, seed=0)
    for name, model in models.items():
        model.fit(rows, seed=0, verbose=False)
        error = neurise.metrics.total_variation(neurise.exact.law(model), data.pmf)
        errors[name].append(float(error))

# %%
# The dashed line is what maximum likelihood reaches on average if the graph of the spin glass is
# known. NeurISE does not know it, and comes close to the line, because it finds by itself that a
# pairwise energy explains the rows. Memorising falls with the same slope, 1/√N, from higher up. A
# model of independent sites stops learning at once: it cannot express what sites share. There is
# one draw of the rows per size, so a point may lie a little below the average.

family = neurise.theory.pairs_family(data.space.sites, data.edges)
limit = neurise.theory.likelihood_limit(data.pmf, family)

figure, panel = plt.subplots(figsize=(6, 3.6))
for (name, found), marker in zip(errors.items(), "^so", strict=True):
    panel.plot(sizes, found, marker=marker, markersize=5, label=name)
panel.plot(sizes, [limit.tv(size) for size in sizes], "--", color="0.3", label="limit, graph known")
panel.set(xscale="log", yscale="log", xlabel="rows", ylabel="total variation distance")
panel.set_xticks(sizes, sizes)
panel.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"])
panel.minorticks_off()
panel.legend(loc="center right", bbox_to_anchor=(1, 0.75))
plt.show()

ratios = np.array(errors["memorising the rows"]) / errors["NeurISE"]
print("memorising errs", ", ".join(f"{ratio:.1f}" for ratio in ratios), "times as much")
assert (ratios > 1).all()
