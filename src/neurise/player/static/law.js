// The law that a step of a chain drew from, as bars; the token that was drawn is marked.

import { bars } from "./charts.js";
import { css } from "./palette.js";

export function lawOf(step, about, palettes) {
  const site = step.s[0];
  const rows = step.p[0].map(([token, value]) => ({
    name: about.symbols[site][token] ?? "mask",
    value,
    colour: palettes[site][token] ? css(palettes[site][token]) : "#999",
    marked: token === step.x[0],
  }));
  return bars(`law of site ${about.names[site]}`, rows);
}
