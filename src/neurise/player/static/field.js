// A field of sites on a canvas: tokens or shades, what is held, and where the cursor is. Sites can be clicked, painted by
// dragging, and reached by the arrow keys.

import { h, say } from "./dom.js";
import { arranged } from "./geometry.js";
import { colours, css, inkOn, mixed } from "./palette.js";

const theme = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme.clear());

// Colours of the style sheet, looked up once.
function themed(name) {
  if (!theme.has(name))
    theme.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888");
  return theme.get(name);
}

export class Field {
  constructor(about, { room = 360, label = "field", onpaint = null, onlook = null } = {}) {
    this.about = about;
    this.sites = about.symbols.length;
    this.states = Math.max(...about.symbols.map((own) => own.length));
    const bySize = new Map();
    this.palettes = about.symbols.map(({ length }) => {
      if (!bySize.has(length)) bySize.set(length, colours(length, about.layout.kind));
      return bySize.get(length);
    });
    this.onpaint = onpaint;
    this.onlook = onlook;
    this.cursor = -1;
    this.shown = { tokens: null, laws: null, errors: null, held: {}, site: -1 };
    this.canvas = h("canvas", {
      class: onpaint ? "" : "still",
      role: onpaint ? "application" : "img",
      "aria-label": label,
    });
    if (onpaint) this.listen();
    this.resize(room);
  }

  resize(room) {
    const pixels = Math.min(window.devicePixelRatio || 1, 2);
    this.place = arranged(this.about.layout, this.sites, room);
    this.margin = room < 120 ? 0 : 4;
    const width = this.place.width + 2 * this.margin;
    const height = this.place.height + 2 * this.margin;
    this.canvas.width = Math.ceil(width * pixels);
    this.canvas.height = Math.ceil(height * pixels);
    this.canvas.style.width = `${width}px`;
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(pixels, 0, 0, pixels, this.margin * pixels, this.margin * pixels);
    this.redraw();
  }

  show(shown) {
    this.shown = { tokens: null, laws: null, errors: null, held: {}, site: -1, ...shown };
    this.redraw();
  }

  redraw() {
    this.pen.clearRect(
      -this.margin,
      -this.margin,
      this.place.width + 2 * this.margin,
      this.place.height + 2 * this.margin,
    );
    if (this.about.layout.kind === "graph") this.links();
    for (let site = 0; site < this.sites; site++) this.paint(site);
  }

  links() {
    this.pen.strokeStyle = this.colour("--line");
    for (const [i, j] of this.about.layout.edges) {
      const [a, b] = [this.place.boxes[i], this.place.boxes[j]];
      this.pen.beginPath();
      this.pen.moveTo(a.x + a.w / 2, a.y + a.h / 2);
      this.pen.lineTo(b.x + b.w / 2, b.y + b.h / 2);
      this.pen.stroke();
    }
  }

  colour(name) {
    return themed(name);
  }

  // Draw one site: its colour, its symbol where there is room, an error bar for a law, and frames for held, drawn and cursor.
  paint(site) {
    const { tokens, laws, errors, held, site: drawn } = this.shown;
    const { x, y, w, h: height } = this.place.boxes[site];
    const pen = this.pen;
    const palette = this.palettes[site];
    const law = laws && !(site in held) ? laws[site].slice(0, palette.length) : null;
    const token = site in held ? held[site] : tokens?.[site];
    const isTable = this.about.layout.kind === "table";
    const fill = law ? mixed(law, palette, palette.length > (isTable ? 2 : 8)) : (palette[token] ?? null);
    const banded = law && palette.length > 2 && palette.length <= 8 && w >= 12 && !isTable;
    pen.fillStyle = fill ? css(fill) : this.colour("--mask");
    if (this.about.layout.kind === "graph") {
      pen.beginPath();
      pen.arc(x + w / 2, y + height / 2, w / 2, 0, 7);
      pen.fill();
    } else if (banded) this.bands(site, law);
    else pen.fillRect(x, y, w, height);
    if (fill && w >= 16 && this.about.layout.kind !== "image" && !banded && (this.margin || !isTable))
      this.write(site, law, token, fill);
    if (law && errors && w >= 26 && !banded) this.errorBar(site, law, errors[site], fill);
    const ring = Math.max(1, Math.min(4, w / 10));
    if (site in held) this.frame(x, y, w, height, ring, this.colour("--ink"));
    if (site === drawn) {
      this.frame(x, y, w, height, 2 * ring + 1, "#111"); // dark around light: seen on every colour
      this.frame(x, y, w, height, ring, "#fff");
    }
    if (site === this.cursor && document.activeElement === this.canvas)
      this.frame(x - 2, y - 2, w + 4, height + 4, 2, this.colour("--focus"));
  }

