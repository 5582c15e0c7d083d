// @ts-check
// The columns of the jobs view.

import { write } from "../../exact.js";
import { at, may, now } from "../../state.js";
import { computed, html, useMemo } from "../../ui.js";
import { clean, line, shortId } from "../../format.js";
import { Badge, displayState } from "../base/badge.js";
import { errorLine } from "./failures.js";
import { gatesAffecting } from "../operate/paused-by.js";
import { RowAction } from "./job-actions.js";
import { Pips } from "../charts/spark.js";
import { Elapsed, When } from "../base/time.js";

/** @typedef {import("../../types").JobView} Job */

/**
 * @param {ReturnType<typeof import("./selection.js").useSelection>} selection
 * @param {import("../../types").GateView[]} gates
 * @returns {import("../base/table.js").Column<Job>[]}
 */
export function columnsOf(selection, gates) {
  const pick = {
    title: html`<input
      type="checkbox"
      aria-label="Select all shown jobs"
      checked=${selection.full}
      onClick=${selection.page}
    />`,
    kind: "pick",
    width: "2.25rem",
    cell: (/** @type {Job} */ job) =>
      html`<${SelectBox} id=${job.id} name=${`${clean(job.task)} ${shortId(job.id)}`} selection=${selection} />`,
  };
  const act = {
    title: html`<span class="visually-hidden">Actions</span>`,
    kind: "act broad",
    width: "5rem",
    cell: (/** @type {Job} */ job) => html`<${RowAction} job=${job} />`,
  };
  return [
    ...(may("operate") ? [pick] : []),
    {
      title: "State",
      width: "6.75rem",
      cell: (job) => html`<${State} job=${job} /><${PausedHint} job=${job} gates=${gates} />`,
    },
    {
      title: "Task",
      kind: "head",
      cell: (job) =>
        html`
          <a class="name" data-job=${job.id} href=${at(`/jobs/${job.id}`)}>
            ${clean(job.task)} <span class="id">${shortId(job.id)}</span>
          </a>
          <${Detail} job=${job} />
        `,
    },
    { title: "Queue", width: "5.5rem", cell: (job) => html`<code class="clip">${clean(job.queue)}</code>` },
    {
      title: "Tenant",
      width: "5rem",
      kind: "wide-only",
      cell: (job) => html`<span class="clip">${clean(job.tenant)}</span>`,
    },
    { title: "Attempts", width: "6.25rem", kind: "wide-only", cell: (job) => html`<${Pips} job=${job} />` },
    { title: "Created", width: "8.5rem", kind: "vast", cell: (job) => html`<${When} at=${job.created_at} />` },
    { title: "Time", width: "8.5rem", cell: (job) => html`<${Timing} job=${job} />` },
    {
      title: "Duration",
      kind: "num not-on-card",
      width: "4.75rem",
      cell: (job) =>
        html`<${Elapsed}
          from=${job.state === "running" || job.finished_at ? job.started_at : null}
          to=${job.finished_at}
        />`,
    },
    {
      title: "Worker",
      width: "7rem",
      kind: "wide-only",
      cell: (job) =>
        html`<span class="clip">${job.worker ? clean(job.worker) : html`<span class="faint">—</span>`}</span>`,
    },
    ...(may("operate") ? [act] : []),
  ];
}

/** @param {{id: string, name: string, selection: ReturnType<typeof import("./selection.js").useSelection>}} props */
function SelectBox({ id, name, selection }) {
  // Not controlled by the row: the row's class shows the selection, and the box follows it.
  return html`<input
    type="checkbox"
    aria-label=${`Select ${name}`}
    checked=${selection.has(id)}
    onClick=${(/** @type {MouseEvent} */ event) => selection.toggle(id, event.shiftKey)}
  />`;
}

/** @param {{job: Job}} props */
function State({ job }) {
  // A job that is due later changes once, with the clock alone: it is not rendered at each tick.
  const shown = useMemo(() => computed(() => displayState(job, now.value)), [job]);
  return html`<${Badge} state=${shown.value} />`;
}

/** Queued, and a pause keeps it from starting. @param {{job: Job, gates: import("../../types").GateView[]}} props */
function PausedHint({ job, gates }) {
  const [gate] = job.state === "queued" ? gatesAffecting(gates, job) : [];
  return gate
    ? html`<span
        class="sub"
        title=${line(`${gate.scope} ${gate.name ?? ""} is paused: ${gate.reason || "no reason given"}`)}
      >
        paused
      </span>`
    : null;
}

/** The most useful line: the error, the progress, the output or the payload. @param {{job: Job}} props */
function Detail({ job }) {
  const { error, output, payload, state } = job;
  const progress = progressOf(job);
  if (error && state !== "succeeded")
    return html`<span class=${`sub mono ${state === "failed" ? "bad" : ""}`}>${errorLine(error)}</span>`;
  if (state === "running" && progress) return html`<span class="sub">${progressText(progress)}</span>`;
  const value = state === "succeeded" && output !== null ? output : payload;
  return html`<span class="sub mono">${value === null || value === undefined ? " " : line(write(value), 160)}</span>`;
}

/** @typedef {{percent?: number, value?: number, message?: string, log?: import("../../types").LogLine[]}} Progress */

/** What a running job reported. @param {Job} job */
export function progressOf({ progress }) {
  return /** @type {Progress | null} */ (progress);
}

/** @param {Progress} progress */
function progressText(progress) {
  const percent = progress.percent ?? progress.value;
  const text = [typeof percent === "number" && `${Math.round(percent)} %`, progress.message]
    .filter(Boolean)
    .join(" · ");
  return line(text || (progress.log?.at(-1)?.message ?? write(progress)));
}

/** @param {{job: Job}} props */
function Timing({ job }) {
  if (job.finished_at) return html`<${When} at=${job.finished_at} />`;
  if (job.state === "running") return html`<${When} lead="started" at=${job.started_at} />`;
  return html`<${When} lead=${Date.parse(job.run_at) > now.peek() ? "" : "due"} at=${job.run_at} />`;
}
