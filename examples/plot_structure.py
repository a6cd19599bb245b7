"""
Which sites interact
====================

Rows of a 4 × 4 spin glass show correlations between all sites. The couplings behind them are
sparse: only neighbours on the lattice interact. A fitted model is asked for its couplings, and the
graph comes out of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
data = neurise.datasets.edwards_anderson(side=4, seed=3, J=0.6)
rows = data.sample(5000, seed=0)
model = neurise.Pairwise().fit(rows, seed=0, verbose=False)
found = neurise.structure.recover(model, rows)

# %%
# Left: correlations are everywhere, and no threshold would give the graph. Right: of the
# couplings, 32 stand out.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.3))
for panel, matrix, title in ((left, np.corrcoef(rows.T), "correlations"), (right, found.couplings, "couplings")):
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0)
    image = panel.imshow(matrix, cmap="RdBu_r", vmin=-0.7, vmax=0.7)
    panel.set(title=title, xlabel="site", ylabel="site")
figure.colorbar(image, ax=(left, right))
plt.show()

# %%
# On the lattice: the true graph, the recovered one, and the couplings of both against each other
# with their standard errors.

plt.figure(neurise.structure.draw(found, data=data))
plt.show()

result = neurise.structure.compare(found, data)
print(f"{result.true_edges} edges, missed: {len(result.missed)}, false: {len(result.false)}")
assert not result.missed
assert not result.false
