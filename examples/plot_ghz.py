"""
A GHZ state from measurement outcomes
=====================================

Each qubit of a GHZ state of six qubits is measured with a tetrahedral POVM, which has four
outcomes: a shot is one of 4,096. Together the outcomes determine the quantum state. How many shots does a model of them
need, and how near is it then?
"""

import matplotlib.pyplot as plt
import numpy as np

import neurise

plt.style.use("neurise.look")
data = neurise.datasets.ghz(qubits=6)
fresh = data.sample(5000, seed=9)

# %%
# The classical fidelity Σ √(P(x) Q(x)) compares the outcomes P of the true state with the outcomes
# Q of the model. It is estimated from shots that the model has not seen, with an error bar. Counting
# the shots instead gives a law that is zero wherever an outcome happened not to occur.

shots, learnt, counted = [300, 1000, 3000], [], []
for n in shots:
    rows = data.sample(n, seed=0)
    model = neurise.NeurISE(width=32, members=1, steps=200, alphabet=[0, 1, 2, 3])
    model.fit(rows, seed=0, verbose=False)
    learnt.append(neurise.povm.classical_fidelity(data.log_weight(fresh), model.log_prob(fresh)))
    law = neurise.exact.law(neurise.Memorize(alphabet=[0, 1, 2, 3]).fit(rows)).numpy()
    counted.append(float(np.sqrt(law * data.pmf).sum()))

# %%
# What the state is known for: all qubits agree, however far apart they are, and the correlators
# ⟨ZZ⟩ of all pairs are 1. Bars are errors of sampling, and the model can be sampled at will. Where
# its points are further from 1 than their bars, they show what it learnt wrongly from 3,000 shots.

of_shots = neurise.povm.pair_expectations(rows)
of_model = neurise.povm.pair_expectations(model.sample(20_000, seed=1))
pairs = np.triu_indices(6, 1)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
losses, bars = [1 - f.value for f in learnt], [f.standard_error for f in learnt]
left.errorbar(shots, losses, bars, marker="o", capsize=3, label="model")
left.plot(shots, 1 - np.array(counted), "s-", color="C4", label="counting the shots")
left.set(xscale="log", yscale="log", xlabel="shots", ylabel="1 − classical fidelity")
left.set_xticks(shots, shots)
left.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
left.legend()
for found, shift, colour, name in ((of_shots, -0.15, "C4", "3,000 shots"), (of_model, 0.15, "C0", "20,000 draws")):
    heights, errors = found.value[pairs], found.standard_error[pairs]
    right.errorbar(np.arange(15) + shift, heights, errors, fmt="o", markersize=4, color=colour, label=name)
right.axhline(1, color="0.3", linewidth=1)
right.set_xticks(range(15), [f"{i}{j}" for i, j in zip(*pairs, strict=True)])
right.set(xlabel="pair of qubits", ylabel="⟨ZZ⟩", ylim=(0, 1.5))
right.legend(loc="lower left")
plt.show()

print(f"classical fidelity from {shots[-1]:,} shots: {learnt[-1].value:.4f} ± {learnt[-1].standard_error:.4f}")
assert learnt[-1].value > 0.98
assert all(f.value > c for f, c in zip(learnt, counted, strict=True))
