// Make elements in one line: h("button", { type: "button", onclick: f }, "Play").

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  const isDrawing = element.namespaceURI === SVG;
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (!isDrawing && name in element && typeof value !== "string") element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// What a screen reader is told; problems are shown to everybody.
export function say(text, isProblem = false) {
  const place = byId("said");
  place.classList.toggle("shown", isProblem);
  place.textContent = text;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && Math.abs(value) < 10 ** -digits) return value.toExponential(1);
  return String(Number(value.toFixed(digits)));
}
