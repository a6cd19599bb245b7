// Put the page together: views, tabs, what is asked, and the state of the connection.

import { get, keepLooking, onConnection } from "./api.js";
import { Ask } from "./ask.js";
import { Compare } from "./compare.js";
import { byId, h, say } from "./dom.js";
import { Export } from "./export.js";
import { Likelihood } from "./likelihood.js";
import { change, decode, onChange, state, undo } from "./state.js";
import { Structure } from "./structure.js";
import { Training } from "./training.js";
import { Watch } from "./watch.js";

const VIEWS = {
  watch: ["Watch", Watch],
  ask: ["Hold and ask", Ask],
  compare: ["Compare", Compare],
  structure: ["Structure", Structure],
  likelihood: ["Likelihood", Likelihood],
  training: ["Train", Training],
};
// What of the state each view asks with: it begins again when one of these changes.
const ASKS = {
  watch: ["model", "seed", "label", "chains", "direction", "clamp"],
  ask: ["model", "seed", "label", "clamp"],
  compare: ["seed", "label", "clamp"],
  structure: ["model"],
  likelihood: ["model", "label"],
  training: [],
};
const views = {};
let begun = "";

function connect(about) {
  onConnection(async (isAlive, isBack, reason) => {
    const place = byId("connection");
    place.classList.toggle("lost", !isAlive);
    place.textContent = isAlive ? "connected" : reason || "The server has stopped. Looking for it…";
    if (!isBack) return;
    const now = await get("about");
    if (JSON.stringify(now.symbols) !== JSON.stringify(about.symbols)) location.reload();
    else views[state.view]?.begin();
  });
  byId("connection").textContent = "connected";
  keepLooking();
}

function tab(name, title) {
  return h(
    "button",
    {
      type: "button",
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": name,
      onclick: () => change({ view: name }),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const all = [...byId("tabs").children];
        const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
        next.focus();
        next.click();
      },
    },
    title,
  );
}

function show(about) {
  for (const name of Object.keys(VIEWS)) {
    const chosen = name === state.view;
    byId(name).hidden = !chosen;
    const button = byId(`tab-${name}`);
    button?.setAttribute("aria-selected", String(chosen));
    if (button) button.tabIndex = chosen ? 0 : -1;
    if (!chosen) views[name]?.stop();
  }
  if (!views[state.view]) views[state.view] = new VIEWS[state.view][1](byId(state.view), about, start);
  begun = state.view;
  views[state.view].begin();
}

function controls(about) {
  byId("model").replaceChildren(
    ...about.models.map((model) => h("option", { value: model.name }, `${model.name} (${model.kind})`)),
  );
  byId("label-box").hidden = !about.labels.length;
  byId("label").replaceChildren(
    h("option", { value: "" }, "any"),
    ...about.labels.map((label, place) => h("option", { value: String(place) }, label)),
  );
  byId("model").onchange = (event) => change({ model: event.target.value });
  byId("label").onchange = (event) => change({ label: event.target.value === "" ? null : Number(event.target.value) });
  byId("seed").onchange = (event) =>
    change({ seed: Math.max(0, Math.min(2147483000, Math.round(Number(event.target.value)) || 0)) });
  byId("new-seed").onclick = () => change({ seed: Math.floor(Math.random() * 1e6) });
  byId("controls").onsubmit = (event) => event.preventDefault();
}

function reflect() {
  byId("model").value = state.model;
  byId("label").value = state.label === null ? "" : String(state.label);
  byId("seed").value = String(state.seed);
}

function listen(about) {
  onChange((names) => {
    reflect();
    const view = views[state.view];
    if (names.includes("view") && begun !== state.view) show(about);
    else if (view && !view.quiet && names.some((name) => ASKS[state.view].includes(name))) view.begin();
  });
  addEventListener("hashchange", () => {
    change(decode(location.hash, about));
    show(about);
  });
  addEventListener("keydown", (event) => {
    const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing && undo()) event.preventDefault();
    if (event.key === " " && state.view === "watch" && event.target === document.body) {
      event.preventDefault();
      views.watch.toggle();
    }
  });
}

async function start() {
  let about;
  try {
    about = await get("about");
  } catch (error) {
    say(`The models could not be read: ${error.message}`, true);
    setTimeout(start, 2000);
    return;
  }
  byId("title").textContent = about.title;
  byId("tabs").replaceChildren(
    ...Object.entries(VIEWS)
      .filter(([name]) => (name === "training" ? about.training : about.models.length))
      .map(([name, [title]]) => tab(name, title)),
  );
  if (!about.models.length) {
    byId("controls").hidden = true;
    Object.assign(state, { view: "training" });
    byId("training").replaceChildren();
    views.training = new Training(byId("training"), about, () => location.reload());
    show(about);
    return;
  }
  Object.assign(state, decode(location.hash, about));
  if (about.training && !location.hash) state.view = "training";
  controls(about);
  reflect();
  connect(about);
  listen(about);
  show(about);
  new Export(byId("export"), about, views);
  window.neurisePlay = { views, state, about };
  document.documentElement.dataset.ready = "true";
}

start();
