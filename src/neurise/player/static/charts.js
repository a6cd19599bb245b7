// Small charts in SVG. Every one has a label for screen readers; series differ in colour and in shape.

import { number, s } from "./dom.js";

export const SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a7a7a", "#222222"];
const W = 320,
  H = 200,
  LEFT = 42,
  RIGHT = 8,
  TOP = 10,
  BOTTOM = 30;

function frame(label, xs, ys, xName, yName) {
  const x = (value) => LEFT + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (W - LEFT - RIGHT);
  const y = (value) => H - BOTTOM - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (H - TOP - BOTTOM);
  const svg = s(
    "svg",
    { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    s("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM }),
    s("line", { class: "axis", x1: LEFT, x2: LEFT, y1: TOP, y2: H - BOTTOM }),
    ...[0, 0.5, 1].map((part) =>
      s(
        "text",
        { x: LEFT - 4, y: y(ys[0] + part * (ys[1] - ys[0])) + 4, "text-anchor": "end" },
        number(ys[0] + part * (ys[1] - ys[0]), 2),
      ),
    ),
    ...[0, 0.5, 1].map((part) =>
      s(
        "text",
        {
          x: x(xs[0] + part * (xs[1] - xs[0])),
          y: H - BOTTOM + 13,
          "text-anchor": ["start", "middle", "end"][2 * part],
        },
        number(xs[0] + part * (xs[1] - xs[0]), 2),
      ),
    ),
    s("text", { x: (W + LEFT) / 2, y: H - 4, "text-anchor": "middle" }, xName),
    s("text", { x: LEFT + 6, y: TOP + 4, "text-anchor": "start" }, yName),
  );
  return { svg, x, y };
}

function range(values) {
  const known = values.filter((value) => Number.isFinite(value));
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

// Horizontal bars of a law, with error bars: rows are { name, value, error, colour, marked }.
export function bars(label, rows) {
  const height = 20,
    width = 260,
    left = 84;
  const right = rows.some((row) => row.error) ? 96 : 44;
  const svg = s("svg", {
    class: "chart",
    viewBox: `0 0 ${width + right} ${rows.length * height + 2}`,
    role: "img",
    "aria-label": label,
  });
  // Of many symbols each is unlikely: the bars are drawn larger then, and the numbers say what they are.
  const room = (width - left) / (rows.length > 8 ? Math.max(...rows.map((row) => row.value), 1e-9) : 1);
  rows.forEach(({ name, value, error, colour, marked }, place) => {
    const y = place * height;
    svg.append(
      s("text", { x: left - 6, y: y + 14, "text-anchor": "end" }, `${marked ? "▸ " : ""}${String(name).slice(0, 12)}`),
      s("rect", {
        x: left,
        y: y + 3,
        width: Math.max(0.5, value * room),
        height: height - 6,
        fill: colour,
        stroke: "currentColor",
        "stroke-width": marked ? 1.5 : 0.3,
      }),
      s("text", { x: width + 4, y: y + 14 }, `${number(value)}${error ? ` ±${number(error)}` : ""}`),
    );
    if (error) {
      const at = (p) => left + Math.max(0, Math.min(1, p)) * room;
      svg.append(
        s("line", {
          x1: at(value - error),
          x2: at(value + error),
          y1: y + height / 2,
          y2: y + height / 2,
          stroke: "currentColor",
          "stroke-width": 1.5,
        }),
      );
    }
  });
  return svg;
}

// Lines through points { name, points: [[x, y], …], dash }.
export function lines(label, series, xName, yName) {
  const points = series.flatMap((own) => own.points);
  const { svg, x, y } = frame(label, range(points.map((p) => p[0])), range(points.map((p) => p[1])), xName, yName);
  series.forEach((own, place) => {
    if (!own.points.length) return;
    const path = own.points.map(([a, b], k) => `${k ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
    svg.append(
      s(
        "path",
        {
          d: path,
          fill: "none",
          stroke: SERIES[place % 8],
          "stroke-width": 1.8,
          "stroke-dasharray": own.dash ?? ["", "6 3", "2 3"][place % 3],
        },
        s("title", {}, own.name),
      ),
    );
  });
  return svg;
}

// Histograms as steps over common edges: { name, heights }.
export function histogram(label, edges, series, xName) {
  const top = Math.max(...series.flatMap((own) => own.heights), 1e-9);
  const { svg, x, y } = frame(label, [edges[0], edges.at(-1)], [0, top], xName, "share");
  series.forEach((own, place) => {
    let path = `M${x(edges[0])} ${y(0)}`;
    own.heights.forEach((height, bin) => {
      path += `V${y(height).toFixed(1)}H${x(edges[bin + 1]).toFixed(1)}`;
    });
    const look = own.filled
      ? { fill: "currentColor", "fill-opacity": 0.15, stroke: "none" }
      : {
          fill: "none",
          stroke: own.colour ?? SERIES[place % 8],
          "stroke-width": 1.6,
          "stroke-dasharray": ["", "6 3", "2 3", "9 3 2 3"][place % 4],
        };
    svg.append(s("path", { d: `${path}V${y(0)}`, ...look }, s("title", {}, own.name)));
  });
  return svg;
}

const MARKS = [
  (x, y) => s("circle", { cx: x, cy: y, r: 2.6 }),
  (x, y) => s("rect", { x: x - 2.3, y: y - 2.3, width: 4.6, height: 4.6 }),
  (x, y) => s("path", { d: `M${x} ${y - 3}l3 5h-6z` }),
  (x, y) => s("path", { d: `M${x} ${y - 3.4}l3.4 3.4l-3.4 3.4l-3.4 -3.4z` }),
];

// Values against the truth, with the diagonal and the floor as a band around it: { name, values }.
export function scatter(label, truth, series, floor, xName, yName) {
  const ends = range([...truth, ...series.flatMap((own) => own.values)]);
  const { svg, x, y } = frame(label, ends, ends, xName, yName);
  if (floor) {
    const band = [
      [ends[0], 1],
      [ends[1], 1],
      [ends[1], -1],
      [ends[0], -1],
    ]
      .map(([at, side]) => `${x(at)},${y(at + 2 * side * floor)}`)
      .join(" ");
    svg.append(
      s(
        "polygon",
        { points: band, fill: "currentColor", "fill-opacity": 0.1 },
        s("title", {}, "two floors on either side"),
      ),
    );
  }
  svg.append(s("line", { class: "axis", x1: x(ends[0]), y1: y(ends[0]), x2: x(ends[1]), y2: y(ends[1]) }));
  series.forEach((own, place) => {
    const group = s("g", { fill: own.colour ?? SERIES[place % 8], "fill-opacity": 0.75 }, s("title", {}, own.name));
    own.values.forEach((value, k) => group.append(MARKS[place % 4](x(truth[k]), y(value))));
    svg.append(group);
  });
  return svg;
}

export function legend(names) {
  const list = document.createElement("p");
  list.className = "faint legend";
  names.forEach(({ name, colour }, place) => {
    const key = s(
      "svg",
      { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
      (() => {
        const mark = MARKS[place % 4](0, 0);
        mark.setAttribute("fill", colour ?? SERIES[place % 8]);
        mark.setAttribute("transform", "scale(1.6)");
        return mark;
      })(),
    );
    list.append(key, ` ${name}  `);
  });
  return list;
}
