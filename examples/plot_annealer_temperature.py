"""
The effective temperature of an annealer
========================================

An annealer is told couplings and returns spins. It behaves like a thermal sampler at a temperature
that nobody set: the slope of learnt couplings against programmed ones is its inverse. Here the
annealer is a simulated one on a small Zephyr chip.
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
sweeps, found = [5, 20, 80], []
for count in sweeps:
    reads = neurise.datasets.dwave(
        reads=3000, qubits=16, topology="zephyr", size=1, sweeps=count, J=0.4, seed=0, test_fraction=0.1
    )
    model = neurise.Pairwise().fit(reads, seed=0, verbose=False)
    found.append(neurise.structure.recover(model, reads, programmed=reads))

# %%
# Left: couplings learnt from reads of the fastest and of the slowest anneal. They lie on a line, so
# one temperature describes the machine. Right: the slower the anneal, the colder the reads.

i, j = reads.edges.T
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.3))
for place, colour in ((0, "C1"), (-1, "C0")):
    one = found[place]
    left.errorbar(reads.couplings, one.couplings[i, j], one.errors[i, j], fmt="o", markersize=4, color=colour)
    left.axline((0, 0), slope=one.temperature.slope, color=colour, label=f"{sweeps[place]} sweeps")
left.set(xlabel="programmed coupling", ylabel="learnt coupling")
left.legend()
values = [one.temperature.value for one in found]
right.errorbar(sweeps, values, [one.temperature.value_error for one in found], marker="o", capsize=3)
right.set(xscale="log", xlabel="sweeps of an anneal", ylabel="effective temperature", ylim=(0, None))
right.set_xticks(sweeps, sweeps)
right.minorticks_off()
plt.show()

print("temperatures:", ", ".join(f"{one.temperature.value:.2f} ± {one.temperature.value_error:.2f}" for one in found))
assert np.all(np.diff(values) < 0)
