// Windows and tasks over time, on one canvas; only what is visible is drawn.
const line = { from: 0, to: 1, width: 0, height: 0, lanes: [], tasks: [], key: "", whole: [0, 1], home: [0, 1], hits: [] };
const PARTS = { read: "reading", compute: "computing", write: "writing", wait: "waiting" };
const ROW = 18, LANE = 12, TOP = 24, MAX_LANES = 24;

// Seconds since the epoch at which a window began and ended; windows without events have only their decision.
function windowTimes(n) {
  const w = state.data.windows, at = (value) => (value === null ? null : w.t0 + value / 1000);
  const start = at(w.planned[n] ?? w.started[n] ?? w.decided[n]);
  const running = state.data.run.status === "running" && w.decided[n] === null;
  return [start, at(w.decided[n]) ?? (running ? state.data.at : state.data.run.last ?? start)];
}
// A window is `committed`, `failed`, `running`, or it was only planned.
function windowStatus(n) {
  const { windows: w, run } = state.data;
  if (w.decided[n] !== null) return "committed";
  if (run.error && run.error.window === w.window[n]) return "failed";
  return run.status === "running" ? "running" : "not committed";
}
const statusColour = (status, retried) => (status === "failed" ? "bad" : status === "not committed" ? "stroke" : retried ? "warn" : "accent");
// The lane of each bar, such that bars of one lane do not overlap.
function lanesOf(bars, most) {
  const ends = [];
  for (const bar of bars) {
    let lane = ends.findIndex((end) => end <= bar.start + 1e-6);
    if (lane < 0) lane = ends.length < most ? ends.length : ends.indexOf(Math.min(...ends));
    ends[lane] = bar.end;
    bar.lane = lane;
  }
  return ends.length;
}
function drawTimeline() {
  const w = state.data.windows, host = $("times");
  if (!w.window.length) {
    line.key = "";
    host.replaceChildren(h("p", { class: "dim" }, "No window has been planned yet."));
    return;
  }
  const bars = w.window.map((window, n) => { const [start, end] = windowTimes(n); return { n, window, start, end }; }).filter((bar) => bar.start !== null);
  bars.sort((a, b) => a.start - b.start);
  line.windowLanes = Math.max(1, lanesOf(bars, 4));
  line.bars = bars;
  const tasks = state.data.tasks.rows.map(([window, task, start, end, records, read, compute, write, wait, input]) => ({
    window, task, records, input, parts: [read, compute, write, wait], start: state.data.tasks.t0 + start / 1000, end: state.data.tasks.t0 + end / 1000 }));
  tasks.sort((a, b) => a.start - b.start);
  line.taskLanes = lanesOf(tasks, MAX_LANES);
  line.tasks = tasks;
  const before = line.home;
  line.whole = [Math.min(...[bars, tasks].map((list) => (list.length ? list[0].start : Infinity))), bars.concat(tasks).reduce((a, b) => Math.max(a, b.end), -Infinity)];
  if (line.whole[1] - line.whole[0] < 0.001) line.whole[1] = line.whole[0] + 0.001;
  const pad = (line.whole[1] - line.whole[0]) * 0.01;
  line.whole = [line.whole[0] - pad, line.whole[1] + pad];
  const untouched = line.from === before[0] && line.to === before[1], newest = bars.filter((bar) => w.launch[bar.n] === w.launch[w.launch.length - 1]);
  // at first, the newest launch is in sight: it may have begun long after the others
  line.home = newest.length && newest.length < bars.length ? [newest[0].start - pad / 100, newest.reduce((a, b) => Math.max(a, b.end), -Infinity) + pad / 100] : line.whole;
  if (!line.canvas || !line.canvas.isConnected) {
    line.canvas = h("canvas", { tabindex: "0", role: "application", "aria-label": "Windows and tasks over time. Left and right arrows go from window to window, plus and minus zoom.", "data-key": "timeline" });
    line.canvas.addEventListener("keydown", timelineKey);
    gestures(line.canvas, { pan: (dx) => panTime(dx), zoom: zoomTime, click: clickTime, hover: hoverTime });
    const button = (label, text, act) => h("button", { "aria-label": label, title: label, onclick: act }, text);
    host.replaceChildren(h("div", { class: "view" }, line.canvas), h("div", { class: "zoom" }, button("Zoom in on time", "+", () => zoomTime(1.5)), button("Zoom out on time", "−", () => zoomTime(1 / 1.5)),
      button("The whole run", "All", () => { [line.from, line.to] = line.whole; paintTimeline(); })), h("ul", { class: "legend", id: "time-legend" }));
    [line.from, line.to] = line.home;
  } else if (untouched) [line.from, line.to] = line.home;
  const timed = tasks.some((task) => sum(task.parts) > 0);
  const entry = (css, text) => h("li", {}, h("i", { css: { background: `var(--${css})` } }), text);
  const statuses = new Set(w.window.map((_, n) => statusColour(windowStatus(n), w.retries[n])));
  const parts = ["read", "compute", "write", "wait"].filter((_, n) => tasks.some((task) => task.parts[n]));
  $("time-legend").replaceChildren(...(statuses.has("accent") ? [entry("accent", "window, from plan to decision")] : []), ...(statuses.has("bad") ? [entry("bad", "window that failed")] : []),
    ...(statuses.has("stroke") ? [entry("stroke", "window that is planned and not committed")] : []), ...(statuses.has("warn") ? [entry("warn", "window that was retried")] : []),
    ...(timed ? parts.map((part) => entry(part, PARTS[part])) : tasks.length ? [entry("task", "task")] : []),
    ...(timed ? [h("li", {}, "The parts of a task's bar are sums: a task reads, computes and writes by turns.")] : []),
    ...(tasks.length && new Set(tasks.map((t) => t.window)).size < w.window.length ? [h("li", {}, "Only the newest and the slowest windows have their tasks here.")] : []));
  paintTimeline();
}
const paintTimeline = eachFrame(() => {
  const canvas = line.canvas;
  if (!canvas || !canvas.isConnected || !line.bars) return;
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth;
  const height = TOP + line.windowLanes * ROW + (line.taskLanes ? 14 + line.taskLanes * LANE : 0) + 10;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.setProperty("height", `${height}px`);
  }
  line.width = width;
  const c = canvas.getContext("2d"), x = (at) => ((at - line.from) / (line.to - line.from)) * width;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  const ink = Object.fromEntries(["bg", "line", "dim", "accent", "bad", "warn", "stroke", "read", "compute", "write", "wait", "task", "ink", "soft"].map((name) => [name, colour(name)]));
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  let previous = -Infinity;
  for (const [at, text] of ticks(line.from, line.to, Math.max(2, Math.floor(width / 110)))) {
    const left = Math.round(x(at)) + 0.5;
    c.fillStyle = ink.line;
    c.fillRect(left, TOP - 4, 1, height);
    c.fillStyle = ink.dim;
    const wide = c.measureText(text).width, start = clamp(left - wide / 2, 4, width - wide - 4);
    if (start > previous + 12) { c.fillText(text, start, 12); previous = start + wide; }
  }
  const w = state.data.windows;
  let filled = -1;
  for (const bar of line.bars) {
    if (bar.end < line.from || bar.start > line.to) continue;
    const left = x(bar.start), right = Math.max(left + 1, x(bar.end)), top = TOP + bar.lane * ROW;
    const selected = state.window === bar.window, shade = statusColour(windowStatus(bar.n), w.retries[bar.n]);
    if (right - left <= 1.5 && !selected && Math.floor(left) === filled && shade === "accent") continue; // that pixel is painted
    filled = right - left <= 1.5 && bar.lane === 0 ? Math.floor(left) : filled;
    c.fillStyle = ink[shade];
    c.globalAlpha = selected || shade === "bad" ? 1 : 0.55;
    c.fillRect(left, top + 2, right - left > 3 ? right - left - 1 : right - left, ROW - 5);
    c.globalAlpha = 1;
    if (right - left > 34) {
      c.fillStyle = ink.bg;
      c.fillText(String(bar.window), Math.max(left, 0) + 5, top + ROW / 2);
    }
    if (selected) { c.strokeStyle = ink.ink; c.strokeRect(left - 0.5, top + 1.5, right - left + 1, ROW - 4); }
  }
  const base = TOP + line.windowLanes * ROW + 14;
  for (const task of line.tasks) {
    if (task.end < line.from || task.start > line.to) continue;
    const left = x(task.start), wide = Math.max(1, x(task.end) - left), top = base + task.lane * LANE, total = sum(task.parts);
    c.globalAlpha = state.window === null || state.window === task.window ? 1 : 0.3;
    if (total <= 0 || wide < 3) { c.fillStyle = total > 0 ? ink[["read", "compute", "write", "wait"][task.parts.indexOf(Math.max(...task.parts))]] : ink.task; c.fillRect(left, top, wide > 3 ? wide - 1 : wide, LANE - 3); continue; }
    let start = left;
    const scale = (wide - 1) / Math.max(total, (task.end - task.start) * 1000);
    ["read", "compute", "write", "wait"].forEach((name, n) => { c.fillStyle = ink[name]; c.fillRect(start, top, task.parts[n] * scale, LANE - 3); start += task.parts[n] * scale; });
    if (left + wide - 1 - start > 0.5) { c.fillStyle = ink.wait; c.fillRect(start, top, left + wide - 1 - start, LANE - 3); }
  }
  c.globalAlpha = 1;
});
function ticks(from, to, most) {
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];
  const step = steps.find((each) => (to - from) / each <= most) || steps[steps.length - 1], result = [];
  for (let n = Math.ceil(from / step); n * step < to; n++) {
    const at = Math.round(n * step * 1000) / 1000;
    const text = step < 1 ? `${clock(at, false, false)}.${String(Math.round((at % 1) * 1000)).padStart(3, "0").replace(/0+$/, "") || "0"}` : step >= 86400 ? clock(at).slice(0, 10) : clock(at, false, false);
    result.push([at, text]);
  }
  return result;
}
function panTime(dx) {
  const shift = (-dx / line.width) * (line.to - line.from);
  const low = line.whole[0] - line.from, high = line.whole[1] - line.to;
  const by = clamp(shift, Math.min(low, high), Math.max(low, high));
  line.from += by;
  line.to += by;
  paintTimeline();
}
function zoomTime(factor, x = line.width / 2) {
  const at = line.from + (x / line.width) * (line.to - line.from);
  const length = clamp((line.to - line.from) / factor, 0.002, line.whole[1] - line.whole[0]);
  line.from = clamp(at - (x / line.width) * length, line.whole[0], line.whole[1] - length);
  line.to = line.from + length;
  paintTimeline();
}
function hitTime(x, y) {
  const at = line.from + (x / line.width) * (line.to - line.from), slack = ((line.to - line.from) / line.width) * 3;
  const base = TOP + line.windowLanes * ROW + 14;
  if (y >= base) {
    const lane = Math.floor((y - base) / LANE);
    return { task: line.tasks.find((task) => task.lane === lane && task.start - slack <= at && at <= task.end + slack) };
  }
  const lane = Math.floor((y - TOP) / ROW);
  let best = null;
  for (const bar of line.bars) if (bar.lane === lane && bar.start - slack <= at && at <= bar.end + slack && (!best || bar.end - bar.start < best.end - best.start)) best = bar;
  return { bar: best };
}
function hoverTime(x, y, event) {
  if (x === null) { tip.hide(); return; }
  const { task, bar } = hitTime(x, y);
  if (task) {
    const names = Object.values(PARTS);
    tip.show(event.clientX, event.clientY, [`task ${task.task} of window ${task.window}`, `${span(task.end - task.start)}, ${plural(task.records, "record")}`,
      ...task.parts.map((part, n) => (part ? `${names[n]} ${span(part / 1000)}` : null)).filter(Boolean)].join("\n"));
  } else if (bar) {
    const w = state.data.windows;
    tip.show(event.clientX, event.clientY, `window ${bar.window}\n${w.decided[bar.n] === null ? windowStatus(bar.n) : span(bar.end - bar.start)}, ${plural(w.tasks[bar.n], "task")}\n${plural(w.records[bar.n], "record")} written`);
  } else tip.hide();
}
function clickTime(x, y) {
  const { task, bar } = hitTime(x, y);
  pickWindow(task ? task.window : bar ? bar.window : null);
}
function timelineKey(event) {
  const list = state.data.windows.window, n = state.window === null ? -1 : list.indexOf(state.window);
  const acts = {
    ArrowRight: () => pickWindow(list[Math.min(list.length - 1, n + 1)]), ArrowLeft: () => pickWindow(list[Math.max(0, n < 0 ? list.length - 1 : n - 1)]),
    Home: () => pickWindow(list[0]), End: () => pickWindow(list[list.length - 1]), "+": () => zoomTime(1.5), "=": () => zoomTime(1.5), "-": () => zoomTime(1 / 1.5), Escape: () => pickWindow(null),
  };
  if (acts[event.key]) { event.preventDefault(); event.stopPropagation(); acts[event.key](); }
}
function pickWindow(window, scroll = false) {
  state.window = window;
  if (scroll) $("timeline").scrollIntoView();
  const bar = line.bars && line.bars.find((each) => each.window === window);
  if (bar && (bar.end < line.from || bar.start > line.to)) {
    const length = line.to - line.from;
    line.from = clamp((bar.start + bar.end) / 2 - length / 2, line.whole[0], line.whole[1] - length);
    line.to = line.from + length;
  }
  windowPanel();
  paintTimeline();
}
function windowPanel() {
  const host = $("window");
  const w = state.data.windows, n = state.window === null ? -1 : w.window.indexOf(state.window);
  if (n < 0) {
    const slow = line.bars ? [...line.bars].filter((bar) => w.decided[bar.n] !== null && bar.end > bar.start).sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, 5) : [];
    host.replaceChildren(...(slow.length > 1 ? [h("h3", {}, "Slowest windows"), table([["window", ""], ["time", "n"], ["tasks", "n"], ["work items", "n"], ["written", "n"], ["records", "n"]],
      slow.map((bar) => [h("button", { class: "link", "data-key": `w${bar.window}`, onclick: () => pickWindow(bar.window) }, `window ${bar.window}`), span(bar.end - bar.start), count(w.tasks[bar.n]), count(w.items[bar.n]), size(w.written[bar.n]), count(w.records[bar.n])]), "slowest windows")] : []));
    return;
  }
  const [start, end] = windowTimes(n), tasks = line.tasks.filter((task) => task.window === state.window).sort((a, b) => b.end - b.start - (a.end - a.start));
  const stage = (task) => task.task.split("-")[0]; // tasks of one stage do the same work
  const lengths = tasks.filter((task) => stage(task) === stage(tasks[0])).map((task) => task.end - task.start), times = lengths.length > 1 ? lengths[0] / (median(lengths) || 1) : 1;
  const timed = tasks.some((task) => sum(task.parts) > 0);
  const status = windowStatus(n), isCommitted = status === "committed", inputs = tasks.some((task) => task.input);
  host.replaceChildren(h("h3", { "aria-live": "polite", class: status === "failed" ? "bad" : null }, `Window ${state.window}${isCommitted ? "" : `: ${status}`}`),
    pairs([["began", clock(start)], ["took", isCommitted && span(end - start)], ["input", `${plural(w.items[n], "work item")}, ${size(w.bytes[n])}`], ["written", isCommitted && `${plural(w.records[n], "record")} in ${plural(w.files[n], "file")}, ${size(w.written[n])}`],
      ["tasks", w.tasks[n] ? `${count(w.tasks[n])}${times >= 1.1 ? `; the slowest of stage ${stage(tasks[0])} took ${times.toFixed(1)} times the median` : ""}` : null], ["retries", w.retries[n] || null], ["steals", w.steals[n] || null]]),
    ...(tasks.length ? longTable(`tasks ${state.window}`, [["task", ""], ["took", "n"], ["records", "n"], ...(timed ? Object.values(PARTS).map((name) => [name, "n"]) : []), ...(inputs ? [["input", "wrap"]] : [])],
      tasks.map((task) => () => [task.task, span(task.end - task.start), count(task.records), ...(timed ? task.parts.map((part) => span(part / 1000)) : []), ...(inputs ? [inputText(task.input)] : [])]), `tasks of window ${state.window}`)
      : isCommitted ? [h("p", { class: "dim" }, "Its tasks are not kept one by one.")] : []).filter(Boolean), ...(status === "failed" ? failedItems(state.data.run.error) : []));
}
const rangeText = (range) => (range.path ? `${range.path}${range.start !== null && range.start !== undefined ? `, bytes ${count(range.start)} to ${count(range.stop)}` : ""}` : range.text);
const inputText = (input) => (!input ? "–" : input[0] ? `${rangeText(input[0])}${input[1] ? ` and ${plural(input[1], "more work item").replace(/(item)s?$/, input[1] === 1 ? "$1" : "$1s")}` : ""}` : "nothing");
// The work items of the window that failed; the one with the record that the error names comes first.
function failedItems(error) {
  if (!error.items || !error.items.length) return [];
  const rows = error.items.map((item) => () => Object.assign([item.task, rangeText(item), item.failed ? "holds the record of the error" : ""], { kind: item.failed ? "bad" : null }));
  return [h("h3", {}, error.task ? `Its work items; task ${error.task} failed` : "Its work items"), ...longTable("failed items", [["task", ""], ["work item", "wrap"], ["", ""]], rows, "work items of the window that failed"),
    error.more_items ? h("p", { class: "dim" }, `and ${count(error.more_items)} more`) : null].filter(Boolean);
}
