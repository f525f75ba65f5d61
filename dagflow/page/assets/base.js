"use strict";
// Elements are made of text nodes only: nothing of the data is ever parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [key, own] of Object.entries(value)) element.style.setProperty(key, own);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const count = (n) => (n === null || n === undefined ? "–" : Number(n).toLocaleString("en"));
function compact(n) {
  for (const [size, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (Math.abs(n) >= size) {
      const value = n / (size === 1e4 ? 1e3 : size);
      return value.toFixed(value < 10 ? 1 : 0) + unit;
    }
  }
  return count(n);
}
function size(n) {
  if (n === null || n === undefined) return "–";
  let value = n;
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024 || unit === "TiB") return `${unit === "B" || value >= 100 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${unit}`;
    value /= 1024;
  }
}
function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}
const two = (n) => String(n).padStart(2, "0");
// The times of a run of less than a minute have milliseconds.
function clock(at, withDate = true, fine = isShort()) {
  if (!at) return "–";
  const d = new Date(Math.round(at * 1000));
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${fine ? `.${String(d.getMilliseconds()).padStart(3, "0")}` : ""}`;
  return withDate ? `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}` : time;
}
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : noun.endsWith("y") ? "" : "s"}`;
const several = (n, noun, verb = "was", verbs = "were") => `${plural(n, noun)} ${n === 1 ? verb : verbs}`;
function median(list) {
  const sorted = [...list].sort((a, b) => a - b), n = sorted.length, half = n >> 1;
  return n % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
const sum = (list) => list.reduce((a, b) => a + (b || 0), 0);
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// rows: arrays of cells, `kind` of a row its class. columns: [title, "n" for numbers, "wrap" for long texts, or ""].
function table(columns, rows, caption) {
  return h("div", { class: "table", tabindex: rows.length > 6 ? "0" : null, role: "region", "aria-label": caption },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { class: kind, scope: "col" }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.kind }, row.map((cell, n) => h("td", { class: columns[n][1] }, cell)))))));
}
// The first rows, and the others on demand. A row may be a function that makes it.
function longTable(key, columns, rows, caption, first = 12) {
  const open = state.opened.has(key);
  const more = rows.length > first && h("button", { "data-key": key, "aria-expanded": String(open), onclick: () => { toggle(state.opened, key); render(true); } },
    open ? "Show fewer" : `Show all ${count(rows.length)}`);
  return [table(columns, (open ? rows : rows.slice(0, first)).map((row) => (typeof row === "function" ? row() : row)), caption), more];
}
function toggle(set, key) { if (!set.delete(key)) set.add(key); }
function pairs(list) {
  return h("dl", { class: "pairs" }, list.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

const tip = {
  show(x, y, text) {
    const box = $("tip");
    box.textContent = text;
    box.classList.remove("gone");
    box.style.setProperty("left", `${clamp(x + 14, 4, innerWidth - box.offsetWidth - 8)}px`);
    box.style.setProperty("top", `${y + 18 + box.offsetHeight > innerHeight ? y - box.offsetHeight - 10 : y + 18}px`);
  },
  hide() { $("tip").classList.add("gone"); },
};
// Drawing is done once a frame, however many events there are.
function eachFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
}
// Drag, wheel with Ctrl, and two fingers: pan(dx, dy) and zoom(factor, x, y), in pixels of the element.
function gestures(element, { pan, zoom, click, hover }) {
  const fingers = new Map();
  let moved = 0;
  const at = (event) => { const box = element.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  element.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, at(event)); moved = 0; });
  element.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId), now = at(event);
    if (!before) { if (hover && event.pointerType === "mouse") hover(now[0], now[1], event); return; }
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const far = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      zoom(far(now) / far(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else {
      moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      if (moved > 4) {
        if (!element.hasPointerCapture(event.pointerId)) element.setPointerCapture(event.pointerId);
        element.parentElement.classList.add("dragging");
        pan(now[0] - before[0], now[1] - before[1]);
      }
    }
    fingers.set(event.pointerId, now);
  });
  const end = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    element.parentElement.classList.remove("dragging");
    if (event.type === "pointerup" && moved <= 4 && click) click(...at(event), event);
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => hover && hover(null));
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0025), ...at(event));
  }, { passive: false });
}
