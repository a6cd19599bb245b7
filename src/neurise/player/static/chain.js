// A chain as it was sent: a start, steps, and the state after any number of them, forwards and backwards.

export class Chain {
  constructor(start) {
    this.now = start.map((row) => Uint16Array.from(row));
    this.latest = start.map((row) => Uint16Array.from(row));
    this.steps = [];
    this.at = 0;
  }

  // Remember a step together with what was there before it.
  add(step) {
    const kept = { ...step };
    if (step.all) {
      kept.before = this.latest.map((row) => Uint16Array.from(row));
      step.all.forEach((row, chain) => this.latest[chain].set(row));
    } else {
      kept.before = step.s.map((site, chain) => this.latest[chain][site]);
      step.s.forEach((site, chain) => {
        this.latest[chain][site] = step.x[chain];
      });
    }
    this.steps.push(kept);
  }

  // Go to the state after so many steps.
  go(wanted) {
    const goal = Math.max(0, Math.min(wanted, this.steps.length));
    while (this.at < goal) this.apply(this.steps[this.at++], (step) => [step.all, step.x]);
    while (this.at > goal) this.apply(this.steps[--this.at], (step) => [step.all && step.before, step.before]);
  }

  apply(step, choose) {
    const [all, tokens] = choose(step);
    if (step.all) all.forEach((row, chain) => this.now[chain].set(row));
    else
      step.s.forEach((site, chain) => {
        this.now[chain][site] = tokens[chain];
      });
  }

  // The step that led here.
  get last() {
    return this.at ? this.steps[this.at - 1] : null;
  }
}
