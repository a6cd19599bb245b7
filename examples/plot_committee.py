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
settings = {"width": 48, "steps": 150, "architecture": neurise.Architecture(pairwise=False)}
settings["training"] = neurise.Training(batch_size=256, learning_rate=5e-3)


def error_of(model):
    """Return the exact distance of a model's law from the truth."""
    return float(neurise.metrics.total_variation(neurise.exact.law(model), data.pmf))


# %%
# Five single networks, which differ in their seeds alone, are trained as one batched computation.
# Committees of two, four and eight networks learn from the same rows.

single = neurise.NeurISE(members=1, **settings)
alone = [error_of(model) for model in neurise.fit_many(single, rows, seeds=range(5), verbose=False)]
together = {}
for members in (2, 4, 8):
    model = neurise.NeurISE(members=members, **settings)
    together[members] = error_of(model.fit(rows, seed=0, verbose=False))

# %%
# Every committee is better than a single network is on average, and most of the gain comes with the
# first few members. Sampling takes as many network evaluations per step as there are members.

figure, panel = plt.subplots(figsize=(5, 3.4))
spread = np.linspace(0.92, 1.08, 5)
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
assert max(together.values()) < np.mean(alone) < memorised
