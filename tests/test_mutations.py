"""Do the tests notice the classic slips? Each is made in a copy of the code, and the tests must fail there.

The slips: states and sites swapped, a time index off by one, ε as its opposite, a lost factor, a site that is not hidden.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"

NOISE, EXACT, LIKELIHOOD = "noise/round_robin.py", "exact.py", "likelihood.py"
OBJECTIVE, REGRESSIONS = "modeling/round_robin_objective.py", "energies/regressions.py"
LAYERS, VIEW, COMMITTEE = "networks/parts/layers.py", "conditionals/base.py", "conditionals/committee.py"
PLANNED, PLANNED_CHAINS = "models/_ddpd/objective.py", "models/_ddpd/chains.py"
JOBS, TERMS, KNOWN = "modeling/trained.py", "networks/pairwise_terms.py", "conditionals/known_sites.py"
TREES = "conditionals/_tries.py"
ATTENTION, WITHIN = "networks/parts/attention.py", "networks/parts/within_group.py"
MUTATIONS = {
    "kernel: 1/q for 1/p": (NOISE, "(1 - keep) / law.shape[-1])", "(1 - keep) / self.space.sites)", "noise"),
    "push: 1/q for 1/p": (NOISE, "(1 - self.keep_prob) / law.shape[-1]", "(1 - self.keep_prob) / self.space.sites", "noise"),
    "site: t mod p for t mod q": (NOISE, "return t % self.space.sites", "return t % self.space.states", "noise"),
    "site: one step late": (NOISE, "return t % self.space.sites", "return (t + 1) % self.space.sites", "noise"),
    "visits: one step late": (NOISE, "self.space.sites - 1 - self._sites(t))", "self.space.sites - self._sites(t))", "noise"),
    "corrupt: ε is the probability to redraw": (NOISE, "torch.pow(self.keep_prob, cycle + 1), torch.pow(self.keep_prob, cycle)", "torch.pow(1 - self.keep_prob, cycle + 1), torch.pow(1 - self.keep_prob, cycle)", "noise"),
    "kernel: ε is the probability to redraw": (NOISE, "torch.full((), self.keep_prob,", "torch.full((), 1 - self.keep_prob,", "noise"),
    "reverse: the present token is ignored": (NOISE, "self.log_noised_token(x_u, once, u)", "0 * self.log_noised_token(x_u, once, u)", "noise"),
    "noised: ε is the probability to redraw": (NOISE, "keep = self.keep_prob**visits", "keep = (1 - self.keep_prob)**visits", "noise"),
    "law: steps in the wrong order": ("chain_law.py", "for t in reversed(range(noise.num_steps)):", "for t in range(noise.num_steps):", "test_exact.py"),
    "law: last site most significant": ("space.py", "for site, states in reversed(list(enumerate(self.digits))):", "for site, states in enumerate(self.digits):", "test_space.py"),
    "distance: without the half": ("laws.py", "return 0.5 * ", "return 1.0 * ", "test_exact.py"),
    "sampling: one step short": ("sampling/reverse.py", "for u in reversed(range(top)):", "for u in reversed(range(1, top)):", "sampling/test_reverse.py"),
    "sampling: site of the next step": ("sampling/reverse.py", "conditionals.log_conditional(step, noise.site(step), x, y)", "conditionals.log_conditional(step, noise.site(step + 1), x, y)", "sampling/test_reverse.py"),
    "likelihood: one site short": (LIKELIHOOD, "terms.sum(1) for terms", "terms[:, 1:].sum(1) for terms", "test_likelihood.py"),
    "elbo: X_t for X_{t+1}": (LIKELIHOOD, "after = (t + 1)", "after = t", "test_likelihood.py"),
    "elbo: the start is free": (LIKELIHOOD, " - conditionals.noise.start_divergence()", "", "test_likelihood.py"),
    "screening: centred by the sum": ("losses.py", "energy = logits - _mean(logits, allowed)[..., None]", "energy = logits - logits.sum(dim=-1, keepdim=True)", "test_losses.py"),
    "screening: sign of the energy": ("losses.py", "return torch.exp(-_pick(energy, x_u))", "return torch.exp(_pick(energy, x_u))", "test_losses.py"),
    "weight: gradient not stopped": ("losses.py", "log_weight.detach()", "log_weight", "test_losses.py"),
    "network: sees the site it is asked for": (LAYERS, "hidden | _is(u, x.shape[-1])", "hidden", "networks"),
    "network: sees it in one product": (LAYERS, "_seen(x, hidden | at, states)", "_seen(x, hidden, states)", "networks/parts/test_layers.py"),
    "conditionals: erased sites are seen": ("conditionals/base.py", "self.noise.erased(t) | ignored if", "ignored if", "conditionals/test_network_conditionals.py"),
    "clamped: without weights": ("sampling/clamped.py", "log_weight = log_weight + factor", "log_weight = log_weight + 0 * factor", "sampling/test_clamped.py"),
    "clamped: noise starts for free": ("sampling/clamped.py", "torch.where(holds, price, 0.0)", "torch.where(holds, 0 * price, 0.0)", "sampling/test_clamped.py"),
    "ggm: keep and redraw exchanged": ("models/ggm.py", "math.log((1 - keep) / keep)", "math.log(keep / (1 - keep))", "models/test_ggm.py"),
    "heat bath: sampled by Bayes": (NOISE, "        if self.heat_bath or (", "        if (", "sampling/test_incremental.py"),
    "absorbing: a mask may be lost": ("noise/absorbing.py", "return level * same + (1 - level) * mask", "return level * mask + (1 - level) * same", "noise"),
    "parallel law: the present is forgotten": ("sampling/parallel.py", "(left * current[index, None]).T", "(left * current[index, None].sqrt()).T", "models/test_dfm.py"),
    "d3pm: the published posterior": ("models/_d3pm/uniform.py", "self._log_kernel(now / before, x_t, log_clean.dtype) + mixed", "self._log_kernel(now, x_t, log_clean.dtype) + mixed", "models/test_d3pm_steps.py"),
    "sedd: Euler for analytic": ("models/_sedd/score.py", "self._jump(log_score + torch.log(torch.expm1(delta)), x)", "self._jump(log_score + torch.log(delta), x)", "models/test_sedd.py"),
    "ddpd: the odds of the data for those of the noise": (PLANNED, "torch.log(noised) - torch.log1p(-noised)", "torch.log1p(-noised) - torch.log(noised)", "models/test_ddpd.py"),
    "ddpd: a token that came back is no noise": (PLANNED, "torch.where(redrawn, -log_odds, log_odds)", "torch.where(redrawn & (x != x_0), -log_odds, log_odds)", "models/test_ddpd.py"),
    "ddpd: the planner is asked about another token": (PLANNED, "plan.gather(-1, x.long()[..., None]).squeeze(-1)", "plan[..., 0]", "models/test_ddpd.py"),
    "ddpd: sites are chosen at random": (PLANNED_CHAINS, "noise / expected, 1 /", "1 / self.space.sites, 1 /", "models/test_ddpd_samplers.py"),
    "ddpd: a lost factor": (PLANNED_CHAINS, "(expected * (1 - after / before))", "(1 - after / before + 0 * expected)", "models/test_ddpd_samplers.py"),
    "ddpd: the noise that is left is not followed": (PLANNED_CHAINS, "(expected - noise) / max(", "(expected - 0 * noise) / max(", "models/test_ddpd_samplers.py"),
    "one site: the present is forgotten": ("sampling/one_site.py", "* current[rows, None, None]", "* current[rows, None, None].sqrt()", "models/test_ddpd_samplers.py"),
    "sedd: raw scores that start at zero": ("models/_sedd/forms.py", "return (1 + z).masked_fill", "return z.masked_fill", "models/test_sedd.py"),
    "sedd: negative scores have no bound": ("models/_sedd/bound.py", "score.form.usable(denoiser.network(schedule.time(sigma), x_t, labels).double())", "denoiser.network(schedule.time(sigma), x_t, labels).double()", "models/test_sedd.py"),
    "sedd: a mask is a token": ("networks/joint_mlp.py", ".masked_fill(x == states, 0.0)", "", "networks/test_joint_mlp.py"),
    "site: a number by its state": ("networks/site_mlp.py", "2 * places / self.space.sites - 1", "2 * places / self.space.states - 1", "networks/test_site_mlp.py"),
    "diverged: in the step of the look": ("training/loop.py", "len(losses) - 1 - wrong.int().argmax(0)", "0", "training/test_endings.py"),
    "claims: the greater share without its interval": ("report/deciding.py", "less.low > more.high", "less.hits > more.hits", "report/test_claims.py"),
    "likelihood ratio: both sides of the difference": ("metrics/likelihood_ratio.py", "np.minimum(model - truth, 0.0)", "np.minimum(truth - model, 0.0)", "metrics/test_likelihood_ratio.py"),
    "memorize: weights ignored": ("models/memorize.py", "index_add_(0, place, weights)", "index_add_(0, place, torch.ones_like(weights))", "models/test_baselines.py"),
    "total variation: floor one count off": ("metrics/_binomial.py", "nu = torch.floor(n * often) + 1", "nu = torch.floor(n * often) + 2", "metrics/test_total_variation.py"),
    "keep_probs: a turn too early": (NOISE, "self._sites(t) < u, torch.pow", "self._sites(t) <= u, torch.pow", "noise"),
    "counts: the row is not left out": (TREES, "(mass - taken + concentration * without)", "(mass + concentration * without)", "conditionals/test_counts.py"),
    "counts: sites to come are looked at": (TREES, "range(u + 1, space.sites)", "range(space.sites)", "conditionals/test_counts.py"),
    "erased: one site too many": (NOISE, "return self._sites(t) < t[..., None]", "return self._sites(t) <= t[..., None]", "noise"),
    "draw: levels do not add up": ("categorical.py", "below = below + prob", "below = prob", "sampling/test_categorical.py"),
    "heads: one bias for all": ("networks/site_mlp.py", "_row(self.head_bias, u)", "self.head_bias[0]", "networks"),
    "committee: product for mean": (COMMITTEE, "answers = (weight * member.log_conditional(t, u, x, y)", "answers = (member.log_conditional(t, u, x, y)", "conditionals/test_committee.py"),
    "corrector: swept by Bayes": ("chain_law.py", "_push(conditionals, t, u, current, label, heat_bath=True)", "_push(conditionals, t, u, current, label)", "sampling/test_corrector.py"),
    "corrector: the first site is left out": ("sampling/corrector.py", "enumerate(reversed(swept_sites(conditionals, t)))", "enumerate(reversed(swept_sites(conditionals, t)[1:]))", "sampling/test_corrector.py"),
    "clean examples: noised all the same": (OBJECTIVE, "early = torch.zeros_like(t)", "early = t", "sampling/test_corrector.py"),
    "plan: pairwise terms of the site itself": (VIEW, "sites[:, None] < sites if grows", "sites[:, None] <= sites if grows", "sampling/test_incremental.py"),
    "plan: sweeps at the time of the site": (VIEW, "(torch.zeros_like(sites) if sweep else sites)", "sites", "sampling/test_corrector.py"),
    "plan: sweeps with the terms of the chain": (TERMS, "pairwise_plan(view, self.clean_pair.detach(), self.clean_bias.detach())", "pairwise_plan(view, self.pair.detach(), self.bias.detach())", "sampling/test_corrector.py"),
    "incremental: the old token stays": ("walks.py", "total -= columns.index_select(0, old)", "total -= 0 * columns.index_select(0, old)", "sampling/test_incremental.py"),
    "many: clipped together": ("training/step.py", ".norm(dim=1)", ".norm().expand(len(gradients[0]))", "training/test_step.py"),
    "unseen: more than there is": (KNOWN, "1 - (space.states - 1) * self.unseen", "1 - self.unseen", "conditionals/test_known_sites.py"),
    "unseen: seen by the network": ("conditionals/network_conditionals.py", "ignored = constant if ignore_constant", "ignored = constant & False if ignore_constant", "conditionals/test_network_conditionals.py"),
    "folds: an observation in several": ("rows.py", "left = left - taken", "left = left - 0 * taken", "test_folds.py"),
    "folds: only the own one is learnt": (OBJECTIVE, "fold[:, None] != torch.arange", "fold[:, None] == torch.arange", "modeling/test_round_robin.py"),
    "folds: a lost factor": (OBJECTIVE, "each * others * (self.folds / (self.folds - 1))", "each * others", "modeling/test_round_robin.py"),
    "folds: all members judge": (OBJECTIVE, "logits.gather(-2, own).squeeze(-2)", "logits.mean(-2)", "modeling/test_round_robin.py"),
    "kinds: all members have pairwise terms": ("modeling/round_robin.py", "[(half, True), (half, False)] if half", "[(half, True), (half, True)] if half", "modeling/test_round_robin.py"),
    "kinds: the share of the others": (COMMITTEE, "[share * (1 - best) for share in shares] + [best]", "[share * best for share in shares] + [1 - best]", "conditionals/test_committee.py"),
    "kinds: a share for each member, not for all": ("modeling/round_robin.py", "[share / len(group)] * len(group)", "[share] * len(group)", "modeling/test_round_robin.py"),
    "sized: rows for tokens": ("modeling/sizes.py", "rows * sites < tokens", "rows < tokens", "modeling/test_sizes.py"),
    "parts: all of the time for each": (JOBS, "1 / (len(jobs) - number)", "1.0", "modeling/test_jobs.py"),
    "parts: the time of the slower": (JOBS, "sum(max((r[name] for r in own), default=0.0) for own in until)", "max(max((r[name] for r in own), default=0.0) for own in until)", "modeling/test_jobs.py"),
    "graph: the energy looks for its own": ("modeling/solving/energy.py", "None if near is None else torch", "None if True else torch", "modeling/test_known_graph.py"),
    "parents: sites that are not allowed": ("energies/forward_selection.py", "offered.masked_fill_(~allowed[part], 0.0)", "offered", "energies/test_parents.py"),
    "frontier: neighbours alone": ("energies/frontier.py", "if len(after) > 1:", "if False:", "energies/test_frontier.py"),
    "parents: a wrong slope of the penalty": ("energies/small_regressions.py", "(1 + outcomes**2) / (", "(2 + outcomes**2) / (", "energies/test_parents.py"),
    "pairwise: sites that are not seen": (REGRESSIONS, "+ RIDGE * ahead.weight) * self.mask", "+ RIDGE * ahead.weight)", "energies/test_pairwise_regression.py"),
    "regressions: never a shorter step": (REGRESSIONS, "bend * LESS_BEND, bend * 2)", "bend * LESS_BEND, bend)", "energies/test_regressions.py"),
    "causal: a site sees its own token": (WITHIN, "[:, None] < order", "[:, None] <= order", "networks/test_causal.py"),
    "causal: later places are seen": (ATTENTION, "is_causal=True", "is_causal=False", "networks/test_causal.py"),
    "causal: a walk forgets distances": (ATTENTION, "self.turns[place : place + 1]", "self.turns[:1]", "networks/test_causal.py"),
    "causal: dropout while rows are scored": ("modeling/row_objective.py", "logits, tokens = self._varying(network(x, y), x, weight)", "logits, tokens = self._varying(network(x, y, _), x, weight)", "modeling/test_causal_model.py"),
    "known sites: noised before they are scored": (KNOWN, "self.log_known(sites, torch.zeros_like(sites))", "self.log_known(sites, torch.ones_like(sites))", "sampling/test_row_walks.py"),
    "decimation: the curvature alone": ("energies/graph_selection.py", "np.maximum(wald(found), found.count *", "np.maximum(wald(found), 0 * found.count *", "energies/test_pair_information.py"),
    "pair information: the other site is in the field": ("energies/pair_information.py", "logits[:, i] - table[pairs, :, at_j]", "logits[:, i]", "energies/test_pair_information.py"),
    "structure: of an energy without a share": ("modeling/round_robin.py", 'and "energy" not in self.shares_', "and False", "structure/test_of_energy.py"),
    "noisy regressions: targets are noised too": ("energies/noisy_regressions.py", "return replace(sample_of(rows, space.states, device), features=sample_of(noisy, space.states, device).features)", "return sample_of(noisy, space.states, device)", "energies/test_noisy_regressions.py"),
    "noisy regressions: the site itself is seen": ("energies/noisy_regressions.py", ".fill_diagonal_(False)", "", "energies/test_noisy_regressions.py"),
    "regressions: a site in the place of another": (REGRESSIONS, "places = places[busy]", "places = busy", "energies/test_regressions.py"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("slip", MUTATIONS)
def test_slip_is_noticed(slip: str, tmp_path: Path) -> None:
    file, right, wrong, tests = MUTATIONS[slip]
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "src" / "neurise" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1, f"the line to change is not there once: {right}"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", str(TESTS / tests)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=TESTS.parent, check=False)
    assert run.returncode == 1, f"no test failed:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    assert "FAILED" in run.stdout
