// What is asked for, kept in the address, so that a link shows the same; and what was held before, for undo.

const BASE = { view: "watch", model: "", seed: 0, label: null, chains: 1, direction: "reverse", clamp: {}, row: null };
const listeners = new Set();
const past = [];

export const state = { ...BASE };

export function onChange(listener) {
  listeners.add(listener);
}

export function change(fields, { undoable = false } = {}) {
  if (undoable) past.push({ ...state.clamp });
  if (past.length > 200) past.shift();
  Object.assign(state, fields);
  history.replaceState(null, "", `#${encode(state)}`);
  listeners.forEach((listener) => listener(Object.keys(fields)));
}

export function undo() {
  if (!past.length) return false;
  const clamp = past.pop();
  change({ clamp });
  return true;
}

export function encode(wanted) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted)) {
    if (name === "clamp") {
      const held = Object.entries(value)
        .map(([site, token]) => `${site}.${token}`)
        .join("-");
      if (held) parts.set("clamp", held);
    } else if (name === "row") {
      if (value) parts.set("row", value.join("."));
    } else if (value !== null && value !== BASE[name]) parts.set(name, value);
  }
  return parts.toString();
}

// Read an address; what does not fit the models that are shown is left out.
export function decode(text, about) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const found = { ...BASE, clamp: {}, model: about.models[0]?.name ?? "" };
  const whole = (name, least, most, other) => {
    const value = Number(parts.get(name) ?? NaN);
    return Number.isInteger(value) && value >= least && value <= most ? value : other;
  };
  if (["watch", "ask", "compare", "structure", "likelihood", "training"].includes(parts.get("view")))
    found.view = parts.get("view");
  if (about.models.some((model) => model.name === parts.get("model"))) found.model = parts.get("model");
  if (parts.get("direction") === "forward") found.direction = "forward";
  found.seed = whole("seed", 0, 2147483000, 0);
  found.chains = whole("chains", 1, 16, 1);
  found.label = about.labels?.length ? whole("label", 0, about.labels.length - 1, null) : null;
  const fits = (site, token) =>
    Number.isInteger(site) && Number.isInteger(token) && token >= 0 && token < (about.symbols?.[site]?.length ?? 0);
  for (const part of (parts.get("clamp") ?? "").split("-")) {
    const [site, token] = part.split(".").map(Number);
    if (part && fits(site, token)) found.clamp[site] = token;
  }
  const row = (parts.get("row") ?? "").split(".").map(Number);
  if (row.length === about.symbols?.length && row.every((token, site) => fits(site, token))) found.row = row;
  return found;
}
