// The Python lines that repeat what is on the screen.

function literal(symbol) {
  return /^-?\d+(\.\d+)?$/.test(symbol) ? symbol : JSON.stringify(symbol);
}

export function python(state, about) {
  const lines = [
    "import numpy as np",
    "import neurise",
    "",
    `model = ${about.source || 'neurise.load("MODEL")  # the folder of the model'}`,
  ];
  const options = [`seed=${state.seed}`];
  const held = Object.entries(state.clamp);
  const plain = about.layout.kind !== "table";
  if (held.length) {
    const other = plain ? literal(about.symbols[0][0]) : "None";
    lines.push(
      `values = np.full(${about.symbols.length}, ${other}${plain ? "" : ", dtype=object"})`,
      `free = np.ones(${about.symbols.length}, dtype=bool)`,
    );
    for (const [site, token] of held)
      lines.push(`values[${site}], free[${site}] = ${literal(about.symbols[site][token])}, False`);
    options.push("clamp=np.ma.MaskedArray(values, free)");
  }
  const label = state.label === null ? "" : `${literal(about.labels[state.label])}, `;
  const row = (state.row ?? []).map((token, site) => literal(about.symbols[site][token])).join(", ");
  if (state.view === "watch" && state.direction === "reverse")
    lines.push(
      `chain = model.trajectory(${state.chains}, ${label}${options.join(", ")})`,
      "chain[0], chain[-1]  # noise and configurations",
      "chain.laws           # what each token was drawn from",
    );
  else if (state.view === "watch")
    lines.push(
      `row = model.sample(1, ${label}${options.join(", ")})`,
      `chain = model.noising(row, seed=${state.seed})`,
    );
  else if (state.view === "likelihood" && row)
    lines.push(
      `row = np.array([[${row}]])`,
      `model.log_prob(row${label ? `, ${label.slice(0, -2)}` : ""})`,
      "neurise.surprise(model, row).sites",
      "neurise.mutations(model, row[0]).ranked()[:8]",
    );
  else if (state.view === "structure")
    lines.push(`found = neurise.structure.recover(model, model.sample(2000, seed=0))`, "found.couplings, found.errors");
  else lines.push(`rows = model.sample(1000, ${label}${options.join(", ")})`);
  return `${lines.join("\n")}\n`;
}
