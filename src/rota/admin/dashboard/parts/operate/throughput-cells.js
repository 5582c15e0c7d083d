// @ts-check
// How work flows through a queue, a task or a tenant: its pace, its wait, whether anything holds it.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { may, now } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { count, line, plural, actorName, duration } from "../../format.js";
import { Badge, StateGlyph } from "../base/badge.js";
import { GateBadge, PauseButton } from "./pause.js";
import { Spark } from "../charts/spark.js";
import { When } from "../base/time.js";

const MINUTES = 60;
export const LONG_S = 60; // a due job that waits longer is worth a look
const MEAN = "A mean over the last ten minutes";

/**
 * @typedef {Map<string, {values: number[], bad: number[]}>} Throughputs jobs that ended in each minute of the last
 *   hour, by name
 */

/** @param {"queue" | "task"} by @returns {Throughputs | null} null: not known yet, or not for this caller */
export function useThroughputs(by) {
  const hour = useLoad((signal) => api.get("/activity", { hours: 1, step_s: 60, by }, signal), [by], {
    when: may("read.shared"),
    every: 20,
  });
  return useMemo(() => hour.data && throughputsOf(hour.data.items, now.peek()), [hour.data]);
}

/** @param {any[]} steps @param {number} until */
function throughputsOf(steps, until) {
  const start = Math.floor(until / 60_000) - MINUTES + 1;
  const throughputs = /** @type {Throughputs} */ (new Map());
  for (const step of steps) {
    const i = Math.floor(Date.parse(step.at) / 60_000) - start;
    if (i < 0 || i >= MINUTES) continue;
    const series = throughputs.get(step.name) ?? { values: Array(MINUTES).fill(0), bad: Array(MINUTES).fill(0) };
    series.values[i] = step.succeeded + step.failed + step.cancelled;
    series.bad[i] = step.failed;
    throughputs.set(step.name, series);
  }
  return throughputs;
}

/** @param {{of: Throughputs | null, name: string, paused?: boolean}} props */
export function ThroughputSpark({ of, name, paused }) {
  if (!of) return html`<span class="skeleton-line w3"></span>`;
  const { values, bad } = of.get(name) ?? { values: Array(MINUTES).fill(0), bad: [] };
  const sum = (/** @type {number[]} */ some) => some.reduce((a, b) => a + b, 0);
  return html`<${Spark}
    values=${values}
    bad=${bad}
    paused=${paused}
    label=${`${plural(sum(values), "job")} ended in the last hour, ${count(sum(bad))} failed`}
  />`;
}

/**
 * Jobs that ended a minute, and how many of them failed.
 * @param {{of: {per_minute: number, failed_per_minute: number}}} props
 */
export function Rate({ of }) {
  if (!of.per_minute) return html`<span class="faint">none</span>`;
  return html`<span title=${MEAN}>
    ${rateText(of.per_minute)}
    ${of.failed_per_minute > 0 && html`<span class="sub bad">${rateText(of.failed_per_minute)} failed</span>`}
  </span>`;
}

/** @param {number} rate */
function rateText(rate) {
  return rate >= 100 ? count(Math.round(rate)) : rate.toFixed(1);
}

/** How long the oldest due job has waited. @param {{seconds: number | null}} props */
export function OldestDue({ seconds }) {
  if (seconds === null) return html`<span class="faint">—</span>`;
  if (seconds <= LONG_S) return duration(seconds);
  return html`<span class="over"><${StateGlyph} state="late" />${duration(seconds)}</span>`;
}

/** Paused, without a worker, or open. @param {{gate: any, workers: number}} props */
export function OpenState({ gate, workers }) {
  if (gate) return html`<${GateBadge} gate=${gate} />`;
  return workers
    ? html`<${Badge} state="running">open<//>`
    : html`<span class="badge tone-held"><${StateGlyph} state="ghost" />no worker</span>`;
}

/** Why it is paused, and by whom. @param {any} gate */
export function pauseSummary(gate) {
  return `${gate.reason ? `“${line(gate.reason)}”, paused` : "Paused without a reason"} by ${actorName(gate.actor)}`;
}

/** What a pause would meet now. @param {{queued: number, scheduled: number, running: number}} work */
export function pauseImpact({ queued, scheduled, running }) {
  return `Now ${plural(queued, "due job")} would wait, ${count(scheduled)} more would when due, ${count(running)} running would end as usual.`;
}

/** The gate over everything, if it stands. */
export function useGlobalPause() {
  const gates = useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] });
  return {
    gate: gates.data?.items.find((/** @type {any} */ one) => one.scope === "all") ?? null,
    reload: gates.reload,
  };
}

/**
 * Said on top of every list of work while everything is paused.
 * @param {{globalPause: {gate: any, reload: () => any}}} props
 */
export function AllPausedNotice({ globalPause: { gate, reload } }) {
  if (!gate) return null;
  return html`<div class="note tone-held" role="status">
    <${StateGlyph} state="paused" />
    <div>
      <p><b>Everything is paused.</b> No worker takes another job. What runs goes on.</p>
      <p>
        ${pauseSummary(gate)}. <${When} at=${gate.since_at} lead="Since" />
        ${gate.until_at ? html`, goes on by itself <${When} at=${gate.until_at} />` : ", until somebody resumes it"}.
      </p>
      <div class="acts"><${PauseButton} scope="all" gate=${gate} done=${reload} /></div>
    </div>
  </div>`;
}
