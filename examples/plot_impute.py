"""
Filling the gaps of a table
===========================

A survey has gaps. A model learns from the rows as they are, gaps included, and fills each gap from
what else is known about that row. Filling in the most frequent value of the column ignores all of
it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import neurise

plt.style.use("neurise.look")
rng = np.random.default_rng(0)
n = 1500
age = rng.choice(["young", "middle", "old"], n, p=[0.3, 0.4, 0.3])
work = np.where(age == "old", rng.choice(["retired", "employed"], n, p=[0.85, 0.15]),
                np.where(age == "young", rng.choice(["student", "employed"], n, p=[0.6, 0.4]), "employed"))  # fmt: skip
income = np.where(work == "employed", rng.choice(["high", "middle"], n), rng.choice(["middle", "low"], n, p=[0.3, 0.7]))
city = rng.choice(["north", "south"], n)
full = pd.DataFrame({"age": age, "work": work, "income": income, "city": city})

# %%
# Every fourth cell is taken away at random.

gaps = rng.random(full.shape) < 0.25
holed = full.mask(gaps)
imputer = neurise.Imputer(neurise.NeurISE(width=32, members=1, steps=200)).fit(holed)
filled = imputer.transform(holed)
modes = holed.fillna(holed.mode().iloc[0])

# %%
# Left: forty rows. Light cells were gaps and have been filled in; a cross marks a wrong guess. Right:
# the share of gaps that was filled in correctly. Columns that hang together gain, and the city, which
# has nothing to do with the others, cannot.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6), width_ratios=(3, 2))
shades = np.where(gaps, np.where(filled == full, 0.35, 0.1), 0.75)[:40]
left.imshow(shades.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
row, column = np.nonzero(gaps[:40] & (filled != full).to_numpy()[:40])
left.plot(row, column, "x", color="C1", markersize=5)
left.set_yticks(range(4), full.columns)
left.set(xlabel="row", title="light: filled in, cross: wrong")
right_share = {name: (table == full).to_numpy()[gaps] for name, table in (("model", filled), ("most frequent", modes))}
columns = np.nonzero(gaps)[1]
for shift, (name, correct) in zip((-0.2, 0.2), right_share.items(), strict=True):
    means = [correct[columns == k].mean() for k in range(4)]
    right.barh(np.arange(4) + shift, means, height=0.38, label=name, color="C0" if shift < 0 else "C6")
right.set_yticks(range(4), full.columns)
right.invert_yaxis()
right.set(xlim=(0, 1), xlabel="share of gaps filled correctly")
right.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
plt.show()

print({name: f"{correct.mean():.0%}" for name, correct in right_share.items()})
assert right_share["model"].mean() > right_share["most frequent"].mean() + 0.1
