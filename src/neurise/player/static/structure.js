// Structure: the learnt couplings as a matrix or a graph, above a threshold, with the true ones where they are known.

import { explained, stream } from "./api.js";
import { h, number, s } from "./dom.js";
import { arranged } from "./geometry.js";
import { state } from "./state.js";

export class Structure {
  constructor(place, about) {
    this.place = place;
    this.about = about;
    this.kind = h(
      "select",
      { id: "structure-kind", onchange: () => this.draw() },
      h("option", { value: "graph" }, "graph"),
      h("option", { value: "matrix" }, "matrix"),
    );
    this.truth = h("input", { type: "checkbox", id: "truth", disabled: true, onchange: () => this.draw() });
    this.threshold = h("input", {
      type: "range",
      id: "threshold",
      min: "0",
      max: "100",
      value: "0",
      oninput: () => this.draw(),
    });
    this.told = h("p", { class: "faint", id: "structure-told", role: "status" });
    this.detail = h(
      "p",
      { id: "pair", "aria-live": "polite" },
      "Point at a link or a cell, or move through them with the Tab key.",
    );
    this.picture = h("div", { id: "couplings" });
    this.list = h("div", { class: "wide" });
    place.append(
      h(
        "div",
        { class: "bar" },
        h("label", {}, "Show as", this.kind),
        h("label", { class: "slider" }, "Threshold", this.threshold),
        h("label", {}, this.truth, "true couplings"),
      ),
      this.told,
      h(
        "div",
        { class: "columns" },
        this.picture,
        h("aside", { class: "panel" }, h("h2", {}, "Pair"), this.detail, h("h2", {}, "Strongest"), this.list),
      ),
    );
  }

  stop() {
    this.stopping?.abort();
  }

  async begin() {
    this.stop();
    this.found = null;
    this.picture.replaceChildren();
    this.list.replaceChildren();
    this.told.textContent = "Asking the model about all pairs…";
    this.stopping = new AbortController();
    try {
      await stream("couplings", { model: state.model }, this.stopping.signal, (result) => {
        if (result.kind === "couplings") this.take(result);
      });
    } catch (error) {
      this.told.textContent = explained(error) ?? this.told.textContent;
    }
  }

  take(result) {
    this.found = result;
    this.truth.disabled = !result.truth;
    this.largest = Math.max(
      1e-9,
      ...result.couplings.flat().map((value) => Math.abs(value ?? 0)),
      ...(result.truth ?? []).flat().map((value) => Math.abs(value ?? 0)),
    );
    this.threshold.value = String(Math.round((100 * (result.threshold ?? 0)) / this.largest));
    this.draw();
  }

  get least() {
    return (Number(this.threshold.value) / 100) * this.largest;
  }

  pairs(matrix) {
    const found = [];
    for (let i = 0; i < matrix.length; i++)
      for (let j = 0; j < i; j++)
        if (matrix[i][j] !== null && Math.abs(matrix[i][j]) > this.least) found.push([j, i, matrix[i][j]]);
    return found.sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
  }

  describe(i, j) {
    const { couplings, errors, truth } = this.found;
    const true_ = truth ? `, true ${number(truth[i][j])}` : "";
    return `${this.about.names[i]} – ${this.about.names[j]}: J = ${number(couplings[i][j])} ± ${number(errors[i][j])}${true_}`;
  }

  draw() {
    if (!this.found) return;
    const matrix = this.truth.checked ? this.found.truth : this.found.couplings;
    const pairs = this.pairs(matrix);
    this.told.textContent = `${pairs.length} of ${(matrix.length * (matrix.length - 1)) / 2} pairs above |J| = ${number(this.least)}${this.truth.checked ? " (true couplings)" : `, from ${this.found.rows} contexts`}`;
    this.threshold.setAttribute("aria-valuetext", `|J| above ${number(this.least)}`);
    this.picture.replaceChildren(this.kind.value === "matrix" ? this.matrix(matrix) : this.graph(pairs));
    this.list.replaceChildren(
      h(
        "table",
        {},
        h("tbody", {}, ...pairs.slice(0, 12).map(([i, j]) => h("tr", {}, h("td", {}, this.describe(i, j))))),
      ),
    );
  }