  // A law of several symbols as bands, as high as they are likely: their mixture would be mud.
  bands(site, law) {
    const { x, y, w, h: height } = this.place.boxes[site];
    let top = y;
    law.forEach((p, token) => {
      this.pen.fillStyle = css(this.palettes[site][token]);
      this.pen.fillRect(x, top, w, p * height);
      top += p * height;
    });
  }

  write(site, law, token, fill) {
    const { x, y, w, h: height } = this.place.boxes[site];
    const best = law ? law.indexOf(Math.max(...law)) : token;
    const symbol = this.about.symbols[site][best];
    const text = this.about.layout.kind === "table" ? `${this.about.names[site]}: ${symbol}` : symbol;
    this.pen.fillStyle = inkOn(fill);
    this.pen.font = `${Math.min(13, Math.max(9, height * 0.45))}px system-ui, sans-serif`;
    this.pen.textBaseline = "middle";
    this.pen.textAlign = this.about.layout.kind === "table" ? "left" : "center";
    this.pen.fillText(text, this.about.layout.kind === "table" ? x + 6 : x + w / 2, y + height / 2, w - 4);
  }

  // A small scale on the right edge: the probability of the likeliest symbol, from 0 at the bottom, and its standard error.
  errorBar(site, law, error, fill) {
    const { x, y, w, h: height } = this.place.boxes[site];
    const best = law.indexOf(Math.max(...law));
    const at = (p) => y + height - 3 - Math.max(0, Math.min(1, p)) * (height - 6);
    this.pen.strokeStyle = this.pen.fillStyle = inkOn(fill);
    this.pen.lineWidth = 1;
    this.pen.fillRect(x + w - 6, at(law[best]) - 1, 5, 2);
    this.pen.beginPath();
    this.pen.moveTo(x + w - 3.5, at(law[best] - error[best]));
    this.pen.lineTo(x + w - 3.5, at(law[best] + error[best]));
    this.pen.stroke();
  }

  frame(x, y, w, height, thick, colour) {
    this.pen.lineWidth = thick;
    this.pen.strokeStyle = colour;
    if (this.about.layout.kind === "graph") {
      this.pen.beginPath();
      this.pen.arc(x + w / 2, y + height / 2, (w - thick) / 2, 0, 7);
      this.pen.stroke();
    } else this.pen.strokeRect(x + thick / 2, y + thick / 2, w - thick, height - thick);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = (this.place.width + 2 * this.margin) / box.width;
    const x = (event.clientX - box.left) * scale - this.margin;
    const y = (event.clientY - box.top) * scale - this.margin;
    return this.place.boxes.findIndex(
      (own) => x >= own.x && x < own.x + own.w + 1 && y >= own.y && y < own.y + own.h + 1,
    );
  }

  listen() {
    const canvas = this.canvas;
    let last = -1;
    canvas.tabIndex = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = this.at(event);
      if (last >= 0) this.onpaint(last, "begin");
    });
    canvas.addEventListener("pointermove", (event) => {
      const site = this.at(event);
      if (site >= 0) this.onlook?.(site);
      if (!(event.buttons & 1) || site < 0 || site === last) return;
      last = site;
      this.onpaint(site, "go on");
    });
    canvas.addEventListener("pointerup", () => this.onpaint(-1, "end"));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.move(Math.max(0, this.cursor)));
    canvas.addEventListener("blur", () => this.redraw());
  }

  key(event) {
    const columns = this.place.boxes.filter((box) => box.y === this.place.boxes[0].y).length || 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    if (event.key in steps) this.move((this.cursor + steps[event.key] + this.sites) % this.sites);
    else if (event.key === "Enter" || event.key === " ") {
      this.onpaint(this.cursor, "begin");
      this.onpaint(-1, "end");
      this.tell();
    } else if (event.key === "Delete" || event.key === "Backspace") this.onpaint(this.cursor, "clear");
    else return;
    event.preventDefault();
  }

  move(site) {
    this.cursor = site;
    this.redraw();
    this.onlook?.(site);
    this.tell();
  }

  tell() {
    const { tokens, laws, held } = this.shown;
    const site = this.cursor;
    const token = held[site] ?? tokens?.[site];
    const symbol = token === undefined ? "" : (this.about.symbols[site][token] ?? "mask");
    const law = laws
      ? this.about.symbols[site]
          .map((own, t) => `${own} ${(100 * laws[site][t]).toFixed(0)}%`)
          .slice(0, 8)
          .join(", ")
      : "";
    say(`site ${this.about.names[site]}: ${site in held ? `held at ${symbol}` : law || symbol}`);
  }
}

// A small picture of one row.
export function thumb(about, row, label, room = 56) {
  const field = new Field(about, { room, label });
  field.show({ tokens: row });
  return field.canvas;
}
