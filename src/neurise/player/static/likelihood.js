// Likelihood: type, paste, draw or drop a row, and see how likely it is and why.

import { explained, post, stream } from "./api.js";
import { h, number } from "./dom.js";
import { Field, thumb } from "./field.js";
import { change, state } from "./state.js";

export class Likelihood {
  constructor(place, about) {
    this.place = place;
    this.about = about;
    this.text = h("textarea", {
      id: "row",
      rows: "3",
      spellcheck: "false",
      "aria-label": "Symbols of a row, one after another or with commas between",
    });
    this.told = h("p", { id: "row-told", role: "status" });
    const room = Math.min(340, document.documentElement.clientWidth - 60);
    this.field = new Field(about, {
      room,
      label: "Row: click or press Enter to change a site",
      onpaint: (site, phase) => this.paint(site, phase),
    });
    this.field.canvas.id = "row-field";
    this.surprises = new Field(
      {
        ...about,
        symbols: about.symbols.map(() => Array.from({ length: 16 }, (_, level) => String(level))),
        layout: about.layout,
      },
      { room, label: "Surprise of every site, dark is expected and light is surprising" },
    );
    this.nearest = h("div", { class: "thumbs", id: "nearest" });
    this.changes = h("div", { class: "wide", id: "changes" });
    this.given = h("p", { class: "faint" });
    const file = h("input", {
      type: "file",
      id: "row-file",
      "aria-label": "File with a row",
      onchange: async () => this.read(await file.files[0].slice(0, 200000).text()),
    });
    const drop = h(
      "div",
      { class: "drop" },
      h("label", {}, "Row"),
      this.text,
      h(
        "div",
        { class: "bar" },
        h(
          "button",
          { type: "button", class: "first", id: "read-row", onclick: () => this.read(this.text.value) },
          "Score this row",
        ),
        h("button", { type: "button", id: "draw-row", onclick: () => this.drawn() }, "Draw one"),
        file,
      ),
    );
    drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", async (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      const dropped = event.dataTransfer.files[0];
      this.read(dropped ? await dropped.slice(0, 200000).text() : event.dataTransfer.getData("text"));
    });
    place.append(
      drop,
      this.told,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "fields" },
          h("figure", {}, this.field.canvas, h("figcaption", {}, "the row: click a site to change it")),
          h(
            "figure",
            { id: "surprise" },
            this.surprises.canvas,
            h("figcaption", {}, "surprise of every site: light is surprising"),
          ),
        ),
        h(
          "aside",
          { class: "panel" },
          this.given,
          h("h2", {}, "Nearest rows of the data"),
          this.nearest,
          h("h2", {}, "Changes of one site that raise it most"),
          this.changes,
        ),
      ),
    );
  }

  stop() {
    this.stopping?.abort();
  }

  begin() {
    if (state.row) this.score(state.row);
    else this.drawn();
  }

  async drawn() {
    this.stop();
    this.stopping = new AbortController();
    try {
      await stream(
        "ask",
        { model: state.model, seed: Math.floor(Math.random() * 1e9), label: state.label, rows: 64 },
        this.stopping.signal,
        (result) => {
          if (result.rows) this.score(result.rows[0]);
        },
      );
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  async read(text) {
    this.stop();
    this.reads = (this.reads ?? 0) + 1;
    const number = this.reads;
    try {
      const { row } = await (await post("read", { text })).json();
      if (number === this.reads) this.score(row);
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  paint(site, phase) {
    if (phase === "end" || !state.row) return;
    const row = [...state.row];
    if (phase === "go on") row[site] = this.brush;
    else row[site] = phase === "clear" ? 0 : (row[site] + 1) % this.about.symbols[site].length;
    if (phase === "begin") this.brush = row[site];
    if (row[site] < this.about.symbols[site].length) this.score(row);
  }

  async score(row) {
    this.stop();
    this.quiet = true;
    change({ row });
    this.quiet = false;
    this.field.show({ tokens: row });
    const single = this.about.symbols.every((own) => own.every((symbol) => symbol.length === 1));
    this.text.value = row.map((token, site) => this.about.symbols[site][token]).join(single ? "" : ",");
    this.stopping = new AbortController();
    try {
      await stream("score", { model: state.model, label: state.label, row }, this.stopping.signal, (result) =>
        this.take(result),
      );
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  take(result) {
    if (result.kind === "score") {
      const name = {
        log_prob: "log-probability",
        elbo: "lower bound on the log-probability",
        pseudo_log_likelihood: "pseudo-log-likelihood",
      }[result.of];
      this.told.textContent = `${name}: ${result.log_prob === null ? "−∞ (impossible)" : number(result.log_prob)}${result.error ? ` ± ${number(result.error)}` : ""} nats`;
      this.told.dataset.value = result.log_prob;
      this.given.textContent = result.given;
      this.place.querySelector("#surprise").hidden = !result.surprise;
      const top = Math.max(1, ...(result.surprise ?? [0]).map((value) => value ?? 0));
      this.surprises.about.symbols = this.about.symbols.map(() =>
        Array.from({ length: 16 }, (_, level) => number((level * top) / 15, 1)),
      );
      if (result.surprise)
        this.surprises.show({
          tokens: result.surprise.map((value) => Math.min(15, Math.max(0, Math.round((15 * (value ?? top)) / top)))),
        });
    }
    if (result.kind === "nearest") {
      this.nearest.replaceChildren(
        ...result.rows.map(({ row, apart, count }) =>
          h(
            "figure",
            {},
            thumb(this.about, row, `data row, ${apart} sites apart`),
            h("figcaption", {}, `${apart} apart${count > 1 ? ` × ${count}` : ""}`),
          ),
        ),
      );
    }
    if (result.kind === "changes")
      this.changes.replaceChildren(
        result.reason ? h("p", { class: "faint" }, result.reason) : this.table(result.changes),
      );
  }

  table(changes) {
    const row = state.row;
    return h(
      "table",
      {},
      h(
        "tbody",
        {},
        ...changes.map(({ site, token, gain }) =>
          h(
            "tr",
            {},
            h(
              "td",
              {},
              `${this.about.names[site]}: ${this.about.symbols[site][row[site]]} → ${this.about.symbols[site][token]}`,
            ),
            h("td", { class: "number" }, `${gain > 0 ? "+" : ""}${number(gain)}`),
            h(
              "td",
              {},
              h(
                "button",
                { type: "button", onclick: () => this.score(Object.assign([...state.row], { [site]: token })) },
                "Make it",
              ),
            ),
          ),
        ),
      ),
    );
  }
}
