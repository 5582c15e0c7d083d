// @ts-check
// Failed jobs, grouped by what went wrong.

import { at } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, line } from "../words.js";
import { bulkDialog } from "./bulk.js";
import { Button } from "./button.js";
import { Code } from "./panel.js";
import { Table } from "./table.js";
import { When } from "./time.js";

/** The error of a job in one line. @param {any} error */
export function errorLine(error) {
  if (!error) return "";
  if (typeof error !== "object") return line(error);
  return line([error.type, error.message].filter(Boolean).join(": ")) || line(JSON.stringify(error));
}

/** Errors that differ by numbers and quoted names alone are the same. @param {import("../types").JobView} job */
function fingerprint(job) {
  return `${job.task} ${errorLine(job.error).replace(/(['"`]).*?\1/g, "…").replace(/[0-9a-f]{8,}/gi, "#").replace(/\d+/g, "#")}`;
}

/** @param {any[]} jobs newest first */
function grouped(jobs) {
  const groups = new Map();
  for (const job of jobs) {
    const key = fingerprint(job);
    const group = groups.get(key) ?? { key, task: job.task, text: errorLine(job.error), type: job.error?.type, ids: [], last: null, first: null };
    const ended = job.finished_at ?? job.created_at;
    group.ids.push(job.id);
    group.last = group.last === null || ended > group.last ? ended : group.last;
    group.first = group.first === null || ended < group.first ? ended : group.first;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.ids.length - a.ids.length).slice(0, 8);
}

/** @param {{jobs: any[], more: boolean}} props more: there are older ones than these */
export function Failures({ jobs, more }) {
  const groups = useMemo(() => grouped(jobs), [jobs]);
  const columns = useMemo(() => [
    { title: "Error", kind: "head", cell: (/** @type {any} */ one) => html`<a class="name bad" href=${at("/jobs", { state: "failed", task: one.task, error: one.type })} title=${one.text}>${one.text || "No error was stored"}</a>` },
    { title: "Task", width: "12rem", cell: (/** @type {any} */ one) => html`<span class="clip"><${Code}>${one.task}<//></span>` },
    { title: "Jobs", kind: "num", width: "4rem", cell: (/** @type {any} */ one) => count(one.ids.length) },
    { title: "First seen", width: "9rem", kind: "wide-only", cell: (/** @type {any} */ one) => html`<${When} at=${one.first} />` },
    { title: "Last seen", width: "9rem", cell: (/** @type {any} */ one) => html`<${When} at=${one.last} />` },
    { title: html`<span class="unseen">Actions</span>`, kind: "act", width: "7rem", cell: (/** @type {any} */ one) => html`<${Button} tiny need="operate" label=${`Retry ${one.ids.length} of ${clean(one.task)}`} onClick=${() => void bulkDialog("retry", { ids: one.ids })}>Retry ${one.ids.length}<//>` },
  ], []);
  if (!groups.length) return html`<p class="quiet">No job has failed for good.</p>`;
  return html`<${Table} caption="Failures by error" columns=${columns} rows=${groups} id=${(/** @type {any} */ one) => one.key} />${more && html`<p class="quiet">Of the newest ${jobs.length} failed jobs.</p>`}`;
}
