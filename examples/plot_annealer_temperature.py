"""
The effective temperature of an annealer
========================================

An annealer is told couplings and returns spins. It works like a thermal sampler at a temperature
that nobody set. The slope of the learnt couplings against the programmed ones is the inverse
temperature β. This annealer is a simulated one on a small Zephyr chip, so the answer is known.
"""

import matplotlib.pyplot as plt

import neurise

plt.style.use("neurise.look")
final, found = [0.15, 0.3, 0.45], []
for beta in final:
    chip = {"topology": "zephyr", "size": 1, "qubits": 16}
    reads = neurise.datasets.dwave(reads=4000, sweeps=50, schedule=[0.0, beta, beta], seed=0, **chip)
    model = neurise.Pairwise().fit(reads, seed=0, verbose=False)
    found.append(neurise.structure.recover(model, reads, programmed=reads))

# %%
# Left: learnt couplings of the hottest and of the coldest run, with their standard errors. They lie
# on a line, so one temperature describes the machine; couplings that are too weak to be told from
# none are zero. Right: the slopes are where the schedules of the simulation ended.

i, j = reads.edges.T
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.3))
for place, colour in ((0, "C1"), (-1, "C0")):
    one = found[place]
    bars = {"fmt": "o", "markersize": 3, "elinewidth": 0.8, "color": colour}
    left.errorbar(reads.couplings, one.couplings[i, j], one.errors[i, j], **bars)
    left.axline((0, 0), slope=one.temperature.slope, color=colour, label=f"β = {final[place]:g}")
left.set(xlabel="programmed coupling", ylabel="learnt coupling")
left.legend()
slopes, errors = ([getattr(one.temperature, name) for one in found] for name in ("slope", "error"))
right.errorbar(final, slopes, errors, fmt="o", capsize=3)
right.axline((0, 0), slope=1, color="0.3", linewidth=1)
right.set(xlabel="β at the end of the anneal", ylabel="β from the reads", xlim=(0, 0.5), ylim=(0, 0.55))
plt.show()

for beta, slope, error in zip(final, slopes, errors, strict=True):
    print(f"β = {beta:g}: found {slope:.3f} ± {error:.3f}")
    assert abs(slope - beta) < 0.1 * beta + 4 * error
