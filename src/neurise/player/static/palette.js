// Colours that colour-blind readers can tell apart: they differ in lightness too. Up to eight by hand (after Okabe and Ito),
// above that a ramp from dark to light.

const PAIRS = ["#0072b2", "#f0b429"];
const PAPER = ["#f3f0e8", "#16324f"];
const EIGHT = ["#0072b2", "#f0b429", "#009e73", "#d55e00", "#7fc8ee", "#cc79a7", "#2b2b2b", "#f0e442"];
const RAMP = [
  [28, 14, 60],
  [54, 58, 125],
  [42, 104, 142],
  [31, 150, 139],
  [80, 190, 105],
  [160, 214, 60],
  [250, 230, 60],
];

function hex(text) {
  return [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
}

export function colours(states, kind) {
  if (states === 2) return (kind === "image" ? PAPER : PAIRS).map(hex);
  if (states <= 8) return EIGHT.slice(0, states).map(hex);
  return Array.from({ length: states }, (_, token) => {
    const place = (token / (states - 1)) * (RAMP.length - 1);
    const low = Math.min(Math.floor(place), RAMP.length - 2);
    return RAMP[low].map((value, part) => Math.round(value + (place - low) * (RAMP[low + 1][part] - value)));
  });
}

export function css([r, g, b]) {
  return `rgb(${r},${g},${b})`;
}

// The mean colour of a law, mixed in squares, as light mixes. Many colours would mix to mud: then the likeliest one counts, the
// greyer the less likely it is.
export function mixed(law, palette, isMud = palette.length > 8) {
  if (isMud) {
    const p = Math.max(...law);
    const best = palette[law.indexOf(p)];
    return best.map((part) => Math.round(Math.sqrt(p * part ** 2 + (1 - p) * 150 ** 2)));
  }
  return [0, 1, 2].map((part) =>
    Math.round(Math.sqrt(law.reduce((sum, p, token) => sum + p * palette[token][part] ** 2, 0))),
  );
}

export function inkOn([r, g, b]) {
  return 0.3 * r + 0.59 * g + 0.11 * b > 140 ? "#111" : "#fff";
}
