// The DAG: boxes and ways come laid out; here modules fold, and figures are written on nodes and streams.
const graph = { nodes: new Map(), x: 0, y: 0, k: 1, laid: null, key: "", fitted: false };

function operatorFigures(name) {
  const live = (state.data.live.operators || {})[name];
  return (state.data.run.status === "running" && live) || state.data.operators[name] || live || null; // live ones are of the newest launch
}
function figureText(name) {
  const own = operatorFigures(name);
  const error = state.data.run.error;
  if (error && error.operator === name) return `${error.code || "failed"}`;
  if (!own) return "";
  const parts = [];
  if (own.records_in) parts.push(compact(own.records_in));
  if (own.records_out && !own.errors) parts.push(`→ ${compact(own.records_out)}`);
  let text = parts.join(" ");
  if (own.errors) text += ` · ${compact(own.errors)} rejected`;
  else if (own.seconds) text += `${text ? " · " : ""}${span(own.seconds)}`;
  return text;
}
const isFailed = (name) => Boolean(state.data.run.error && state.data.run.error.operator === name);

// The box that shows an operator: its own, or that of the outermost folded module around it.
function shownBox(inside, own) {
  let box = own;
  for (let g = inside; g !== null && g !== undefined; g = state.data.graph.groups[g].inside) if (state.folded.has(g)) box = `g${g}`;
  return box;
}

// On a phone, a small DAG runs from top to bottom.
const isUpright = () => $("dag").clientWidth < 560 && state.data.graph.nodes.length <= 14;
function turnUpright(boxes, close) {
  const all = [...boxes.values()], wide = (Math.max(...all.map((box) => box.w)) + 16) / 67;
  for (const box of all) [box.x, box.y] = [(box.y + box.h / 2) * wide - box.w / 2, (box.x + box.w / 2) * 0.65 - box.h / 2];
  const fx = close("x", "w", 40), fy = close("y", "h", 76);
  for (const box of all) { box.x = fx(box.x); box.y = fy(box.y); }
}

