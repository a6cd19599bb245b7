// Compare: models and data side by side, with the same sites held and the same seed.

import { explained, stream } from "./api.js";
import { SERIES, histogram, legend, scatter } from "./charts.js";
import { h, number } from "./dom.js";
import { thumb } from "./field.js";
import { state } from "./state.js";

export class Compare {
  constructor(place, about) {
    this.place = place;
    this.about = about;
    this.chosen = new Set(about.models.map((model) => model.name));
    this.boxes = h(
      "fieldset",
      { class: "bar" },
      h("legend", { class: "faint" }, "Models"),
      ...about.models.map((model) =>
        h(
          "label",
          {},
          h("input", {
            type: "checkbox",
            value: model.name,
            checked: true,
            onchange: (event) => this.choose(event.target),
          }),
          model.name,
        ),
      ),
    );
    this.rows = h("input", {
      type: "number",
      id: "compare-rows",
      min: "100",
      max: "20000",
      step: "100",
      value: about.symbols.length > 100 ? "500" : "2000",
      onchange: () => this.begin(),
    });
    this.told = h("p", { class: "faint", id: "compare-told", role: "status" });
    this.entries = h("div", { class: "entries", id: "entries" });
    this.charts = h("div", { class: "charts" });
    this.top = h("div", { class: "wide", id: "top" });
    place.append(
      h("div", { class: "bar" }, this.boxes, h("label", {}, "Rows", this.rows)),
      this.told,
      this.entries,
      this.charts,
      this.top,
    );
  }

  choose(box) {
    if (box.checked) this.chosen.add(box.value);
    else this.chosen.delete(box.value);
    this.begin();
  }

  stop() {
    this.stopping?.abort();
  }

  async begin() {
    this.stop();
    const models = this.about.models.map((model) => model.name).filter((name) => this.chosen.has(name));
    this.found = new Map();
    this.reference = null;
    [this.entries, this.charts, this.top].forEach((part) => part.replaceChildren());
    if (!models.length) {
      this.told.textContent = "Choose a model.";
      return;
    }
    this.told.textContent = "Drawing…";
    this.stopping = new AbortController();
    const fields = {
      models,
      seed: state.seed,
      label: state.label,
      clamp: state.clamp,
      rows: Math.max(100, Math.min(20000, Math.round(Number(this.rows.value)) || 2000)),
    };
    try {
      await stream("compare", fields, this.stopping.signal, (result) => this.take(result));
      this.told.textContent = this.summary();
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  summary() {
    const held = Object.keys(state.clamp).length;
    const of = this.reference.of
      ? `measured against ${this.reference.of}`
      : "there are no data to measure against; give --data";
    return `${held ? `${held} sites held · ` : ""}seed ${state.seed} · ${of}`;
  }

  take(result) {
    if (result.kind === "progress") {
      this.told.textContent = `Drawing from ${result.name}: ${Math.round(100 * result.done)} %`;
      return;
    }
    if (result.kind === "reference") this.reference = result;
    if (result.kind === "entry") this.found.set(result.name, result);
    if (result.kind === "exact") this.found.get(result.name).exact = result.top;
    if (result.kind === "greyed")
      this.entries.append(
        h(
          "div",
          { class: "panel entry greyed", "data-name": result.name },
          h("h2", {}, result.name),
          h("p", {}, result.reason),
        ),
      );
    if (result.kind === "entry") this.entries.append(this.entry(result));
    this.draw();
  }

  entry(result) {
    const floor = this.reference.floor;
    const lines = [];
    if (result.tv !== null) lines.push(["total variation", result.tv, floor.tv]);
    if (result.rms !== null && this.reference.of) lines.push(["correlations, rms", result.rms, floor.rms]);
    return h(
      "div",
      { class: "panel entry", "data-name": result.name },
      h("h2", {}, result.name),
      h(
        "div",
        { class: "thumbs" },
        ...result.rows.map((row, place) => thumb(this.about, row, `${result.name}, row ${place + 1}`, 48)),
      ),
      h(
        "table",
        { class: "small" },
        h(
          "tbody",
          {},
          ...lines.map(([name, value, least]) =>
            h(
              "tr",
              { "data-measure": name },
              h("th", { scope: "row" }, name, h("br"), least === null ? "" : `floor ${number(least)}`),
              h("td", { class: "number" }, number(value)),
            ),
          ),
        ),
      ),
      h("p", { class: "faint" }, `${result.count} rows`),
    );
  }

  draw() {
    const entries = [...this.found.values()];
    if (!this.reference || !entries.length) return;
    const colour = (name) => SERIES[entries.findIndex((own) => own.name === name) % 8];
    const parts = [];
    if (this.reference.correlations) {
      parts.push(
        h(
          "figure",
          { id: "correlations" },
          h(
            "figcaption",
            {},
            `Correlations of pairs, against those of ${this.reference.of}; the band is two floors wide on either side`,
          ),
          scatter(
            "correlations of pairs",
            this.reference.correlations,
            entries.map((own) => ({ name: own.name, values: own.correlations, colour: colour(own.name) })),
            this.reference.floor.rms,
            "true",
            "drawn",
          ),
        ),
      );
    }
    if (this.reference.energy) {
      const exact = { name: "the exact law", heights: this.reference.energy.heights, filled: true };
      parts.push(
        h(
          "figure",
          { id: "energies" },
          h("figcaption", {}, "Energies −log μ; shaded: the exact law"),
          histogram(
            "energies",
            this.reference.energy.edges,
            [...entries.map((own) => ({ name: own.name, heights: own.energy, colour: colour(own.name) })), exact],
            "−log μ",
          ),
        ),
      );
    }
    this.charts.replaceChildren(legend(entries.map((own) => ({ name: own.name, colour: colour(own.name) }))), ...parts);
    if (this.reference.top) this.top.replaceChildren(this.table(entries));
  }

  table(entries) {
    return h(
      "table",
      {},
      h(
        "caption",
        { class: "faint" },
        "The most likely configurations: exact probability, and how often each was drawn (the model's own exact law in brackets)",
      ),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "configuration"),
          h("th", { scope: "col", class: "number" }, "exact"),
          ...entries.map((own) => h("th", { scope: "col", class: "number" }, own.name)),
        ),
      ),
      h(
        "tbody",
        {},
        ...this.reference.top.map((best, place) =>
          h(
            "tr",
            {},
            h("td", {}, thumb(this.about, best.row, `configuration ${place + 1}`, 40)),
            h("td", { class: "number" }, number(best.p, 4)),
            ...entries.map((own) =>
              h(
                "td",
                { class: "number" },
                `${number(own.top[place], 4)}${own.exact?.length ? ` (${number(own.exact[place], 4)})` : ""}`,
              ),
            ),
          ),
        ),
      ),
    );
  }
}
