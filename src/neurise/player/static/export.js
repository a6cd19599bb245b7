// Export what is on the screen: pictures, an animation of the chain, rows, and the Python that repeats it.

import { post } from "./api.js";
import { h, s, say } from "./dom.js";
import { gif } from "./gif.js";
import { css, inkOn } from "./palette.js";
import { python } from "./python.js";
import { state } from "./state.js";

const MOST_FRAMES = 120;

function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The fields on the screen, side by side, on one canvas.
function picture(fields) {
  const gap = 16;
  const canvas = h("canvas", {
    width: fields.reduce((sum, field) => sum + field.canvas.width + gap, -gap),
    height: Math.max(...fields.map((field) => field.canvas.height)),
  });
  const pen = canvas.getContext("2d");
  let x = 0;
  fields.forEach((field) => {
    pen.drawImage(field.canvas, x, 0);
    x += field.canvas.width + gap;
  });
  return canvas;
}

function drawing(fields) {
  const parts = [];
  let left = 0;
  for (const field of fields) {
    const { tokens, laws, held } = field.shown;
    const group = s("g", { transform: `translate(${left} 0)` });
    field.place.boxes.forEach((box, site) => {
      const law = laws && !(site in held) ? laws[site] : null;
      const token = site in held ? held[site] : law ? law.indexOf(Math.max(...law)) : tokens?.[site];
      const colour = field.palettes[site][token];
      group.append(
        s("rect", {
          x: box.x,
          y: box.y,
          width: box.w,
          height: box.h,
          fill: colour ? css(colour) : "#c9ced4",
          "fill-opacity": law ? Math.max(...law) : 1,
          stroke: site in held ? "#000" : "none",
        }),
      );
      if (colour && box.w >= 16 && field.about.layout.kind !== "image")
        group.append(
          s(
            "text",
            {
              x: box.x + box.w / 2,
              y: box.y + box.h / 2 + 4,
              "text-anchor": "middle",
              "font-size": 12,
              "font-family": "sans-serif",
              fill: inkOn(colour),
            },
            field.about.symbols[site][token],
          ),
        );
    });
    parts.push(group);
    left += field.place.width + 16;
  }
  const height = Math.max(...fields.map((field) => field.place.height));
  const svg = s(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${left - 16} ${height}`, width: left - 16, height },
    ...parts,
  );
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
}

// Every so-manyth state of the chain, all of them if they are few.
function animation(watch) {
  const { chain, list } = watch;
  const field = list[0];
  const scale = Math.max(1, Math.round(Math.min(260 / field.place.width, 1) * 100) / 100);
  const width = Math.round(list.length * field.place.width * scale + (list.length - 1) * 8);
  const height = Math.round(field.place.height * scale);
  const palette = [
    [201, 206, 212],
    [255, 255, 255],
  ];
  const [mask, paper] = [0, 1];
  const known = new Map();
  // One palette for all sites: a colour that several share is one entry, and of more than 256 the last stand in for the rest.
  const entry = (colour) => {
    const key = css(colour);
    if (!known.has(key) && palette.length < 256) known.set(key, palette.push(colour) - 1);
    return known.get(key) ?? 255;
  };
  const before = chain.at;
  const count = Math.min(MOST_FRAMES, chain.steps.length + 1);
  const frames = [];
  for (let number = 0; number < count; number++) {
    chain.go(Math.round((number * chain.steps.length) / Math.max(1, count - 1)));
    const frame = new Uint8Array(width * height).fill(paper);
    chain.now.forEach((row, copy) =>
      field.place.boxes.forEach((box, site) => {
        const colour = field.palettes[site][row[site]];
        const token = colour ? entry(colour) : mask;
        const left = Math.round(copy * (field.place.width * scale + 8) + box.x * scale);
        for (let y = Math.round(box.y * scale); y < Math.round((box.y + box.h) * scale); y++)
          frame.fill(token, y * width + left, y * width + left + Math.round(box.w * scale));
      }),
    );
    frames.push(frame);
  }
  chain.go(before);
  return gif(width, height, palette, frames, Math.max(3, Math.round(600 / count)));
}

export class Export {
  constructor(place, about, views) {
    this.about = about;
    this.views = views;
    const button = (id, name, run) =>
      h(
        "button",
        {
          type: "button",
          id,
          onclick: async () => {
            try {
              await run();
            } catch (error) {
              say(error.message, true);
            }
          },
        },
        name,
      );
    this.code = h("pre", { id: "python", hidden: true, tabindex: "0", "aria-label": "Python that repeats this" });
    place.append(
      h(
        "div",
        { class: "bar" },
        h("span", { class: "faint" }, "Export"),
        button(
          "export-png",
          "PNG",
          () => new Promise((done) => picture(this.fields()).toBlob((blob) => done(save(blob, "neurise.png")))),
        ),
        button("export-svg", "SVG", () => save(drawing(this.fields()), "neurise.svg")),
        button("export-gif", "GIF of the chain", () => this.gif()),
        button("export-csv", "CSV of samples", () => this.csv()),
        button("export-python", "Python", () => this.python()),
      ),
      this.code,
    );
  }

  fields() {
    const view = this.views[state.view];
    const found = state.view === "watch" ? view.list : view.field ? [view.field] : this.views.watch?.list;
    if (!found?.length) throw new Error("There is no field on this view to save; go to Watch or Hold and ask.");
    return found;
  }

  gif() {
    const watch = this.views.watch;
    if (!watch?.chain?.steps.length) throw new Error("There is no chain yet: go to Watch, and let it run.");
    save(animation(watch), "neurise.gif");
  }

  async csv() {
    const fields = { model: state.model, seed: state.seed, label: state.label, clamp: state.clamp, rows: 1000 };
    save(await (await post("samples", fields)).blob(), "neurise.csv");
  }

  async python() {
    this.code.hidden = !this.code.hidden;
    this.code.textContent = python(state, this.about);
    try {
      await navigator.clipboard.writeText(this.code.textContent);
      say("The Python lines are copied");
    } catch {
      /* they can be read and copied by hand */
    }
  }
}