// Places for what is visible: folded modules shrink to a node, and strips that have become empty are closed.
function layOut() {
  const { nodes, groups, edges } = state.data.graph;
  const boxes = new Map();
  nodes.forEach((node, n) => {
    const key = shownBox(node.inside, `n${n}`);
    if (key === `n${n}`) boxes.set(key, { key, node, x: node.at[0], y: node.at[1], w: node.at[2], h: node.at[3], inside: node.inside });
  });
  groups.forEach((group, g) => {
    if (!state.folded.has(g) || shownBox(group.inside, `g${g}`) !== `g${g}`) return;
    const [x, y, w, height] = group.at, h = 67, wide = clamp(group.title.length * 7.3 + 34, 130, 260);
    boxes.set(`g${g}`, { key: `g${g}`, group, index: g, x, y: y + (height - h) / 2, w: Math.min(w, wide), h, inside: group.inside });
  });
  const close = (from, length, most) => {
    const parts = [...boxes.values()].map((b) => [b[from], b[from] + b[length]]).sort((a, b) => a[0] - b[0]);
    const cuts = [];
    let end = null, cut = 0;
    for (const [a, b] of parts) {
      if (end !== null && a - end > most) { cut += a - end - most; cuts.push([end + most, a, cut]); }
      end = end === null ? b : Math.max(end, b);
    }
    return (value) => {
      let shift = 0;
      for (const [low, high, total] of cuts) {
        if (value >= high) shift = total;
        else if (value > low) return low - shift;
        else break;
      }
      return value - shift;
    };
  };
  const [fx, fy] = state.folded.size ? [close("x", "w", 128), close("y", "h", 66)] : [(v) => v, (v) => v];
  for (const box of boxes.values()) { box.x = fx(box.x); box.y = fy(box.y); }
  const upright = isUpright();
  if (upright) turnUpright(boxes, close);
  const rects = groups.map(() => null);
  for (let g = groups.length - 1; g >= 0; g--) {
    if (shownBox(g, null) !== null) continue;
    if (!state.folded.size && !upright) { const [x, y, w, h] = groups[g].at; rects[g] = { x, y, w, h }; continue; }
    const mine = [...[...boxes.values()].filter((b) => b.inside === g), ...rects.filter((r, n) => r && groups[n].inside === g)];
    if (!mine.length) continue;
    const x = Math.min(...mine.map((b) => b.x)) - 16, y = Math.min(...mine.map((b) => b.y)) - 26;
    rects[g] = { x, y, w: Math.max(...mine.map((b) => b.x + b.w)) + 16 - x, h: Math.max(...mine.map((b) => b.y + b.h)) + 16 - y };
  }
  const nodeBox = new Map(nodes.map((node, n) => [node.name, shownBox(node.inside, `n${n}`)]));
  const ways = new Map();
  for (const edge of edges) {
    const from = boxes.get(nodeBox.get(edge.from)), to = boxes.get(nodeBox.get(edge.to));
    if (!from || !to || (from === to && edge.from !== edge.to)) continue;
    const key = from.node && to.node ? `${edge.source}>${edge.sink}` : `${from.key}>${to.key}`;
    if (ways.has(key)) { ways.get(key).edges.push(edge); continue; }
    const points = upright ? [from.x + from.w / 2, from.y + from.h, to.x + to.w / 2, to.y] : from.node && to.node
      ? edge.points.map((value, n) => (n % 2 ? fy(value) : fx(value)))
      : [from.x + from.w, from.y + from.h / 2, to.x, to.y + to.h / 2];
    if (state.folded.size && !upright && from.node && to.node) {
      points[0] = from.x + from.w; points[1] = from.y + from.h / 2;
      points[points.length - 2] = to.x; points[points.length - 1] = to.y + to.h / 2;
    }
    ways.set(key, { edges: [edge], points, from, to });
  }
  const all = [...boxes.values(), ...rects.filter(Boolean)];
  return {
    boxes, rects, ways: [...ways.values()], upright,
    left: Math.min(...all.map((b) => b.x)), top: Math.min(...all.map((b) => b.y)),
    right: Math.max(...all.map((b) => b.x + b.w)), bottom: Math.max(...all.map((b) => b.y + b.h)),
  };
}

function curve(points, upright) {
  if (upright) {
    const [x, y, toX, toY] = points, middle = (y + toY) / 2;
    return `M${x} ${y}C${x} ${middle} ${toX} ${middle} ${toX} ${toY}`;
  }
  let path = `M${points[0]} ${points[1]}`;
  for (let n = 2; n < points.length; n += 2) {
    const [x, y, toX, toY] = [points[n - 2], points[n - 1], points[n], points[n + 1]];
    if (y === toY) { path += `L${toX} ${toY}`; continue; }
    const middle = (x + toX) / 2;
    path += `C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`;
  }
  return path;
}

// A label stands at the head of a way, on the side that it does not come from; where ways meet, at the tail.
function labelPlace(points, upright, meets) {
  const [x, y, toX, toY] = meets ? points.slice(0, 4) : points.slice(-4), bend = upright ? toX - x : toY - y, middle = (x + toX) / 2;
  if (upright && Math.abs(bend) < 8) return { x: toX + 8, y: toY - 8 };
  if (upright) return { x: middle + (bend > 0 ? 4 : -4), y: (y + toY) / 2 - 6, "text-anchor": bend > 0 ? "start" : "end" };
  return meets && Math.abs(bend) >= 8 ? { x: x + 6, y: y + (bend > 0 ? -5 : 13) } : { x: toX - 12, y: toY + (bend >= 8 ? 13 : -5), "text-anchor": "end" };
}
// Records on a stream: what its only reader has got, else what its only port has sent.
function edgeRecords(edge, ends) {
  const over = state.data.exchanges[edge.sink];
  if (over) return over.records;
  const to = operatorFigures(edge.to), from = operatorFigures(edge.from);
  if (to && ends.into.get(edge.to) === 1) return to.records_in;
  if (from && ends.ports.get(edge.from).size === 1) return from.records_out;
  return null;
}
function endsOf(edges) {
  const into = new Map(), ports = new Map();
  for (const edge of edges) {
    into.set(edge.to, (into.get(edge.to) || 0) + 1);
    if (!ports.has(edge.from)) ports.set(edge.from, new Set());
    ports.get(edge.from).add(edge.source);
  }
  return { into, ports };
}

