"""
How many cycles until nothing is left
=====================================

The forward noise visits one site after the other, keeps it with probability ε, and redraws it
otherwise. How much of the data is left after t steps is the distance δ between the noised law and
the uniform one. It bounds what is lost by starting a sample from pure noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
data = neurise.datasets.edwards_anderson(side=3, seed=0)
sites, cycles = data.space.sites, 6

steps = np.arange(cycles * sites + 1) / sites
curves = {
    keep: neurise.theory.delta_curve(data.pmf, data.space, keep, cycles).numpy() for keep in (0.0, 0.3, 0.5, 0.7, 0.9)
}

# %%
# How many cycles are enough for a given ε? Count those after which less than one percent is left.
# More cycles than that only make sampling slower.

keeps = np.linspace(0, 0.8, 17)
needed = []
for keep in keeps:
    curve = neurise.theory.delta_curve(data.pmf, data.space, float(keep), 20)[::sites]
    needed.append(int(np.argmax(curve.numpy() < 0.01)))

# %%
# Hard noise (ε = 0) is done after one cycle, exactly. Softer noise needs more: at ε = 0.5 six
# cycles leave about a thousandth, at ε = 0.9 they leave more than a quarter.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
for keep, curve in curves.items():
    left.semilogy(steps, np.maximum(curve, 1e-12), label=f"ε = {keep:g}")
left.set(xlabel="cycles", ylabel="δ, what is left", ylim=(1e-6, 1.5))
left.legend(loc="lower right", ncols=2)
right.step(keeps, needed, where="mid", color="0.2")
right.set(xlabel="ε, probability to keep a site", ylabel="cycles until δ < 0.01", ylim=(0, None))
plt.show()

assert curves[0.5][-1] < 2e-3
assert curves[0.9][-1] > 0.25
assert needed[0] == 1
assert np.all(np.diff(needed) >= 0)
