// @ts-check
// A state as glyph and word.

import { html } from "../../ui.js";
import { Glyph } from "./glyph.js";

/**
 * The state to show for a job: queued is split into queued, scheduled and retrying, failed into failed and quarantined.
 * @param {import("../../types").JobView} job
 * @param {number} now
 * @returns {string}
 */
export function displayState(job, now) {
  if (job.state === "running" && job.cancel_requested) return "stopping";
  if (isQuarantined(job)) return "quarantined";
  if (job.state !== "queued" || Date.parse(job.run_at) <= now) return job.state;
  return job.attempt > 0 && job.error ? "retrying" : "scheduled";
}

/** Its workers stopped responding, so it does not run again by itself. @param {import("../../types").JobView} job */
export function isQuarantined(job) {
  const error = /** @type {{type?: string} | null} */ (job.error);
  return job.state === "failed" && job.crashes > 0 && error?.type === "Quarantined";
}

/** Colours of states that have no colour of their own name. */
/** @type {Record<string, string>} */
const COLOURS = {
  scheduled: "queued",
  retrying: "queued",
  rescued: "failed",
  off: "cancelled",
  released: "queued",
  snoozed: "queued",
  stopping: "attention",
  late: "attention",
  paused: "attention",
  warn: "attention",
  warning: "attention",
  full: "attention",
  lost: "failed",
  quarantined: "failed",
  stuck: "failed",
  draining: "attention",
  problem: "failed",
  ok: "succeeded",
  removed: "succeeded",
  denied: "attention",
  done: "succeeded",
  skipped: "attention",
};
/** Glyphs of states that have no glyph of their own name. @type {Record<string, string>} */
const GLYPHS = {
  released: "retrying",
  snoozed: "scheduled",
  stopping: "paused",
  lost: "ghost",
  quarantined: "ghost",
  stuck: "failed",
  draining: "paused",
  warning: "warn",
  problem: "failed",
  ok: "succeeded",
  removed: "succeeded",
  denied: "cancelled",
  done: "succeeded",
  skipped: "off",
};

/** The class that gives ``--c`` and ``--t`` their colour. @param {string} state */
export function tone(state) {
  return `tone-${COLOURS[state] ?? state}`;
}

/** The glyph of a state. @param {{state: string}} props */
export function StateGlyph({ state }) {
  return html`<${Glyph} name=${GLYPHS[state] ?? state} />`;
}

/** @param {{state: string, solid?: boolean, children?: unknown}} props solid: tinted, only beside a title */
export function Badge({ state, solid, children }) {
  return html`<span class=${`badge ${tone(state)}${solid ? " solid" : ""}`}>
    <${StateGlyph} state=${state} />
    ${children ?? state}
  </span>`;
}
