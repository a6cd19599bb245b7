"""
Digits by class
===============

A model that was given labels can be asked for rows of one label. This one is shipped with the
library: it learnt black and white pictures of handwritten digits, 28 × 28 pixels, together with
the digit that each of them shows.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise
from neurise.player import references

plt.style.use("neurise.look")
model = neurise.load(references.find("digits").models[0])

# %%
# ``y`` takes one label or one per row. Each column of the picture is one class, and each picture
# in it is a new draw: the strokes differ, the digit is the same.

digits = np.tile(np.arange(10), 6)
pictures = model.sample(len(digits), y=digits, seed=0)

wall = pictures.reshape(6, 10, 28, 28).swapaxes(1, 2).reshape(6 * 28, 10 * 28)
figure, panel = plt.subplots(figsize=(7.2, 4.5))
panel.imshow(wall, cmap="binary")
panel.set_xticks(np.arange(14, 280, 28), range(10))
panel.set_yticks([])
panel.set_xlabel("label that was asked for")
plt.show()

# %%
# The likelihood is exact, so the model can also be asked which label explains a picture best.
# It gives back the label of nearly every picture that it drew: the classes are really apart.

by_label = np.stack([model.log_prob(pictures, np.full(len(pictures), label)) for label in range(10)])
agree = float(np.mean(by_label.argmax(axis=0) == digits))
print(f"{agree:.0%} of the pictures are most probable under their own label")
assert agree > 0.8
