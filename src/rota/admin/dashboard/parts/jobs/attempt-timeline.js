// @ts-check
// The attempts of a job as marks on a line of time.

import { now, zone } from "../../state.js";
import { html } from "../../ui.js";
import { exact, duration } from "../../format.js";

/**
 * @typedef {{job: import("../../types").JobView, attempts: import("../../types").AttemptView[],
 *   why: import("../../types").Why | null}} Props
 */
/** @typedef {{kind: string, from: string, to: string, word: string}} Mark */

/** @param {Props} props @returns {Mark[]} */
function marksOf({ job, attempts, why }) {
  const marks = /** @type {{kind: string, from: string | null, to: string | null, word: string}[]} */ ([
    { kind: "created", from: job.created_at, to: job.created_at, word: "created" },
  ]);
  for (const one of attempts)
    marks.push({
      kind: one.outcome,
      from: one.started_at ?? one.finished_at,
      to: one.finished_at,
      word: String(one.attempt),
    });
  if (job.state === "running")
    marks.push({
      kind: "running",
      from: job.started_at,
      to: new Date(now.value).toISOString(),
      word: `${job.attempt}`,
    });
  else if (job.state === "succeeded" && !attempts.some((one) => one.outcome === "succeeded"))
    marks.push({ kind: "succeeded", from: job.started_at, to: job.finished_at, word: `${job.attempt}` });
  else if (job.state === "queued")
    marks.push({
      kind: "next",
      from: why?.likely_start_at ?? job.run_at,
      to: why?.likely_start_at ?? job.run_at,
      word: "next",
    });
  else if (job.state === "cancelled" && attempts.at(-1)?.outcome !== "cancelled")
    marks.push({ kind: "cancelled", from: job.finished_at, to: job.finished_at, word: "cancelled" });
  return /** @type {Mark[]} */ (marks.filter((mark) => mark.from && mark.to)).slice(-8);
}

/** Marks in the order of time, evenly spaced: seconds and days must both be readable. @param {Props} props */
export function AttemptTimeline(props) {
  const marks = marksOf(props);
  const step = 100 / Math.max(2, marks.length);
  return html`<svg
    class="attempt-timeline"
    width="100%"
    height="78"
    role="img"
    aria-label=${marks.map((mark) => `${mark.word} ${mark.kind} ${exact(mark.from, now.value, zone.value)}`).join(", ")}
  >
    <line class="thread" x1="0" x2=${`${step * (marks.length - 1)}%`} y1="34" y2="34" />
    ${marks.map(
      (mark, i) => html`<g key=${i}>
        <text class="word" x=${`${i * step}%`} y="12">${mark.word}</text>
        <svg x=${`${i * step}%`} y="24" width="20" height="20" overflow="visible"><${Shape} kind=${mark.kind} /></svg>
        <text x=${`${i * step}%`} y="60">${exact(mark.from, now.value, zone.value)}</text>
        <text x=${`${i * step}%`} y="74">
          ${mark.from !== mark.to ? duration((Date.parse(mark.to) - Date.parse(mark.from)) / 1000) : ""}
        </text>
      </g>`,
    )}
  </svg>`;
}

/** @param {{kind: string}} props */
function Shape({ kind }) {
  if (kind === "created") return html`<circle class="t-created" cx="4" cy="10" r="4" />`;
  if (kind === "failed")
    return html`<rect class="t-failed" width="20" height="20" rx="2" /><path class="t-cut" d="m6 6 8 8m0-8-8 8" />`;
  if (kind === "rescued" || kind === "lost")
    return html`<rect class="t-lost" x="1" y="1" width="18" height="18" rx="2" />`;
  if (kind === "succeeded" || kind === "removed")
    return html`<rect class="t-good" width="20" height="20" rx="2" /><path class="t-cut" d="m5 10.5 3.5 3.5L15 6.5" />`;
  if (kind === "cancelled")
    return html`<circle class="t-off" cx="10" cy="10" r="9" /><path class="t-off" d="m4 16 12-12" />`;
  if (kind === "running")
    return html`<rect class="t-run" width="20" height="20" rx="2" /><path class="t-cut full" d="M7 5v10l8-5z" />`;
  return html`<rect class="t-next" x="1" y="1" width="18" height="18" rx="2" />`;
}
