"""
A reverse chain as an animation
===============================

The same as a film, with soft noise: a step keeps its site with probability 1/2 and redraws it
otherwise, so that every site is visited several times and the picture settles little by little.
The data are the 8 × 8 digits that come with scikit-learn, in black and white.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from sklearn.datasets import load_digits

import neurise

plt.style.use("neurise.look")
pixels, labels = load_digits(return_X_y=True)
digits = (pixels > 7).astype(int)
training = neurise.Training(batch_size=1024, learning_rate=5e-3)
model = neurise.NeurISE(keep_prob=0.5, cycles=3, width=64, members=1, steps=400, training=training)
model.fit(digits, labels, seed=0, verbose=False)

# %%
# Ten chains run side by side, one per class: 3 cycles of 64 steps, of which every fourth is shown.

chain = model.trajectory(10, y=range(10), seed=1)
padded = np.pad(chain.states.reshape(-1, 10, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
films = padded.reshape(-1, 2, 5, 10, 10).swapaxes(2, 3).reshape(-1, 20, 50)[::4]

figure, panel = plt.subplots(figsize=(6, 2.7))
image = panel.imshow(films[0], cmap="binary")
panel.set_axis_off()


def show(frame):
    """Draw one frame; the last one is held for a while."""
    frame = min(frame, len(films) - 1)
    image.set_data(films[frame])
    panel.set_title(f"step {4 * frame} of {len(chain) - 1}")


animation = FuncAnimation(figure, show, frames=len(films) + 15, interval=80)
plt.show()

assert (chain.states[-1] == model.sample(10, y=range(10), seed=1)).all()
