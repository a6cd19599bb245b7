// Where sites lie: boxes { x, y, w, h } for every site, in pixels, and the size of the whole.

function grid(sites, columns, cell, gap, width = cell) {
  const boxes = Array.from({ length: sites }, (_, site) => ({
    x: (site % columns) * (width + gap),
    y: Math.floor(site / columns) * (cell + gap),
    w: width,
    h: cell,
  }));
  const rows = Math.ceil(sites / columns);
  return { boxes, width: columns * (width + gap) - gap, height: rows * (cell + gap) - gap };
}

// Put linked sites near each other: springs along links, repulsion between all, from a circle; always the same result.
function springs(sites, edges) {
  const place = Array.from({ length: sites }, (_, site) => {
    const angle = (2 * Math.PI * site) / sites;
    return [Math.cos(angle), Math.sin(angle)];
  });
  const rest = 1.6 / Math.sqrt(sites);
  const rounds = sites > 200 ? 40 : 150;
  for (let round = 0; round < rounds; round++) {
    const force = place.map(() => [0, 0]);
    const push = (i, j, strength) => {
      const dx = place[i][0] - place[j][0];
      const dy = place[i][1] - place[j][1];
      const apart = Math.hypot(dx, dy) + 1e-6;
      const f = strength(apart) / apart;
      force[i][0] += f * dx;
      force[i][1] += f * dy;
      force[j][0] -= f * dx;
      force[j][1] -= f * dy;
    };
    for (let i = 0; i < sites; i++) for (let j = 0; j < i; j++) push(i, j, (apart) => (rest * rest) / apart);
    for (const [i, j] of edges) push(i, j, (apart) => (-apart * apart) / rest);
    const step = 0.15 * rest * (1 - round / rounds) + 0.002;
    place.forEach((point, site) => {
      const size = Math.hypot(...force[site]) + 1e-9;
      point[0] += (force[site][0] / size) * Math.min(size, step);
      point[1] += (force[site][1] / size) * Math.min(size, step);
    });
  }
  return place;
}

const placed = new Map();

function graph(sites, edges, room) {
  if (!placed.has(edges)) placed.set(edges, springs(sites, edges));
  const place = placed.get(edges);
  const dot = Math.max(8, Math.min(30, room / Math.sqrt(sites) / 2.4));
  const [lowX, highX] = [0, 1].map((side) => Math[side ? "max" : "min"](...place.map((point) => point[0])));
  const [lowY, highY] = [0, 1].map((side) => Math[side ? "max" : "min"](...place.map((point) => point[1])));
  const scale = (room - dot) / Math.max(highX - lowX, highY - lowY, 1e-6);
  const boxes = place.map(([x, y]) => ({ x: (x - lowX) * scale, y: (y - lowY) * scale, w: dot, h: dot }));
  return { boxes, width: (highX - lowX) * scale + dot, height: (highY - lowY) * scale + dot };
}

// Lay sites out in a room of so many pixels across.
export function arranged(layout, sites, room) {
  if (layout.kind === "graph") return graph(sites, layout.edges, room);
  if (layout.kind === "table" && room >= 120) {
    const columns = Math.max(1, Math.min(4, Math.floor(room / 170)));
    return grid(sites, columns, 26, 3, Math.floor((room - 3 * columns) / columns));
  }
  if (layout.kind === "image") {
    return grid(sites, layout.columns, Math.max(1, Math.floor(room / layout.columns)), 0);
  }
  if (layout.kind === "lattice") {
    const cell = Math.max(3, Math.min(104, Math.floor((room - 2 * layout.columns) / layout.columns)));
    return grid(sites, layout.columns, cell, cell > 8 ? 2 : 0);
  }
  const cell = room < 120 ? Math.max(3, Math.floor(room / Math.ceil(Math.sqrt(sites)))) : 26;
  return grid(sites, Math.max(1, Math.min(sites, Math.floor(room / (cell + 2)))), cell, cell > 8 ? 2 : 0);
}
