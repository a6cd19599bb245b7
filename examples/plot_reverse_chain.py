"""
A reverse chain, frame by frame
===============================

A sample begins as noise, and one site after the other is redrawn from what the model has learnt.
``trajectory`` returns every state on the way, the site that each step redraws, and the law that
it draws from.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise
from neurise.player import references

plt.style.use("neurise.look")
model = neurise.load(references.find("digits").models[0])
labels = [0, 2, 6, 9]
chain = model.trajectory(len(labels), y=labels, seed=3)

# %%
# Each row is one chain, and time runs from left to right. The noise is hard: a site that was
# visited holds a coin toss, so the chain starts from pure coin tosses and needs a single pass.

steps = np.linspace(0, len(chain) - 1, 8).round().astype(int)
frames = np.stack([chain[step] for step in steps])  # (frames, chains, sites)
wall = frames.reshape(8, 4, 28, 28).transpose(1, 2, 0, 3).reshape(4 * 28, 8 * 28)
figure, panel = plt.subplots(figsize=(7.2, 3.9))
panel.imshow(wall, cmap="binary")
panel.set_xticks(np.arange(14, 8 * 28, 28), [f"step {step}" for step in steps])
panel.set_yticks([])
plt.show()

# %%
# The laws that the steps draw from tell where the model hesitates. Most pixels are certain once
# their neighbours are known; the uncertain ones lie along the edges of the strokes.

entropy = np.zeros((len(labels), 784))
for sites, laws in zip(chain.sites, chain.laws, strict=True):
    entropy[np.arange(len(labels)), sites] = -(laws * np.log2(np.maximum(laws, 1e-12))).sum(axis=-1)
figure, panel = plt.subplots(figsize=(7.2, 2.2))
image = panel.imshow(np.hstack(entropy.reshape(-1, 28, 28)), cmap="cividis", vmin=0, vmax=1)
figure.colorbar(image, label="bits of doubt")
panel.set_axis_off()
plt.show()

certain = float((entropy < 0.1).mean())
print(f"{certain:.0%} of the pixels were drawn with less than a tenth of a bit of doubt")
assert certain > 0.5
assert np.array_equal(chain[-1], model.sample(len(labels), y=labels, seed=3))
