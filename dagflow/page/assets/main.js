// The state of the page, and the way from data to all sections.
const state = { data: null, picked: null, window: null, row: null, folded: new Set(), opened: new Set(), drawn: {} };

const SECTIONS = [
  [drawHead, (d) => [d.run, d.run.status === "running" ? d.at : 0]], [drawOverview, (d) => [d.run, d.live, d.windows, d.operators, d.problems, d.rejects, d.findings]],
  [drawGraph, (d) => [d.graph, d.operators, d.live, d.exchanges, d.run.error, d.run.status]], [operatorPanel, (d) => [d.operators, d.live, d.run.error]],
  [drawTimeline, (d) => [d.windows, d.tasks, d.run.status === "running" ? d.at : 0]], [windowPanel, (d) => [d.windows, d.tasks, d.run.error]], [drawCurves, (d) => [d.live, d.windows]],
  [drawOperators, (d) => [d.operators, d.live]], [drawRows, (d) => [d.rows]], [drawRejects, (d) => [d.rejects]], [drawLedgers, (d) => [d.ledgers]], [drawSettings, (d) => [d.settings, d.versions, d.launches]],
];
// Draw what has changed; the focus stays where it was.
function render(all = false, sections = SECTIONS) {
  const focused = document.activeElement && document.activeElement.getAttribute("data-key");
  for (const [draw, parts] of sections) {
    const now = JSON.stringify(parts(state.data));
    if (!all && state.drawn[draw.name] === now) continue;
    state.drawn[draw.name] = now;
    draw();
  }
  if (focused && document.activeElement === document.body) {
    const again = document.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
}
function begin(data) {
  const first = state.data === null;
  state.data = data;
  if (first && data.graph && data.graph.nodes.length > 60) data.graph.groups.forEach((group, g) => group.kind === "module" && state.folded.add(g));
  if (first && data.run.error && data.windows.window.includes(data.run.error.window)) state.window = data.run.error.window;
  else if (first && data.windows.window.length === 1) [state.window] = data.windows.window;
  $("waiting").classList.add("gone");
  $("page").classList.remove("gone");
  // a plan that has not run has a DAG and nothing else
  if (data.plan) for (const part of document.querySelectorAll("main > section:not(#graph), nav, .foot")) part.classList.add("gone");
  render(false, SECTIONS.slice(0, 2)); // what matters most is seen before the rest is drawn
  if (first) requestAnimationFrame(() => setTimeout(() => { render(); document.body.dataset.drawn = "1"; }));
  else render();
}
function chooseTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  $("theme").setAttribute("aria-pressed", String(now !== "dark"));
  paintTimeline();
}
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
function say(text) {
  $("waiting").textContent = text;
  $("waiting").classList.remove("gone");
}
async function poll() {
  let pause = 1000;
  try {
    const answer = await fetch("data.json", { headers: state.tag ? { "If-None-Match": state.tag } : {}, cache: "no-store" });
    if (answer.status === 200) {
      state.tag = answer.headers.get("ETag");
      const data = await answer.json();
      if (data.waiting) say(data.waiting);
      else begin(data);
      $("live").textContent = data.waiting || data.run.status === "running" ? "live" : "";
      if (!data.waiting && data.run.status !== "running") pause = 3000;
    } else if (answer.status !== 304) say(await answer.text());
    document.body.classList.remove("lost");
  } catch (error) {
    $("live").textContent = "not connected: dagflow ui has ended";
    pause = 5000;
  }
  setTimeout(poll, document.hidden ? 5000 : pause);
}
$("theme").addEventListener("click", chooseTheme);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !state.data) return;
  tip.hide();
  const name = state.picked;
  if (name) {
    pick(null);
    const box = graph.nodes.get(name);
    if (box && $("stage").contains(document.activeElement) || document.activeElement === document.body) box && box.element.focus({ preventScroll: true });
  } else if (state.window !== null) pickWindow(null);
  else if (state.row !== null) { state.row = null; render(true); }
});
addEventListener("resize", () => { if (state.data && graph.laid) { paintTimeline(); drawGraph(); graph.touched = false; refit(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paintTimeline());
if (document.body.dataset.live) poll();
else unpack($("data").textContent).then(begin).catch((error) => say(`This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`));