const cut = (text, most = 30) => (text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2))}…${text.slice(-Math.floor(most / 2) + 1)}`);

// What the plan knows of the rows of a stream: whether they may be taken back, which columns tell them apart, what they depend on.
const rowFacts = (edge) => [
  edge.changed_by && `rows may be taken back, by ${edge.changed_by}`,
  ...(edge.identified_by || []).map((names) => (names.length ? `rows differ in ${names.join(", ")}` : "at most one row")),
  edge.depends && `rows depend on windows: ${edge.depends}`,
  edge.rows && `columns: ${edge.rows.join(", ")}`].filter(Boolean);

function drawGraph() {
  const host = $("dag");
  const data = state.data.graph;
  if (!data || !data.nodes.length) {
    graph.key = "";
    host.replaceChildren(h("p", { class: "dim" }, "The plan of this run is not known: no window has been planned yet, or its records are gone."));
    return;
  }
  const key = JSON.stringify([data, [...state.folded], isUpright()]);
  if (graph.key === key) { updateGraph(); return; }
  graph.key = key;
  const laid = (graph.laid = layOut());
  graph.nodes.clear();
  const world = s("g", { id: "world" }), labels = s("g", {}); // labels lie above all ways and their heads
  laid.rects.forEach((rect, g) => {
    if (!rect) return;
    const group = data.groups[g], isModule = group.kind === "module";
    const box = s("g", { class: `g-group ${group.kind}` }, s("rect", { x: rect.x, y: rect.y, width: rect.w, height: rect.h, rx: 8 }),
      s("text", { x: rect.x + 12, y: rect.y + 18 }, (isModule ? "⊟ " : "") + cut(group.title, 40)));
    if (isModule) {
      fill(box, { tabindex: "0", role: "button", "aria-expanded": "true", "aria-label": `module ${group.title}, fold`, "data-key": `g${g}` }, []);
      box.addEventListener("click", (event) => { event.stopPropagation(); fold(g); });
      box.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); fold(g); } });
    }
    world.append(box);
  });
  const entries = new Map();
  for (const { to } of laid.ways) entries.set(to, (entries.get(to) || 0) + 1);
  for (const way of laid.ways) {
    const [edge] = way.edges;
    const kind = [edge.exchange ? "exchange" : edge.items ? "items" : "", way.edges.some((e) => e.changed_by) ? "changing" : ""].join(" ");
    const points = way.points, last = points.length - 2;
    way.path = s("path", { class: `g-edge ${kind}`, d: curve(points, laid.upright), "marker-end": "url(#head)" });
way.label = s("text", { class: "g-label", ...labelPlace(points, laid.upright, entries.get(way.to) > 1) });
    const box = s("g", {}, s("title", {}, way.edges.map((e) => `${e.stream}${e.type ? `: ${e.type}` : ""}\n${e.source} → ${e.sink}${e.exchange ? `\nexchange ${e.exchange}` : ""}${e.conversion ? `\n${e.conversion}` : ""}${rowFacts(e).map((fact) => `\n${fact}`).join("")}`).join("\n\n")), way.path);
    const texts = s("g", {}, way.label);
    if (edge.exchange) {
      let at = 0;
      for (let n = 0; n < last; n += 2) if (points[n + 2] - points[n] > points[at + 2] - points[at]) at = n;
      const x = (points[at] + points[at + 2]) / 2, y = (points[at + 1] + points[at + 3]) / 2;
      box.append(s("path", { class: "g-mark", d: `M${x - 5} ${y}L${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}z` }));
      texts.append(s("text", laid.upright ? { class: "g-label exchange", x: x + 10, y: y + 4 } : { class: "g-label exchange", x, y: y - 10, "text-anchor": "middle" }, cut(edge.exchange)));
      if (!laid.upright && points[last - 1] === points[last + 1]) way.label.setAttribute("y", points[last + 1] + 15);
    }
    const xs = points.filter((_, n) => n % 2 === 0), ys = points.filter((_, n) => n % 2);
    way.roots = [box, texts];
    labels.append(texts);
    way.box = [Math.min(...xs), Math.min(...ys) - 20, Math.max(...xs), Math.max(...ys) + 20];
    world.append(box);
  }
  world.append(labels);
  for (const box of laid.boxes.values()) {
    const title = box.node ? box.node.name : box.group.name;
    box.figures = s("text", { class: "figures", x: box.x + 12, y: box.y + 55 });
    box.heat = s("rect", { class: "heat", x: box.x, y: box.y + box.h - 3, width: 0, height: 3, rx: 1.5 });
    box.element = s("g", { class: "g-node", tabindex: "-1", role: "button", "data-key": box.key, "aria-label": title },
      s("rect", { class: "box", x: box.x, y: box.y, width: box.w, height: box.h, rx: 6 }), box.heat,
      s("text", { class: "name", x: box.x + 12, y: box.y + 21 }, (box.node ? "" : "⊞ ") + cut(title)),
      s("text", { x: box.x + 12, y: box.y + 38 }, cut(box.node ? box.node.class : box.group.title.split(": ").pop())), box.figures);
    box.element.addEventListener("click", (event) => { event.stopPropagation(); box.node ? pick(box.node.name) : fold(box.index); });
    box.element.addEventListener("keydown", (event) => nodeKey(event, box));
    box.roots = [box.element];
    world.append(box.element);
    if (box.node) graph.nodes.set(box.node.name, box);
  }
  const svg = s("svg", { role: "group", "aria-label": "Operators and streams. Arrow keys go from operator to operator, Enter shows one." },
    s("defs", {}, s("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerUnits: "userSpaceOnUse", markerWidth: 9, markerHeight: 9, orient: "auto" },
      s("path", { class: "g-head", d: "M0 .5L7.5 4L0 7.5z" }))), world);
  graph.svg = svg;
  graph.world = world;
  const zoomButton = (label, text, act) => h("button", { "aria-label": label, title: label, "data-key": `zoom ${label}`, onclick: act }, text);
  const hasModules = data.groups.some((group) => group.kind === "module");
  host.replaceChildren(svg);
  $("dag-zoom").replaceChildren(...[
    hasModules && zoomButton(state.folded.size ? "Unfold all modules" : "Fold all modules", state.folded.size ? "⊞" : "⊟", foldAll),
    zoomButton("Zoom in", "+", () => zoomGraph(1.3)), zoomButton("Zoom out", "−", () => zoomGraph(1 / 1.3)), zoomButton("Fit", "Fit", () => fitGraph(true))].filter(Boolean));
  const legend = [slowestSeconds() && "A box is an operator; the bar at its foot is its share of the time.", data.edges.some((edge) => edge.items) && "A dotted line carries the work items of windows.",
    data.edges.some((edge) => edge.exchange) && "A diamond is an exchange.", data.edges.some((edge) => edge.changed_by) && "Rows of a line with long dashes may be taken back.", "Zoom with Ctrl and the wheel, or with two fingers."];
  $("dag-legend").replaceChildren(...legend.filter(Boolean).map((text) => h("li", {}, text)));
  gestures(svg, {
    pan: (dx, dy) => { graph.touched = true; graph.x += dx; graph.y += dy; moveGraph(); },
    zoom: zoomGraph,
  });
  svg.addEventListener("click", () => pick(null));
  updateGraph();
  if (!graph.fitted) { graph.fitted = true; fitGraph(false); } else moveGraph();
}

const slowestSeconds = () => Math.max(0, ...state.data.graph.nodes.map((node) => (operatorFigures(node.name) || {}).seconds || 0));
function updateGraph() {
  const running = state.data.run.status === "running";
  const slowest = slowestSeconds() || 0.001;
  let tab = null;
  for (const box of graph.laid.boxes.values()) {
    const names = box.node ? [box.node.name] : state.data.graph.nodes.filter((node, n) => shownBox(node.inside, `n${n}`) === box.key).map((node) => node.name);
    const failed = names.some(isFailed);
    const seconds = sum(names.map((name) => (operatorFigures(name) || {}).seconds));
    const rejected = sum(names.map((name) => (operatorFigures(name) || {}).errors));
    const waiting = running && state.data.live.waiting && names.map((name) => state.data.live.waiting[name]).find(Boolean);
    let text = box.node ? figureText(box.node.name) : failed ? "failed" : [plural(names.length, "operator"), seconds ? span(seconds) : ""].filter(Boolean).join(" · ");
    if (waiting) text = `waits: ${waiting}`;
    const fits = Math.floor((box.w - 18) / 5.9);
    box.figures.textContent = text.length > fits ? `${text.slice(0, fits - 1)}…` : text;
    box.heat.setAttribute("width", ((box.w * Math.min(seconds, slowest)) / slowest).toFixed(1));
    const picked = box.node && state.picked === box.node.name;
    box.element.setAttribute("class", `g-node${failed ? " failed" : ""}${rejected ? " rejecting" : ""}${picked ? " picked" : ""}${box.node ? "" : " folded"}`);
    box.element.setAttribute("aria-label", `${box.node ? "operator" : "folded module"} ${box.node ? box.node.name : box.group.title}${text ? `, ${text}` : ""}${failed ? ", failed" : ""}`);
    box.element.setAttribute("aria-pressed", String(Boolean(picked)));
    box.element.setAttribute("tabindex", "-1");
    if (picked || tab === null) tab = box.element;
  }
  if (tab) tab.setAttribute("tabindex", "0");
  const ends = endsOf(state.data.graph.edges);
  for (const way of graph.laid.ways) {
    const records = way.edges.length === 1 ? edgeRecords(way.edges[0], ends) : null;
    way.label.textContent = records ? compact(records) : "";
    way.path.classList.toggle("lit", way.edges.some((edge) => state.picked && (edge.from === state.picked || edge.to === state.picked)));
  }
}

const moveGraph = eachFrame(() => {
  if (!graph.world) return;
  graph.world.setAttribute("transform", `translate(${graph.x} ${graph.y}) scale(${graph.k})`);
  graph.svg.classList.toggle("far", graph.k < 0.5);
  graph.svg.classList.toggle("farther", graph.k < 0.22);
  hideOutside();
});
// Boxes and ways that are out of sight are not painted: zooming a thousand operators stays smooth.
function hideOutside() {
  const host = $("dag"), laid = graph.laid, margin = 0.4;
  const width = host.clientWidth / graph.k, height = host.clientHeight / graph.k, x = -graph.x / graph.k, y = -graph.y / graph.k;
  const seen = graph.seen;
  if (seen && seen.laid === laid && x >= seen.left && y >= seen.top && x + width <= seen.right && y + height <= seen.bottom && width * 4 > seen.right - seen.left) return;
  const now = (graph.seen = { laid, left: x - width * margin, top: y - height * margin, right: x + width * (1 + margin), bottom: y + height * (1 + margin) });
  const show = (item, left, top, right, bottom) => {
    const visible = left < now.right && now.left < right && top < now.bottom && now.top < bottom;
    if (item.shown === visible) return;
    item.shown = visible;
    for (const root of item.roots) root.style.setProperty("display", visible ? "" : "none");
  };
  for (const box of laid.boxes.values()) show(box, box.x, box.y, box.x + box.w, box.y + box.h);
  for (const way of laid.ways) show(way, way.box[0], way.box[1], way.box[2], way.box[3]);
}
function zoomGraph(factor, x = $("dag").clientWidth / 2, y = $("dag").clientHeight / 2) {
  graph.touched = true;
  const k = clamp(graph.k * factor, 0.02, 3);
  graph.x = x - ((x - graph.x) * k) / graph.k;
  graph.y = y - ((y - graph.y) * k) / graph.k;
  graph.k = k;
  moveGraph();
}
function fitGraph(whole) {
  const host = $("dag"), laid = graph.laid;
  if (!laid) return;
  graph.touched = false;
  const width = laid.right - laid.left + 32, height = laid.bottom - laid.top + 32;
  const tall = clamp(height * Math.min(1, host.clientWidth / width), laid.boxes.size > 40 ? 420 : 150, laid.upright ? 1600 : Math.min(560, innerHeight * 0.7));
  host.style.setProperty("height", `${Math.round(tall)}px`);
  const fit = Math.min(host.clientWidth / width, tall / height, 1);
  graph.k = whole ? fit : Math.max(fit, laid.boxes.size > 40 ? 0.45 : 0.6);
  graph.x = 16 - laid.left * graph.k + Math.max(0, (host.clientWidth - width * graph.k) / 2);
  graph.y = (tall - (laid.bottom + laid.top) * graph.k) / 2;
  if (!whole && graph.k > fit) {
    const first = state.data.run.error && graph.nodes.get(state.data.run.error.operator) || [...laid.boxes.values()].reduce((a, b) => (b.x < a.x ? b : a));
    showBox(first);
  }
  moveGraph();
}
// The width of the DAG has changed: what a reader has not moved fits again, and the picked operator stays in sight.
function refit() {
  if (!graph.touched) fitGraph(false);
  const picked = graph.nodes.get(state.picked);
  if (picked) showBox(picked);
}
function showBox(box) {
  const host = $("dag");
  const x = graph.x + (box.x + box.w / 2) * graph.k, y = graph.y + (box.y + box.h / 2) * graph.k;
  if (x < 100 || x > host.clientWidth - 100) graph.x += clamp(host.clientWidth / 2 - x, -Infinity, 16 - graph.laid.left * graph.k - graph.x);
  if (y < 50 || y > host.clientHeight - 50) graph.y += host.clientHeight / 2 - y;
  moveGraph();
}

function fold(g) {
  toggle(state.folded, g);
  render(true);
  const target = document.querySelector(`#dag [data-key="g${g}"]`);
  if (target) target.focus({ preventScroll: true });
}
function foldAll() {
  if (state.folded.size) state.folded.clear();
  else state.data.graph.groups.forEach((group, g) => group.kind === "module" && state.folded.add(g));
  graph.fitted = false;
  render(true);
}
function nodeKey(event, box) {
  const keys = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    box.node ? pick(box.node.name) : fold(box.index);
  } else if (keys[event.key]) {
    event.preventDefault();
    const [dx, dy] = keys[event.key];
    const forth = graph.laid.upright ? dy : dx;
    const linked = new Set(graph.laid.ways.map((way) => (forth > 0 && way.from === box ? way.to : forth < 0 && way.to === box ? way.from : null)).filter(Boolean));
    const far = (other) => {
      const x = other.x + other.w / 2 - box.x - box.w / 2, y = other.y + other.h / 2 - box.y - box.h / 2;
      const along = dx ? x * dx : y * dy, across = Math.abs(dx ? y : x);
      return along <= 4 ? Infinity : along + across * 3 - (linked.has(other) ? 1e6 : 0);
    };
    let best = null;
    for (const other of graph.laid.boxes.values()) if (other !== box && far(other) < (best ? far(best) : Infinity)) best = other;
    if (best) {
      box.element.setAttribute("tabindex", "-1");
      best.element.setAttribute("tabindex", "0");
      best.element.style.setProperty("display", "");
      best.shown = true;
      best.element.focus({ preventScroll: true });
      showBox(best);
    }
  }
}
function pick(name, scroll = false) {
  state.picked = state.picked === name ? null : name;
  if (scroll) state.picked = name;
  render(true);
  if (scroll) {
    $("graph").scrollIntoView();
    const node = state.data.graph && state.data.graph.nodes.find((each) => each.name === name);
    if (node) for (let g = node.inside; g !== null && g !== undefined; g = state.data.graph.groups[g].inside) state.folded.delete(g);
    render(true);
    const box = graph.nodes.get(name);
    if (box) { box.element.style.setProperty("display", ""); box.shown = true; showBox(box); box.element.focus({ preventScroll: true }); }
  }
}

