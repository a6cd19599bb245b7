"""
Inpainting
==========

Some pixels are known and the others are not. ``clamp`` takes a masked array: entries that are
masked are drawn by the model, all others stay as they are. The known half of a digit leaves room
for several answers, and the model gives all of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise
from neurise.player import references

plt.style.use("neurise.look")
model = neurise.load(references.find("digits").models[0])
originals = model.sample(4, y=[2, 3, 5, 8], seed=7)

# %%
# Nobody says which digit it is. Particles of every label are weighed by how well they explain the
# known pixels, so the label is inferred along with the missing half. Simply holding the known pixels
# would draw the label without looking at them.

unknown = np.arange(784) < 14 * 28
rows = []
for original in originals:
    known = np.ma.array(original, mask=unknown)
    rows.append([original, *model.sample(8, clamp=known, seed=0)])
answers = np.array(rows)
assert (answers[..., ~unknown] == answers[:, :1, ~unknown]).all(), "what is known stays as it is"

# %%
# The first column is the original. The shaded upper half was hidden from the model; the pictures
# to the right are eight ways to complete what was left.

shown = answers.astype(float)
shown[:, 0, unknown] *= 0.45
wall = shown.reshape(4, 9, 28, 28).swapaxes(1, 2).reshape(4 * 28, 9 * 28)
figure, panel = plt.subplots(figsize=(7.2, 3.5))
panel.imshow(wall, cmap="binary", vmin=0, vmax=1)
for row in range(4):
    panel.add_patch(plt.Rectangle((-0.5, 28 * row - 0.5), 28, 14, color="C0", alpha=0.15, linewidth=0))
panel.axvline(27.5, color="C0")
panel.set_xticks([14, 28 * 5], ["original", "eight draws, given the lower half"])
panel.set_yticks([])
plt.show()
