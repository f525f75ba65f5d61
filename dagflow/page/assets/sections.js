// A run of less than a minute, whose times have milliseconds.
const isShort = () => { const { run } = state.data; return Boolean(run.started && run.last && run.last - run.started < 60 && run.status !== "running"); };
// The sections of the page that are text, tables and curves.
function drawHead() {
  const { run, at } = state.data;
  document.title = `${run.application || "run"}: ${run.status}`;
  $("app").textContent = run.application || "a run";
  $("status").textContent = run.status;
  $("status").className = `pill ${run.status}`;
  const began = run.started, seconds = run.seconds ?? (run.status === "running" && began ? at - began : run.last && began ? run.last - began : null);
  $("meta").replaceChildren(...[began ? clock(began) : null, seconds !== null ? span(seconds) : null, run.runner && `${run.runner} runner, ${plural(run.slots, "slot")}`, [...run.outputs, ...run.sinks.map((sink) => sink.destination)].join(", ")]
    .filter(Boolean).flatMap((text, n) => (n ? [" · ", text] : [text])));
  $("links").replaceChildren(...[run.ui && h("a", { href: run.ui, rel: "noreferrer" }, "Spark's UI")].filter(Boolean));
}
function drawOverview() {
  const { run, live, windows, operators, rejects, problems, graph: drawn } = state.data;
  const error = run.error, w = windows;
  const parts = [], numbers = (status) => w.window.filter((_, n) => windowStatus(n) === status);
  const records = sum(w.records), files = sum(w.files), written = sum(w.written);
  if (run.status === "interrupted") parts.push(h("div", { class: "error warn" }, h("div", { class: "what" }, "The newest launch was stopped from outside, by Ctrl-C or a signal."), nextSteps(numbers)));
  else if (error) {
    const [first, ...rest] = error.text.split("\n");
    parts.push(h("div", { class: "error", role: "alert" }, h("div", { class: "what" }, `${error.code ? `${error.code}  ` : ""}${first}`), rest.length > 0 && h("pre", {}, rest.join("\n")),
      nextSteps(numbers),
      h("div", { class: "actions" }, error.operator && drawn && drawn.nodes.some((node) => node.name === error.operator) && h("button", { "data-key": "show failed", onclick: () => pick(error.operator, true) }, `Show ${error.operator} in the DAG`),
        error.window !== null && error.window !== undefined && w.window.includes(error.window) && h("button", { "data-key": "show failed window", onclick: () => pickWindow(error.window, true) }, `Show window ${error.window}`))));
  } else if (run.status === "killed") parts.push(h("div", { class: "error" }, h("div", { class: "what" }, "The newest launch ended without reporting its end: its process was killed, or its machine stopped."), nextSteps(numbers)));
  if (run.status === "unknown") parts.push(h("p", { class: "note" }, "It is not recorded how the newest launch ended."));
  for (const finding of state.data.findings || []) parts.push(h("p", { class: "note warn finding" }, `${finding.text} `, h("button", { class: "link", "data-key": `finding ${finding.part}`, onclick: () => (finding.window === undefined ? $(finding.part).scrollIntoView() : pickWindow(finding.window, true)) }, "Show")));
  for (const { what, code, text } of problems) parts.push(h("p", { class: "note warn" }, `${what}: ${code ? `${code} ` : ""}${text}`));
  const seconds = Object.entries(operators).map(([name, own]) => [name, own.seconds || 0]).sort((a, b) => b[1] - a[1]);
  const errors = sum(rejects.map((each) => each.errors)), retries = (live.retries || []).length;
  const times = ["read", "compute", "write", "wait"].map((part) => sum(w[part].filter((_, n) => w.decided[n] !== null))), total = sum(times);
  const readers = Object.values(operators).filter((own) => own.counters && own.counters.bytes), older = w.launches.length > 1;
  const tile = (name, value, more) => value !== null && value !== undefined && value !== false && h("div", {}, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more)));
  parts.push(h("p", { class: "tally" }, h("strong", {}, tally(numbers)), w.window.length ? h("span", { class: "dim" }, `${numbers("committed").length === w.window.length ? "" : numbers("committed").length ? " The figures are those of the committed ones." : run.status === "running" ? "" : " The figures of operators are those of work that the next launch repeats."}${w.window[0] ? " Earlier windows are in the ledger only." : ""}${older ? " Times and retries: the newest launch." : ""}`) : null));
  parts.push(h("dl", { class: "tiles" },
    tile("Records written", (files > 0 || !run.sinks.length) && count(records), `${plural(files, "file")}, ${size(written)}`),
    tile("Rows to tables", run.sinks.length > 0 && count(sum(run.sinks.map((sink) => sink.rows))), run.sinks.map((sink) => `${sink.operator} ${count(sink.rows)}`).join(", ")),
    tile("Read", readers.length > 0 && size(sum(readers.map((own) => own.counters.bytes))), plural(sum(readers.map((own) => own.records_out)), "record")),
    tile("Slowest operator", seconds.length > 0 && seconds[0][1] > 0 && h("button", { class: "link", "data-key": "slowest", onclick: () => pick(seconds[0][0], true) }, seconds[0][0]), seconds.length ? `${span(seconds[0][1])} in all its tasks` : null),
    tile("Time of tasks", total > 0 && span(total), Object.values(PARTS).map((name, n) => (times[n] / total >= 0.005 ? `${Math.round((100 * times[n]) / total)} % ${name}` : null)).filter(Boolean).join(", ")),
    tile("Use of slots", run.slot_use !== null && run.slot_use !== undefined && `${Math.round(100 * run.slot_use)} %`, `of the time of ${plural(run.slots, "slot")}`),
    tile("Rejected records", errors ? count(errors) : "0"), tile("Retries", count(retries)),
    tile("Backlog", run.status === "running" && live.backlog !== null && live.backlog !== undefined && count(live.backlog), live.backlog_bytes ? size(live.backlog_bytes) : null),
    tile("Remaining", run.status === "running" && live.remaining ? span(live.remaining) : null, "estimated")));
  const waits = run.status === "running" ? Object.entries(live.waiting || {}) : [];
  for (const [name, why] of waits) parts.push(h("p", { class: "note" }, `${name ? `${name} waits` : "Waiting"}: ${why}`));
  const warnings = live.warnings || [];
  if (warnings.length) parts.push(h("h3", {}, plural(warnings.length, "warning")), ...warnings.slice(-5).map(([, text]) => h("p", { class: "note warn" }, text)));
  if (retries) parts.push(h("h3", {}, "Retries"), ...longTable("retries", [["time", ""], ["window", "n"], ["what", "wrap"], ["why", "wrap"]], [...live.retries].reverse().map(([at, window, what, why]) => [clock(at, false), count(window), what, why]), "retries", 5));
  const expectations = live.expectations || [];
  if (expectations.length) parts.push(h("h3", {}, "Expectations"), table([["operator", ""], ["expectation", ""], ["records", "n"], ["rejected", "n"], ["share", "n"], ["allowed", "n"], ["status", ""]],
    expectations.map((e) => [e.operator, e.name, count(e.records), count(e.rejected), e.records ? `${((100 * e.rejected) / e.records).toFixed(2)} %` : "–", e.max_share === null || e.max_share === undefined ? "–" : `${+(100 * e.max_share).toFixed(3)} %`, e.status]), "expectations"));
  $("overview-body").replaceChildren(...parts);
}
// `3 windows (0 to 2): 2 committed, 1 failed`
function tally(numbers) {
  const w = state.data.windows, all = w.window.length;
  if (!all) return `No window ${state.data.run.status === "running" ? "has been planned yet" : "was planned"}.`;
  const parts = ["committed", "failed", "running", "not committed"].map((status) => [status, numbers(status).length]).filter(([, n]) => n);
  const which = all > 1 ? ` (${count(w.window[0])} to ${count(w.window[all - 1])})` : ` (number ${count(w.window[0])})`;
  return `${plural(all, "window")}${which}: ${parts.map(([status, n]) => (n === all ? `${all > 1 ? "all " : ""}${status}` : `${count(n)} ${status}`)).join(", ")}.`;
}
// What was committed, and what to do, for a run that did not end in good order.
function nextSteps(numbers) {
  const { run, windows: w } = state.data, error = run.error, done = numbers("committed"), left = [...numbers("failed"), ...numbers("not committed")].sort((a, b) => a - b);
  const list = (all) => (all.length === 1 ? `window ${count(all[0])}` : `${plural(all.length, "window")} (${count(all[0])} to ${count(all[all.length - 1])})`);
  const first = left.length ? left[0] : null;
  return pairs([
    ["committed", done.length ? `${list(done)}: ${plural(sum(w.records), "record")} in ${plural(sum(w.files), "file")}, ${size(sum(w.written))}. This stays.` : "nothing"],
    ["not committed", left.length ? `${list(left)}${error && numbers("failed").length && left.length > 1 ? `; window ${count(error.window)} failed` : ""}` : null],
    ["what to do", error && error.remedy],
    ["explained by", error && error.code && h("code", {}, `dagflow explain ${error.code}`)],
    ["resume with", run.resume ? [h("pre", { class: "command", tabindex: "0" }, run.resume.split(" ").flatMap((word) => [h("span", {}, word), " "])), h("span", { class: "dim small" }, `${first === null ? "It resumes where this launch ended." : `It begins with window ${count(first)}.`}${done.length ? " Committed windows are not run again." : ""}`)]
      : `the launch of this application, with the same settings: it resumes${first === null ? " where this one ended" : ` with window ${count(first)}`}.`]]);
}
const linked = () => { const edges = state.data.graph ? state.data.graph.edges : []; return { into: new Set(edges.map((edge) => edge.to)), from: new Set(edges.map((edge) => edge.from)) }; };
// The number of records on a side of an operator: a dash where nothing is connected to it.
const flow = (n, name, names) => (n || names.has(name) || !state.data.graph ? count(n) : "–");
function drawOperators() {
  const names = state.data.graph ? state.data.graph.nodes.map((node) => node.name) : Object.keys(state.data.operators);
  const rows = names.map((name) => [name, operatorFigures(name) || {}]);
  const most = Math.max(0.001, ...rows.map(([, own]) => own.seconds || 0)), timed = rows.some(([, own]) => own.seconds), bytes = rows.some(([, own]) => own.bytes || (own.counters || {}).bytes);
  rows.sort((a, b) => (b[1].seconds || 0) - (a[1].seconds || 0));
  const ends = linked(), any = (part) => rows.some(([, own]) => own[part]);
  $("operators-body").replaceChildren(...longTable("operators", [["operator", ""], ...(timed ? [["time", ""]] : []), ["records in", "n"], ["records out", "n"], ...(bytes ? [["bytes", "n"]] : []), ...(any("errors") ? [["rejected", "n"]] : []), ...(any("converted") ? [["converted", "n"]] : [])],
    rows.map(([name, own]) => () => [h("button", { class: "link", "data-key": `op ${name}`, onclick: () => pick(name, true) }, name),
      ...(timed ? [[h("span", { class: "bar", css: { width: `${(60 * (own.seconds || 0)) / most}px` } }), own.seconds ? span(own.seconds) : ""]] : []),
      flow(own.records_in, name, ends.into), flow(own.records_out, name, ends.from), ...(bytes ? [own.bytes || (own.counters || {}).bytes ? size(own.bytes || own.counters.bytes) : ""] : []),
      ...(any("errors") ? [own.errors ? count(own.errors) : ""] : []), ...(any("converted") ? [own.converted ? count(own.converted) : ""] : [])]), "operators", 15).filter(Boolean));
}
// A curve over time: points of [seconds, value]; `steps` for numbers that stay until the next one.
function chart(title, points, { steps = false, show = count } = {}) {
  const width = 420, height = 140, left = 8, bottom = 22, top = 18;
  const [t0, t1] = [points[0][0], Math.max(points[points.length - 1][0], points[0][0] + 0.001)], most = Math.max(1, ...points.map((p) => p[1]));
  const x = (at) => left + ((at - t0) / (t1 - t0)) * (width - 2 * left), y = (value) => top + (1 - value / most) * (height - top - bottom);
  let path = `M${x(points[0][0]).toFixed(1)} ${y(points[0][1]).toFixed(1)}`;
  for (const [at, value] of points.slice(1)) path += steps ? `H${x(at).toFixed(1)}V${y(value).toFixed(1)}` : `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
  const floor = height - bottom;
  return h("figure", { class: "chart", css: { margin: "0" } }, h("figcaption", {}, title, h("span", { class: "dim small" }, `  now ${show(points[points.length - 1][1])}`)),
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: from ${show(points[0][1])} to ${show(points[points.length - 1][1])}, at most ${show(most)}` },
      s("path", { class: "axis", d: `M${left} ${floor}H${width - left}` }), s("path", { class: "area", d: `${path}V${floor}H${left}z` }), s("path", { d: path }),
      s("text", { x: left, y: 12 }, show(most)), s("text", { x: left, y: height - 6 }, clock(t0, false)), s("text", { x: width - left, y: height - 6, "text-anchor": "end" }, clock(t1, false))));
}
function drawCurves() {
  const { live, windows: w } = state.data, figures = [];
  const decided = w.window.map((_, n) => [w.decided[n], w.records[n]]).filter(([at]) => at !== null).sort((a, b) => a[0] - b[0]);
  if (decided.length > 2) {
    const first = decided[0][0], last = decided[decided.length - 1][0], bins = clamp(Math.round(decided.length / 4), 8, 60), step = (last - first) / bins || 1, totals = Array(bins).fill(0);
    for (const [at, records] of decided) totals[Math.min(bins - 1, Math.floor((at - first) / step))] += records;
    figures.push(chart("Records written per second", totals.map((n, k) => [w.t0 + (first + (k + 0.5) * step) / 1000, n / (step / 1000)]), { show: (n) => compact(Math.round(n)) }));
  }
  const curve = (live.curve || []).filter((point) => point[1] !== null && point[1] !== undefined);
  if (curve.length > 1) figures.push(chart("Backlog", curve.map(([at, n]) => [at, n]), { show: compact }));
  const byOperator = new Map();
  for (const [at, , operator, before, readers, backlog, bytes] of live.readers || []) {
    if (!byOperator.has(operator)) byOperator.set(operator, { readers: [[at - 0.001, before]], backlog: [] });
    byOperator.get(operator).readers.push([at, readers]);
    byOperator.get(operator).backlog.push([at, bytes || backlog, bytes > 0]);
  }
  for (const [name, own] of byOperator) {
    own.readers.push([Math.max(state.data.run.last || 0, own.readers[own.readers.length - 1][0]), own.readers[own.readers.length - 1][1]]);
    figures.push(chart(`Readers of ${name}`, own.readers, { steps: true }));
    if (curve.length < 2 && own.backlog.length > 1) figures.push(chart(`Backlog of ${name}`, own.backlog, { show: own.backlog[0][2] ? size : compact }));
  }
  $("curves-body").replaceChildren(figures.length ? h("div", { class: "charts" }, figures) : h("p", { class: "dim" }, "There are too few windows for a curve, and the number of readers has not changed."));
  const steals = live.steals || [];
  $("steals-body").replaceChildren(...[live.stolen ? h("p", {}, `Readers took work from other readers ${plural(live.stolen, "time")}${live.stolen_bytes ? `, ${size(live.stolen_bytes)} in all` : ""}.`) : h("p", { class: "dim" }, `No reader took work from another one${live.rebalancing ? `: ${live.rebalancing}` : ""}.`),
    steals.length ? longTable("steals", [["time", ""], ["window", "n"], ["from", ""], ["to", ""], ["parts", "n"], ["size", "n"]], [...steals].reverse().map(([at, window, from, to, n, bytes]) => [clock(at, false), count(window), from, to, count(n), bytes ? size(bytes) : "–"]), "steals", 6) : null].flat(Infinity).filter(Boolean));
}
function drawRows() {
  const rows = state.data.rows;
  $("rows").classList.toggle("gone", !rows);
  if (!rows) return;
  if (!rows.length) { $("rows-body").replaceChildren(h("p", { class: "dim" }, "No rows have been committed yet.")); return; }
  const several = new Set(rows.map((row) => row.dataset)).size > 1;
  const list = h("ol", { role: "listbox", "aria-label": "output rows" }, rows.map((row, n) => h("li", { role: "presentation" }, h("button", { role: "option", "aria-selected": String(state.row === n), "data-key": `row${n}`,
    onclick: () => { state.row = state.row === n ? null : n; render(true); },
    onkeydown: (event) => { const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]; const other = step && document.querySelector(`[data-key="row${n + step}"]`); if (other) { event.preventDefault(); other.focus(); } } },
    h("span", { class: "offset" }, row.offset === undefined ? "–" : count(row.offset)), h("span", { class: "text mono" }, row.text ?? row.problem?.text ?? row.file), several && h("span", { class: "dim small" }, row.dataset.split("/").pop())))));
  $("rows-body").replaceChildren(list, h("div", { id: "origin", "aria-live": "polite" }, state.row === null || !rows[state.row] ? h("p", { class: "dim" }, "Choose a row to see where it comes from.") : origin(rows[state.row])));
}
const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
function origin(row) {
  const step = (label, ...body) => h("li", {}, h("span", { class: "label" }, label), body);
  const steps = [];
  if (row.offset !== undefined) steps.push(step(`row ${count(row.offset)} of ${row.dataset}`, row.text !== null && row.text !== undefined ? h("pre", {}, row.text) : h("span", { class: "dim" }, "Its file is not read as text.")));
  if (row.file) steps.push(step("file", `${row.file}, row ${count(row.row + 1)}`));
  if (row.entry !== undefined) steps.push(step("ledger entry", `${count(row.entry)}, committed ${clock(row.committed)}`));
  if (row.window !== undefined) steps.push(step("window", h("button", { class: "link", "data-key": "origin window", onclick: () => pickWindow(row.window, true) }, `window ${row.window}`)));
  if (row.operator) steps.push(step("written by", h("button", { class: "link", "data-key": "origin operator", onclick: () => pick(row.operator, true) }, row.operator), row.task ? `, in task ${row.task}` : ", on the driver"));
  if (row.ranges && row.ranges.length) steps.push(step(`its task read${row.head ? `, with ${row.head}` : ""}`, row.ranges.map((r) => h("div", {}, r.path ? `${r.path}${r.start !== null ? `, bytes ${count(r.start)} to ${count(r.stop)}` : ""}` : r.text)), row.more_ranges ? h("div", { class: "dim" }, `and ${count(row.more_ranges)} more`) : null));
  const source = row.source;
  if (source && source.gone) steps.push(step("source", h("span", { class: "dim" }, `${source.path} can no longer be read.`)));
  else if (source) {
    const at = source.path ? `${source.path}${source.line ? `, line ${count(source.line)}` : ""}, bytes ${count(source.position)} to ${count(source.position + source.length)}` : `position ${JSON.stringify(source.position)}`;
    const found = step("the line itself", at, h("pre", {}, source.text), h("div", { class: "dim small" }, `Found as ${source.how}.`));
    found.className = "line";
    steps.push(found);
  }
  if (row.several) steps.push(step("made of", `all of these: ${row.several}`));
  for (const remark of row.remarks || []) steps.push(step("note", remark));
  if (row.problem) steps.push(step("not traced further", h("span", {}, `${row.problem.code}: ${row.problem.text}`)));
  if (row.offset !== undefined && (!source || source.gone)) steps.push(step("find the record itself", h("pre", {}, `dagflow trace ${shell(row.dataset)} --offset ${row.offset} --exact --trust`), h("div", { class: "dim small" }, "This runs the application's code again, up to this row.")));
  return h("ol", { class: "steps" }, steps);
}
function drawRejects() {
  const rejects = state.data.rejects;
  $("rejects-body").replaceChildren(...(rejects.length ? rejects.flatMap((each) => [h("h3", {}, h("button", { class: "link", "data-key": `reject ${each.operator}`, onclick: () => pick(each.operator, true) }, each.operator), `: ${plural(each.errors, "record")}`),
    !each.samples.length ? h("p", { class: "dim" }, "No sample of them is kept.") : table([["window", "n"], ["for example", "wrap"]], each.samples.map(([window, text]) => [count(window), h("pre", {}, text)]), `rejects of ${each.operator}`)]) : [h("p", { class: "dim" }, "No record was rejected.")]));
}
function drawLedgers() {
  $("ledger-body").replaceChildren(...state.data.ledgers.flatMap((ledger) => [h("h3", {}, ledger.dataset), ledger.problem ? h("p", { class: "note warn" }, `${ledger.problem.code}: ${ledger.problem.text}`) : null,
    ledger.count !== undefined ? h("p", { class: "dim" }, `${plural(ledger.rows || 0, "row")}, ${count(ledger.count)} ${ledger.count === 1 ? "entry" : "entries"}, ${ledger.id}`) : null,
    ledger.entries.length ? longTable(`entries ${ledger.dataset}`, [["entry", "n"], ["committed", ""], ["event", ""], ["window", "n"], ["rows", "n"], ["files", "n"], ["size", "n"], ["hash", ""]],
      ledger.entries.map((e) => [count(e.seq), clock(e.at), e.kind, e.window === null ? "" : count(e.window), e.rows ? `${count(e.rows[0])} to ${count(e.rows[1])}` : "", e.files ? count(e.files) : "", e.bytes ? size(e.bytes) : "", h("code", {}, (e.hash || "").slice(0, 19))]), `entries of ${ledger.dataset}`, 6) : null,
    ledger.files.length ? [h("h3", {}, "Files"), longTable(`files ${ledger.dataset}`, [["file", "wrap"], ["entry", "n"], ["first row", "n"], ["rows", "n"], ["size", "n"], ["hash", ""]], ledger.files.map(([path, rows, bytes, hash, seq, first]) => [path, count(seq), count(first), count(rows), size(bytes), h("code", {}, hash.slice(0, 19))]), `files of ${ledger.dataset}`, 6)] : null].flat(Infinity).filter(Boolean)));
  if (!state.data.ledgers.length) $("ledger-body").replaceChildren(h("p", { class: "dim" }, "This run writes no datasets."));
}
function drawSettings() {
  const { settings, versions, launched, launches, dagflow } = state.data;
  const given = settings.filter((row) => row[3] !== "default"), all = state.opened.has("settings");
  const parts = [settings.length ? table([["setting", ""], ["value", "wrap"], ["from", ""]], (all ? settings : given).map(([, key, value, from]) => [key, h("span", { class: "mono" }, value), h("span", { class: "dim" }, from)]), "settings") : h("p", { class: "dim" }, "The newest launch has recorded no settings."),
    settings.length > given.length ? h("button", { "data-key": "settings", "aria-expanded": String(all), onclick: () => { toggle(state.opened, "settings"); render(true); } }, all ? "Only settings that were given" : `Also ${plural(settings.length - given.length, "default")}`) : null,
    launched && launched.left_out.length ? h("p", { class: "dim" }, `Not recorded, because they may hold secrets or are not plain data: ${launched.left_out.join(", ")}`) : null,
    h("h3", {}, "Versions"), pairs([...Object.entries(versions), ["page made by dagflow", dagflow], ["application", launched && launched.application], ["launched in", launched && launched.folder], ["run folder", state.data.run.run_folder]])];
  if (launches.length > 1) parts.push(h("h3", {}, "Launches"), ...longTable("launches", [["launch", ""], ["began", ""], ["status", ""], ["windows", "n"], ["time", "n"], ["error", "wrap"]], launches.map((each) => [each.launch, clock(each.at), each.status, count(each.windows), span(each.seconds), (each.error || "").split("\n")[0]]), "launches", 8));
  $("settings-body").replaceChildren(...parts.flat(Infinity).filter(Boolean));
}