const streamFacts = (edge, link) => [link, ` ${edge.stream}${edge.exchange ? `, exchange ${edge.exchange}` : ""}`, ...rowFacts(edge).map((fact) => h("div", { class: "dim small" }, fact))];

function operatorPanel() {
  const node = state.data.graph && state.data.graph.nodes.find((each) => each.name === state.picked);
  const was = $("stage").classList.contains("open");
  $("stage").classList.toggle("open", Boolean(node));
  $("panel").classList.toggle("gone", !node);
  if (was !== Boolean(node) && graph.laid) refit();
  if (!node) return;
  const own = operatorFigures(node.name) || {}, error = isFailed(node.name) ? state.data.run.error : null;
  const edges = state.data.graph.edges;
  const rejects = state.data.rejects.find((each) => each.operator === node.name);
  const stage = state.data.graph.stages.find((each) => each.name === node.stage);
  const link = (name) => h("button", { class: "link", onclick: () => pick(name, true) }, name);
  const counters = Object.entries(own.counters || {});
  $("panel").replaceChildren(...[
    h("header", {}, h("h3", {}, node.name), h("button", { "aria-label": "Close", title: "Close (Esc)", onclick: () => pick(null) }, "×")),
    error && h("div", { class: "error" }, h("div", { class: "what" }, `${error.code || "failed"}`), h("pre", {}, error.text)),
    pairs([["class", node.class], ["where", node.where], ["runs", node.stage ? `stage ${node.stage}, ${node.placement}` : node.placement], ["why", node.why], ["results cover", node.covers], ["emission", node.emits], ["keeps", node.keeps], ["depends on windows", node.depends],
      ["partitions", stage && stage.max_readers ? `${stage.min_readers === stage.max_readers ? "" : `${count(stage.min_readers)} to `}${count(stage.max_readers)}` : null],
      ["module", node.module], ["records in", own.records_in !== undefined && flow(own.records_in, node.name, linked().into)], ["records out", own.records_out !== undefined && flow(own.records_out, node.name, linked().from)],
      ["time", own.seconds ? span(own.seconds) : null], ["bytes", own.bytes ? size(own.bytes) : null], ["rejected", own.errors ? count(own.errors) : null],
      ["converted", own.converted ? count(own.converted) : null]]),
    counters.length ? [h("h4", {}, "counters"), pairs(counters.map(([name, n]) => [name, /bytes/.test(name) ? size(n) : count(n)]))] : null,
    h("h4", {}, "streams"),
    pairs([...edges.filter((e) => e.to === node.name).map((e) => ["from", streamFacts(e, link(e.from))]), ...edges.filter((e) => e.from === node.name).map((e) => ["to", streamFacts(e, link(e.to))])]),
    node.properties.length ? [h("h4", {}, "properties"), pairs(node.properties.map(([name, value, origin]) => [name, [h("span", { class: "mono" }, value), h("span", { class: "dim small" }, ` ${origin}`)]]))] : null,
    rejects ? [h("h4", {}, "rejected, for example"), rejects.samples.map(([window, text]) => h("pre", { class: "small" }, text))] : null,
  ].flat(Infinity).filter(Boolean));
}
