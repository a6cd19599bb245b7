"""
Committees
==========

Networks that learn from few rows learn some of them by heart, each in its own way. A committee
takes the geometric mean of what its members say, and what they do not agree on averages out.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
data = neurise.datasets.edwards_anderson(side=4, seed=3, J=0.6)
rows = data.sample(1000, seed=0)
plain = neurise.Architecture(pairwise=False)


def error_of(model):
    """Return the exact distance of a model's law from the truth."""
    return float(neurise.metrics.total_variation(neurise.exact.law(model), data.pmf))


# %%
# Eight single networks, which differ in their seeds alone, are trained as one batched computation.
# Committees of two, four and eight networks learn from the same rows.

single = neurise.NeurISE(width=48, steps=200, members=1, architecture=plain)
alone = [error_of(model) for model in neurise.fit_many(single, rows, seeds=range(8), verbose=False)]
together = {}
for members in (2, 4, 8):
    model = neurise.NeurISE(width=48, steps=200, members=members, architecture=plain)
    together[members] = error_of(model.fit(rows, seed=0, verbose=False))

# %%
# A committee is better than its average member, and more members help, with less and less gain.
# Sampling from it takes as many network evaluations per step as there are members.

figure, panel = plt.subplots(figsize=(5, 3.4))
spread = np.linspace(0.92, 1.08, 8)
panel.plot(spread, alone, "o", color="C6", markersize=4, label="single networks")
panel.plot([1, *together], [np.mean(alone), *together.values()], "s-", color="C0", label="committees")
memorised = error_of(neurise.Memorize().fit(rows))
panel.axhline(memorised, color="C4", linestyle="--", label="memorising the rows")
panel.set(xscale="log", xlabel="members", ylabel="total variation distance", ylim=(0, None))
panel.set_xticks([1, 2, 4, 8], [1, 2, 4, 8])
panel.minorticks_off()
panel.legend(loc="lower left")
plt.show()

print(f"one network {np.mean(alone):.3f}, eight {together[8]:.3f}, memorising {memorised:.3f}")
assert together[8] < np.mean(alone)
assert together[8] < memorised
