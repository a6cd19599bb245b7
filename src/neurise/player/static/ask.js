// Hold and ask: hold sites at symbols, and see what follows for the others.

import { explained, stream } from "./api.js";
import { bars } from "./charts.js";
import { h, number } from "./dom.js";
import { Field, thumb } from "./field.js";
import { css } from "./palette.js";
import { change, state, undo } from "./state.js";

export class Ask {
  constructor(place, about) {
    this.place = place;
    this.about = about;
    this.brush = 1;
    this.site = 0;
    const room = Math.min(460, document.documentElement.clientWidth - 40);
    this.field = new Field(about, {
      room,
      label: "Field: click or press Enter to hold a site, Delete to let it go, arrows to move",
      onpaint: (site, phase) => this.paint(site, phase),
      onlook: (site) => this.look(site),
    });
    this.field.canvas.id = "ask-field";
    const most = Math.max(...about.symbols.map((own) => own.length));
    const named = about.symbols.find((own) => own.length === most);
    const palette = this.field.palettes[about.symbols.indexOf(named)];
    this.swatches = h(
      "div",
      { class: "swatches", role: "radiogroup", "aria-label": "Symbol to hold" },
      ...named.map((symbol, token) => {
        const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = css(palette[token]);
        return h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "brush",
            value: String(token),
            checked: token === 1,
            onchange: () => {
              this.brush = token;
            },
          }),
          swatch,
          h("span", { class: "symbol" }, about.layout.kind === "table" ? `symbol ${token + 1}` : symbol),
        );
      }),
    );
    this.told = h("p", { class: "faint", id: "ask-told", role: "status" });
    this.warning = h("p", { class: "warning", id: "few", hidden: true });
    this.progress = h("progress", { max: 1, value: 0, "aria-label": "How far the marginals are", id: "ask-progress" });
    this.detail = h("div", { id: "site-law" });
    this.rows = h("div", { class: "thumbs", id: "ask-rows" });
    place.append(
      h(
        "div",
        { class: "bar" },
        this.swatches,
        h("button", { type: "button", id: "undo", onclick: () => undo() }, "Undo"),
        h("button", { type: "button", id: "clear", onclick: () => change({ clamp: {} }, { undoable: true }) }, "Clear"),
        h("button", { type: "button", id: "share", onclick: () => this.share() }, "Copy address"),
      ),
      h(
        "div",
        { class: "columns" },
        h("div", {}, this.field.canvas, this.progress, this.told, this.warning),
        h(
          "aside",
          { class: "panel" },
          h("h2", { id: "site-name" }, "Site"),
          this.detail,
          h("h2", {}, "Rows that hold this"),
          this.rows,
        ),
      ),
    );
  }

  async share() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.told.textContent = "The address is copied: it shows the same sites held.";
    } catch {
      this.told.textContent = `Copy the address of this page: ${location.href}`;
    }
  }

  // Hold, let go or repaint: a stroke holds if it begins on a site that is not held at this symbol, and else lets go.
  paint(site, phase) {
    if (phase === "end") return this.begin();
    if (phase === "clear" || phase === "begin") {
      this.letting = phase === "clear" || state.clamp[site] === this.brush;
      this.fresh = true;
    }
    const clamp = { ...state.clamp };
    if (this.letting) delete clamp[site];
    else if (this.brush < this.about.symbols[site].length) clamp[site] = this.brush;
    this.quiet = true;
    change({ clamp }, { undoable: this.fresh });
    this.quiet = false;
    this.fresh = false;
    this.draw();
    this.look(site);
    if (phase === "clear") this.begin();
    return undefined;
  }

  look(site) {
    this.site = site;
    this.place.querySelector("#site-name").textContent =
      `Site ${this.about.names[site]}${site in state.clamp ? ", held" : ""}`;
    if (this.about.layout.kind === "table") this.name(site);
    const law = this.found?.mean[site];
    if (!law) return;
    const held = state.clamp[site];
    const rows = this.about.symbols[site].map((symbol, token) => ({
      name: symbol,
      value: held === undefined ? law[token] : Number(token === held),
      error: held === undefined ? this.found.error[site][token] : 0,
      colour: css(this.field.palettes[site][token]),
      marked: token === held,
    }));
    const most = rows.length > 16 ? rows.sort((a, b) => b.value - a.value).slice(0, 16) : rows;
    this.detail.replaceChildren(bars(`marginal of site ${this.about.names[site]}`, most));
  }

  // Columns of a table have symbols of their own: the brush is named after those of the site that is pointed at.
  name(site) {
    this.swatches.querySelectorAll("label").forEach((label, token) => {
      label.hidden = token >= this.about.symbols[site].length;
      label.querySelector(".symbol").textContent = this.about.symbols[site][token] ?? "";
      const colour = this.field.palettes[site][token];
      if (colour) label.querySelector(".swatch").style.background = css(colour);
    });
  }

  draw() {
    this.field.show({ laws: this.found?.mean ?? null, errors: this.found?.error ?? null, held: state.clamp });
  }

  stop() {
    this.stopping?.abort();
  }

  async begin() {
    if (this.quiet) return;
    this.stop();
    this.draw();
    const model = this.about.models.find((own) => own.name === state.model);
    const held = Object.keys(state.clamp).length;
    if (held && model?.cannot.hold) {
      this.told.textContent = model.cannot.hold;
      this.found = null;
      this.draw();
      return;
    }
    const asked = performance.now();
    this.first = null;
    this.progress.value = 0;
    this.stopping = new AbortController();
    try {
      await stream(
        "ask",
        { model: state.model, seed: state.seed, label: state.label, clamp: state.clamp },
        this.stopping.signal,
        (result) => {
          this.progress.value = result.done;
          if (result.kind !== "marginals") return;
          this.first ??= performance.now() - asked;
          this.take(result, held);
        },
      );
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  take(result, held) {
    this.found = result;
    this.draw();
    this.look(this.site);
    this.told.textContent = `${held} held · worth ${number(result.effective, 0)} independent rows · first answer after ${Math.round(this.first)} ms`;
    this.told.dataset.first = Math.round(this.first);
    this.warning.hidden = !result.low;
    this.warning.textContent = `What is held is unlikely along the way: this rests on about ${number(result.effective, 0)} effective samples.`;
    if (result.rows)
      this.rows.replaceChildren(...result.rows.map((row, place) => thumb(this.about, row, `row ${place + 1}`)));
  }
}
