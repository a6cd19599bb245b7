"""
A model of your own in one file
===============================

A model that can count, draw and give log-probabilities is a class with three methods. In return it
gets what every model has: any symbols in and out, files, ``score``, scikit-learn's search, the
command line, and the same tests. Here it is a mixture of products, fitted by expectation
maximisation.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import neurise
from neurise.modeling.solved import SolvedModel


@dataclass(kw_only=True, eq=False, repr=False)
class Mixture(SolvedModel):
    """A weighted sum of products of marginals, for two states."""

    parts: int = 16

    def _count(self, x, y, weights):
        """Fit the mixture to tokens (N, sites), 0 and 1."""
        ones, generator = x.double(), torch.Generator().manual_seed(0)
        share = torch.rand(len(x), self.parts, generator=generator).double().softmax(-1)
        for _ in range(60):
            mass = (share * weights[:, None]).sum(0)
            marginals = ((share * weights[:, None]).T @ ones + 0.5) / (mass[:, None] + 1)
            share = self._log_joint(ones, mass / mass.sum(), marginals).softmax(-1)
        return {"shares": mass / mass.sum(), "marginals": marginals}

    def _draw(self, request):
        """Choose a part for every row, and draw its sites."""
        which = torch.multinomial(self.tables_["shares"], request.n, replacement=True, generator=request.generator)
        return torch.bernoulli(self.tables_["marginals"][which], generator=request.generator).to(torch.uint8)

    def _log_prob(self, x, y):
        """Sum over the parts."""
        return self._log_joint(x.double(), self.tables_["shares"], self.tables_["marginals"]).logsumexp(-1)

    @staticmethod
    def _log_joint(ones, shares, marginals):
        return shares.log() + ones @ marginals.log().T + (1 - ones) @ (1 - marginals).log().T


# %%
# Above the sixteen parts that it finds in black and white digits, below sixteen draws.

plt.style.use("neurise.look")
pixels = (load_digits().data > 7).astype(int)
train, test = pixels[:1400], pixels[1400:]
model = Mixture().fit(train)
rows = np.stack([model.tables_["marginals"].numpy(), model.sample(16, seed=0)])
wall = np.pad(rows.reshape(2, 16, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1))).swapaxes(1, 2).reshape(20, 160)
figure, panel = plt.subplots(figsize=(7.2, 1.4))
panel.imshow(wall, cmap="binary", vmin=0, vmax=1)
panel.set_yticks([5, 15], ["parts", "draws"])
panel.set_xticks([])
plt.show()

# %%
# It is scored like any other model, on rows that it has not seen.

independent = neurise.Independent().fit(train)
print(f"mixture {model.score(test):.1f} nats per row, independent sites {independent.score(test):.1f}")
assert model.score(test) > independent.score(test)
