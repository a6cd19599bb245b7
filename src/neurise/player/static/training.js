// Train and look: learning curves and fresh samples while a model is trained.

import { get } from "./api.js";
import { lines } from "./charts.js";
import { h, number } from "./dom.js";
import { thumb } from "./field.js";

export class Training {
  constructor(place, about, onready) {
    this.place = place;
    this.about = about;
    this.onready = onready;
    this.points = [];
    this.told = h("p", { id: "training-told", role: "status" }, "Waiting for the first step…");
    this.chart = h("figure", { id: "curves" });
    this.samples = h("div", { class: "thumbs", id: "fresh" });
    place.append(
      this.told,
      h(
        "div",
        { class: "columns" },
        this.chart,
        h("aside", { class: "panel" }, h("h2", {}, "Fresh samples"), this.samples),
      ),
    );
  }

  begin() {
    if (!this.timer) this.look();
  }

  stop() {}

  async look() {
    try {
      this.take(await get(`training?since=${this.points.length}`));
    } catch {
      /* the connection is told elsewhere */
    }
    this.timer = this.ended ? null : setTimeout(() => this.look(), 700);
  }

  take(result) {
    this.points.push(...result.points);
    this.ended = result.ended;
    if (result.ready && !this.about.models.length) {
      this.onready();
      return;
    }
    const last = this.points.at(-1);
    if (!last) return;
    this.told.textContent = `${result.ended ? `ended (${result.ended})` : "training"} · step ${last.step} · ${number(last.seconds, 1)} s${last.loss === undefined ? "" : ` · loss ${number(last.loss, 4)}`}`;
    const series = ["loss", "validation"]
      .map((name) => ({
        name,
        points: this.points.filter((point) => point[name] !== undefined).map((point) => [point.step, point[name]]),
      }))
      .filter((own) => own.points.length);
    this.chart.replaceChildren(
      lines("learning curves", series, "step", ""),
      h("figcaption", {}, series.map((own, place) => `${own.name} (${["line", "dashed"][place]})`).join(", ")),
    );
    if (this.about.symbols)
      this.samples.replaceChildren(
        ...result.samples.map((row, place) => thumb(this.about, row, `sample ${place + 1}`)),
      );
  }
}