  // Blue binds alike, orange unlike; a link that is unlike is dashed too.
  look(value) {
    return {
      colour: value > 0 ? "#0072b2" : "#d55e00",
      dash: value > 0 ? "" : "5 3",
      strength: Math.abs(value) / this.largest,
    };
  }

  hover(element, i, j) {
    const tell = () => {
      this.detail.textContent = this.describe(i, j);
    };
    element.addEventListener("pointerenter", tell);
    element.addEventListener("focus", tell);
    return element;
  }

  graph(pairs) {
    const room = 420;
    const place = arranged(
      {
        ...this.about.layout,
        kind: ["lattice", "image", "graph"].includes(this.about.layout.kind) ? this.about.layout.kind : "graph",
        edges: this.about.layout.edges.length ? this.about.layout.edges : pairs.map(([i, j]) => [i, j]),
      },
      this.about.symbols.length,
      room,
    );
    const centre = (site) => [
      place.boxes[site].x + place.boxes[site].w / 2,
      place.boxes[site].y + place.boxes[site].h / 2,
    ];
    const svg = s("svg", {
      class: "chart",
      viewBox: `-10 -10 ${place.width + 20} ${place.height + 20}`,
      role: "group",
      "aria-label": `graph of ${pairs.length} couplings`,
    });
    for (const [i, j, value] of pairs.slice(0, 800)) {
      const [[x1, y1], [x2, y2]] = [centre(i), centre(j)];
      const { colour, dash, strength } = this.look(value);
      // Links between sites that are far apart, around a periodic lattice say, are bent.
      const bend = Math.hypot(x2 - x1, y2 - y1) > 1.7 * place.boxes[0].w + 40 ? 26 : 0;
      const middle = `${(x1 + x2) / 2 + (bend * (y2 - y1)) / (Math.abs(y2 - y1) + 1)} ${(y1 + y2) / 2 - (bend * (x2 - x1)) / (Math.abs(x2 - x1) + 1)}`;
      svg.append(
        this.hover(
          s("path", {
            d: `M${x1} ${y1}Q${middle} ${x2} ${y2}`,
            fill: "none",
            stroke: colour,
            "stroke-width": 1 + 5 * strength,
            "stroke-dasharray": dash,
            tabindex: "0",
            role: "img",
            "aria-label": this.describe(i, j),
          }),
          i,
          j,
        ),
      );
    }
    this.about.names.forEach((name, site) => {
      const [x, y] = centre(site);
      svg.append(
        s("circle", { cx: x, cy: y, r: 8, fill: "var(--panel)", stroke: "var(--faint)" }),
        s("text", { x, y: y + 4, "text-anchor": "middle", "aria-hidden": "true" }, name.slice(0, 4)),
      );
    });
    return svg;
  }

  matrix(values) {
    const n = values.length;
    const cell = 400 / n;
    const svg = s("svg", {
      class: "chart",
      viewBox: "0 0 400 400",
      role: "group",
      "aria-label": `matrix of couplings, ${n} by ${n}`,
    });
    values.forEach((row, i) =>
      row.forEach((value, j) => {
        if (i === j || value === null || Math.abs(value) <= this.least) return;
        const { colour, strength } = this.look(value);
        svg.append(
          this.hover(
            s("rect", {
              x: j * cell,
              y: i * cell,
              width: cell * 0.95,
              height: cell * 0.95,
              fill: colour,
              "fill-opacity": 0.15 + 0.85 * strength,
              tabindex: j < i ? "0" : "-1",
              role: "img",
              "aria-label": this.describe(i, j),
            }),
            i,
            j,
          ),
        );
      }),
    );
    svg.append(s("rect", { x: 0, y: 0, width: 400, height: 400, fill: "none", stroke: "var(--line)" }));
    return svg;
  }
}
