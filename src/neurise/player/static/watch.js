// Watch: the forward noise and the reverse chain step by step, played at any speed in either direction.

import { explained, stream } from "./api.js";
import { Chain } from "./chain.js";
import { h, say } from "./dom.js";
import { Field } from "./field.js";
import { lawOf } from "./law.js";
import { change, state } from "./state.js";

const FASTEST = 2000;
// How long a chain plays at the speed that it begins with.
const SECONDS = 8;
// Steps up to which the sites that they touched are drawn anew, and not the whole field.
const FEW = 24;

export class Watch {
  constructor(place, about) {
    this.place = place;
    this.about = about;
    this.playing = false;
    this.due = 0;
    this.frames = 0;
    this.play = h("button", { type: "button", class: "first", id: "play", onclick: () => this.toggle() }, "Play");
    this.back = h(
      "button",
      { type: "button", id: "back", "aria-label": "One step back", onclick: () => this.jump(-1) },
      "◂ Step",
    );
    this.next = h(
      "button",
      { type: "button", id: "next", "aria-label": "One step on", onclick: () => this.jump(1) },
      "Step ▸",
    );
    this.slider = h("input", {
      type: "range",
      id: "time",
      min: "0",
      max: "1",
      value: "0",
      oninput: () => this.pause() || this.go(Number(this.slider.value)),
    });
    this.speed = h("input", {
      type: "range",
      id: "speed",
      min: "0",
      max: "100",
      value: "45",
      "aria-label": "Speed in steps per second",
    });
    this.chains = h("input", {
      type: "number",
      id: "chains",
      min: "1",
      max: "16",
      value: String(state.chains),
      onchange: () => change({ chains: Math.max(1, Math.min(16, Number(this.chains.value) || 1)) }),
    });
    this.direction = h(
      "select",
      { id: "direction", onchange: () => change({ direction: this.direction.value }) },
      h("option", { value: "reverse" }, "noise → configuration"),
      h("option", { value: "forward" }, "configuration → noise"),
    );
    this.fields = h("div", { class: "fields", id: "watch-fields" });
    this.told = h("p", { class: "faint", id: "watch-told", role: "status" });
    this.law = h("div", { id: "law" });
    place.append(
      h(
        "div",
        { class: "bar" },
        this.play,
        this.back,
        this.next,
        h("label", { class: "slider" }, "Step", this.slider),
        h("label", {}, "Speed", this.speed),
        h("label", {}, "Chains", this.chains),
        h("label", {}, "Direction", this.direction),
      ),
      this.told,
      h(
        "div",
        { class: "columns" },
        this.fields,
        h(
          "aside",
          { class: "panel" },
          h("h2", {}, "What this step draws from"),
          this.law,
          h(
            "p",
            { class: "faint" },
            "The bars are the law of the site that this step draws, in the first chain; the mark shows what was drawn.",
          ),
        ),
      ),
    );
    requestAnimationFrame((time) => this.frame(time));
  }

  get options() {
    const model = this.about.models.find((own) => own.name === state.model);
    const what = state.direction === "forward" ? "noise" : "watch";
    return {
      model,
      cannot:
        model?.cannot[what] ?? (Object.keys(state.clamp).length && what === "watch" ? model?.cannot.hold : undefined),
    };
  }

  async begin() {
    this.stop();
    this.pause();
    this.direction.value = state.direction;
    this.chains.value = state.chains;
    this.law.replaceChildren();
    const { cannot } = this.options;
    this.fields.replaceChildren();
    this.chain = null;
    if (cannot) {
      this.told.textContent = cannot;
      return;
    }
    this.told.textContent = Object.keys(state.clamp).length
      ? "Weighing particles that hold what is held…"
      : "Beginning…";
    this.stopping = new AbortController();
    const fields = {
      model: state.model,
      seed: state.seed,
      label: state.label,
      chains: state.chains,
      clamp: state.clamp,
      direction: state.direction,
    };
    if (state.direction === "forward" && state.row) fields.row = state.row;
    try {
      await stream("watch", fields, this.stopping.signal, (result) => this.take(result));
      say(`${this.chain.steps.length} steps are ready`);
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  take(result) {
    if (result.kind === "start") {
      this.chain = new Chain(result.tokens);
      this.total = result.steps;
      this.slider.max = String(result.steps);
      if (this.paced !== result.steps)
        this.speed.value = String(
          Math.round((100 * Math.log(Math.max(3, result.steps / SECONDS))) / Math.log(FASTEST)),
        );
      this.paced = result.steps;
      const room = Math.max(60, Math.min(420, (this.fields.clientWidth || 600) / Math.min(state.chains, 3) - 14));
      this.list = result.tokens.map(
        (_, chain) =>
          new Field(this.about, { room: state.chains > 6 ? Math.min(room, 150) : room, label: `chain ${chain + 1}` }),
      );
      this.fields.replaceChildren(...this.list.map((field) => field.canvas));
      this.go(0);
    }
    if (result.kind === "steps") {
      result.steps.forEach((step) => this.chain.add(step));
      if (this.chain.at === 0) this.describe();
    }
  }

  stop() {
    this.stopping?.abort();
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.chain && this.chain.at >= this.total) this.go(0);
    this.playing = true;
    this.play.textContent = "Pause";
    this.due = 0;
    return undefined;
  }

  pause() {
    this.playing = false;
    this.play.textContent = "Play";
  }

  jump(steps) {
    this.pause();
    if (this.chain) this.go(this.chain.at + steps);
  }

  // Steps per second, from 1 to 2000 on a logarithmic scale.
  get pace() {
    return FASTEST ** (Number(this.speed.value) / 100);
  }

  frame(time) {
    if (this.playing && this.chain && !this.place.hidden) {
      this.due += Math.min(0.25, (time - (this.before ?? time)) / 1000) * this.pace;
      const steps = Math.floor(this.due);
      if (steps) {
        this.due -= steps;
        this.go(this.chain.at + steps);
        this.frames += 1;
      }
      if (this.chain.at >= this.total) this.pause();
    }
    this.before = time;
    requestAnimationFrame((next) => this.frame(next));
  }

  go(wanted) {
    if (!this.chain) return;
    const from = this.chain.at;
    this.chain.go(wanted);
    const [first, last] = [Math.min(from, this.chain.at), Math.max(from, this.chain.at)];
    const few = first < last && last - first <= FEW;
    const touched = few ? this.chain.steps.slice(Math.max(0, first - 1), last) : [];
    this.list.forEach((field, chain) => {
      const site = this.chain.last?.s ? this.chain.last.s[chain] : -1;
      const shown = { tokens: this.chain.now[chain], site };
      if (!few || touched.some((step) => step.all)) field.show(shown);
      else {
        field.shown = { ...field.shown, ...shown };
        new Set(touched.map((step) => step.s[chain])).forEach((own) => field.paint(own));
      }
    });
    this.slider.value = String(this.chain.at);
    this.describe();
  }

  describe() {
    const step = this.chain.last;
    const count = `step ${this.chain.at} of ${this.total}`;
    this.slider.setAttribute("aria-valuetext", count);
    if (!step) {
      this.told.textContent = `${count}: ${state.direction === "forward" ? "a configuration" : "noise"}`;
      this.law.replaceChildren();
      return;
    }
    const where = step.s ? ` · site ${this.about.names[step.s[0]]}` : " · all sites";
    this.told.textContent = `${count} · time ${step.t}${where}`;
    if (step.p) this.law.replaceChildren(lawOf(step, this.about, this.list[0].palettes));
  }
}
