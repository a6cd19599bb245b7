"""
Many fits on a Dask cluster
===========================

Fits that do not depend on each other, over seeds or numbers of rows, can run wherever there are
cores. Here the cluster is made of two workers of this machine; a scheduler elsewhere is reached in
the same way, by its address.
"""

import time

import distributed
import matplotlib.pyplot as plt

import neurise
from neurise.executors import opened

plt.style.use("neurise.look")
data = neurise.datasets.edwards_anderson(side=3, seed=1, J=0.6)


def fit(size, seed):
    """Learn from so many rows; return the worker, the times and the error."""
    start = time.time()
    model = neurise.Pairwise().fit(data.sample(size, seed=seed), seed=seed, verbose=False)
    error = neurise.metrics.total_variation(neurise.exact.law(model), data.pmf)
    return distributed.get_worker().name, start, time.time(), float(error)


neurise.Pairwise().fit(data.sample(300, seed=0), verbose=False)  # the first fit of a process loads torch's optimisers

# %%
# ``opened`` gives an executor of Python's own kind: ``submit`` a function, and ask for the result.
# In the place of the address it takes ``"process"`` for processes, or ``"slurm"`` for jobs.

options = {"processes": False, "protocol": "tcp://", "dashboard_address": ":0"}
pieces = [(size, seed) for size in (300, 1000, 3000) for seed in range(4)]
with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
    address = cluster.scheduler_address.replace("tcp", "dask")
    with opened(address) as pool:
        futures = [pool.executor.submit(fit, *piece) for piece in pieces]
        results = [future.result() for future in futures]

# %%
# Who did what: each bar is a fit, coloured by its number of rows. Workers take the next piece as
# soon as they are free. The errors come out the same wherever a piece was computed.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8), width_ratios=(3, 2))
colours = {300: "C0", 1000: "C1", 3000: "C2"}
begin = min(start for _, start, _, _ in results)
names = sorted({name for name, *_ in results})
for (size, _), (name, start, end, _) in zip(pieces, results, strict=True):
    left.barh(names.index(name), end - start, left=start - begin, color=colours[size], edgecolor="white")
left.set_yticks(range(len(names)), [f"worker {name}" for name in names])
left.set(xlabel="seconds")
for (size, _), (*_, error) in zip(pieces, results, strict=True):
    right.plot(size, error, "o", color=colours[size])
right.set(xscale="log", xlabel="rows", ylabel="total variation distance", ylim=(0, None))
right.set_xticks([300, 1000, 3000], [300, 1000, 3000])
right.minorticks_off()
plt.show()

means = {size: sum(r[3] for p, r in zip(pieces, results, strict=True) if p[0] == size) / 4 for size in colours}
assert means[300] > means[1000] > means[3000]
