"""
A Potts glass
=============

Sites may have more than two states. In a Potts glass of four states some neighbours want to be
equal and others want to differ, and not all of them can have their way. The model is shipped with
the library; its law is compared with the truth on all 262,144 configurations.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import neurise
from neurise.player import references

plt.style.use("neurise.look")
data = neurise.datasets.potts(side=3, states=4, seed=1, J=1.0)
model = neurise.load(references.find("potts").models[0])

# %%
# Eighteen draws, one colour per state. The lattice is periodic: the left edge touches the right.

colours = ListedColormap(["#0072b2", "#f0b429", "#009e73", "#d55e00"])
drawn = np.pad(model.sample(18, seed=0).reshape(2, 9, 3, 3) + 1, ((0, 0), (0, 0), (0, 1), (0, 1)))
wall = np.ma.masked_equal(drawn.swapaxes(1, 2).reshape(8, 36), 0) - 1
figure, panel = plt.subplots(figsize=(7.2, 1.8))
panel.imshow(wall, cmap=colours)
panel.set_axis_off()
plt.show()

# %%
# How often are two neighbours equal? Dots above 1/4 are couplings that pull, dots below push apart.
# The energies of drawn rows follow the true distribution.

law = neurise.exact.law(model).numpy().reshape((4,) * 9)
truth = data.pmf.reshape((4,) * 9)


def agreement(pmf, i, j):
    """Return the probability that two sites are equal."""
    return np.trace(pmf.sum(axis=tuple(k for k in range(9) if k not in (i, j))))


pairs = [(agreement(truth, i, j), agreement(law, i, j)) for i, j in data.edges]
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
left.plot(*zip(*pairs, strict=True), "o")
left.axline((0.25, 0.25), slope=1, color="0.3", linewidth=1)
left.axhline(0.25, color="0.8", linewidth=1)
left.set(xlabel="truth", ylabel="model", title="neighbours that are equal")
for rows, name, style in ((data.sample(5000, seed=1), "truth", "C6"), (model.sample(5000, seed=1), "model", "C0")):
    energies = data.energy(rows)
    right.hist(energies, bins=np.arange(-9, 5), density=True, histtype="step", color=style, label=name, linewidth=1.5)
right.set(xlabel="energy", yticks=[], title="energies of 5,000 rows")
right.legend()
plt.show()

error = float(neurise.metrics.total_variation(law.ravel(), data.pmf))
floor = float(neurise.metrics.total_variation(data.sample(20_000, seed=0), data.pmf))
print(f"total variation {error:.3f}; the 20,000 rows that it learnt from: {floor:.3f}")
assert error < 0.5 * floor
