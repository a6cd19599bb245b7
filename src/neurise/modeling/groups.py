"""Groups of parameters that most users leave at their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Settings of the network besides its width and depth.

    Args:
        heads: "shared" is one output layer for all sites, as in the paper, "site" one per site.
        residual: add what enters a hidden layer to what leaves it.
        site_input: how network="site_mlp" is shown which site it is asked for: as a "one_hot", as in the paper, or as one
            "number" that rises with its place in the order of noising.
        pairwise: add the terms of a pairwise model to the logits, (sites · states)² numbers more. Under hard noise they are
            fitted before the network is trained, and kept; of an even number of members one half has them. None uses them
            where there are several members.
        group: sites per place of a transformer, network="causal": the more, the faster, and the less it looks closely.
        attention_heads: heads of each of its layers; by default one for 64 channels.
        shared_heads: so many of its heads have the same keys and values, so that rows take less memory while they are drawn.
        dropout: share of the channels that a transformer leaves out at random while it learns; None chooses by the data, the
            fewer rows the more.
        orders: in how many orders the sites are learnt and generated; the model is the equal mixture of the laws. The first is
            that of the model, the others are random by the seed of ``fit``; or a list of orders, each as ``order`` is given.
            Hard noise alone.
        energy: solve for the pairwise energy of the data, by maximum likelihood on a graph that the data choose, before any
            network is trained. Rows held back say whether it answers alone, beside the networks, or not at all;
            networks that have nothing to add to it after a short run are not trained. Where it cannot be written out, rows drawn
            from it are mixed into what networks learn from, if rows held back ask for it. None does so where no parameter, nor
            ``max_steps``, asks for networks, with hard noise of one cycle, complete rows and fewer than 200 sites.
            False leaves it out, and True insists.
        counts: count how often each site held each token where the sites generated before it were as they are now, and fall
            back on fewer of these where that was seldom seen. It takes seconds, joins the others as an energy does, and is what
            remains of memorising: where rows are many for the space, its share grows. None, False and True as for an energy.

    >>> import neurise
    >>> neurise.NeurISE(architecture=neurise.Architecture(pairwise=True)).get_params()['architecture__pairwise']
    True
    """

    heads: str = "site"
    residual: bool = True
    site_input: str = "one_hot"
    pairwise: bool | None = None
    group: int = 4
    attention_heads: int | None = None
    shared_heads: int = 1
    dropout: float | None = None
    orders: int | Sequence[Sequence[int]] = 1
    energy: bool | None = None
    counts: bool | None = None


SOLVED = ("energy", "counts")
"""Parameters of :class:`Architecture` that are ways to solve for conditionals, files of ``modeling/solving``."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Settings of the noise besides ``keep_prob`` and ``cycles``.

    Args:
        kind: the noise process, a file of ``neurise.noise`` that touches one site per step: "round_robin" redraws a site
            uniformly, "masked_round_robin" masks it.
        steps: T, the number of steps, in the place of ``cycles``; it need not be a multiple of the number of sites.
        hide_noised: hide sites that hard noise has erased from the network. Equal in law, and it makes the likelihood
            exact; False is the paper's form.
        unseen: the probability of each symbol that a constant site never showed; 0 makes it impossible.
        stretch: how many consecutive steps of a row are learnt at once, by a network that can share work among them, as
            "site_mlp" does; a batch then has as many fewer rows. With 1 every step has a row of its own. None chooses by the data.

    >>> import neurise
    >>> neurise.NeurISE(keep_prob=0.5, chain=neurise.Chain(steps=12)).get_params()['chain__steps']
    12
    """

    kind: str = "round_robin"
    steps: int | None = None
    hide_noised: bool = True
    unseen: float = 1e-6
    stretch: int | None = None


@dataclass(frozen=True, kw_only=True)
class Corrector:
    """Glauber sweeps after the reverse chain, or between its steps.

    Args:
        clean: share of the examples that teach conditionals of any site, which sweeps need. A network that answers for a whole
            row ("sparse", "masked", "causal") looks at one side of a site: there any value above 0 has the data's own
            conditionals learnt apart, by regressions of every site on others. Where "sparse" alone learns 200 sites or more, they
            are learnt unasked, unless ``sweeps`` is given.
        sweeps: how often ``sample`` redraws all sites in the end, unless it is told otherwise; needs ``clean``, or an energy
            that was learnt (:class:`Architecture`), whose own conditionals are used. 0 leaves them out. None is 0, too; with
            conditionals that were learnt apart, it is the number out of 0 … 32 that brings what is drawn nearest to rows that
            were held back, in its energy and in its correlations, and makes neither worse (``model.sweeps_``).
        anytime: teach conditionals of any site at all times, not only those of the data, so that sweeps may also run
            between reverse steps.

    Sweeps change what ``sample`` draws and :func:`neurise.exact.law` writes out. ``log_prob``, ``elbo`` and ``score`` are those
    of the chain without them.

    >>> import neurise
    >>> neurise.NeurISE(corrector=neurise.Corrector(clean=0.25, sweeps=20)).get_params()['corrector__sweeps']
    20
    """

    clean: float = 0.0
    sweeps: int | None = None
    anytime: bool = False
