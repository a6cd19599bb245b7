"""
Searching settings
==================

Which width, learning rate and noise suit the data? A search tries settings, gives each of them the
same number of training steps, and scores them by the likelihood of rows that were held back.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import neurise
from neurise.tuning.search import Search, tune
from neurise.tuning.task import make_task

plt.style.use("neurise.look")
law = neurise.datasets.edwards_anderson(side=3, seed=1, J=0.6)
data = replace(law, train=law.sample(1000, seed=0))

# %%
# Depth, batch size and weight decay are fixed here; width, learning rate, ε and the number of cycles
# are searched, within the ranges that the model class names. Trials are kept in a journal, so the
# same call goes on where it was interrupted. On the command line this is ``neurise tune``.

fixed = {"depth": 1, "members": 1, "training__batch_size": 256, "training__weight_decay": 1e-5}
with tempfile.TemporaryDirectory() as folder:
    task = make_task(data, "neurise", fixed, max_steps=60, seed=0)
    search = Search(task, str(Path(folder, "trials.journal")), "spins", trials=12)
    best = tune(search, verbose=False)
    trials = [trial for trial in search.open().trials if trial.value is not None]

# %%
# Each dot is a trial; those that fall behind are given up early. Lower is better, and on average no
# law can be below the dashed line, the entropy of the truth. Learning rates matter most within so
# few steps.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
scores = np.array([trial.value for trial in trials])
rates = [trial.params["training__learning_rate"] for trial in trials]
widths = [trial.params["width"] for trial in trials]
entropy = -float((law.pmf * np.log(law.pmf)).sum())
image = left.scatter(rates, scores, c=np.log2(widths), cmap="cividis")
left.set(xscale="log", xlabel="learning rate", ylabel="nats per held-back row")
bar = figure.colorbar(image, ax=left, ticks=[6, 7, 8, 9], label="width")
bar.ax.set_yticklabels([64, 128, 256, 512])
right.plot(np.arange(1, len(scores) + 1), np.minimum.accumulate(scores), "o-", markersize=4)
right.set(xlabel="trials", title="best so far")
for panel in (left, right):
    panel.axhline(entropy, color="0.3", linestyle="--", linewidth=1)
plt.show()

print(f"best: {best.score:.3f} nats with", {name: best.params[name] for name in ("width", "keep_prob", "cycles")})
assert best.score == scores.min()
assert best.score < law.space.sites * np.log(2), "better than the uniform law"
