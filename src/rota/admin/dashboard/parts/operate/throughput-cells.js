// @ts-check
// Cells about the throughput of a queue, a task or a tenant, the age of its oldest due job, and its pause.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { may, now } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { count, line, plural, actorName, duration } from "../../format.js";
import { Badge, StateGlyph } from "../base/badge.js";
import { GateBadge, PauseButton } from "./pause.js";
import { Spark } from "../charts/spark.js";
import { When } from "../base/time.js";

/** @typedef {import("../../types").GateView} Gate */

const MINUTES = 60;
export const LONG_S = 60; // seconds after which a due job counts as late
const MEAN = "Average of the last ten minutes";

/**
 * @typedef {Map<string, {values: number[], bad: number[]}>} Throughputs jobs finished in each minute of the last
 *   hour, by name
 */

/** @param {"queue" | "task"} by @returns {Throughputs | null} null: not loaded yet, or not allowed for this user */
export function useThroughputs(by) {
  const hour = useLoad((signal) => api.get("/activity", { hours: 1, step_s: 60, by }, signal), [by], {
    when: may("read.shared"),
    every: 20,
  });
  return useMemo(() => hour.data && throughputsOf(hour.data.items, now.peek()), [hour.data]);
}

/** @param {import("../../types").ActivityBucket[]} steps @param {number} until */
function throughputsOf(steps, until) {
  const start = Math.floor(until / 60_000) - MINUTES + 1;
  const throughputs = /** @type {Throughputs} */ (new Map());
  for (const step of steps) {
    const i = Math.floor(Date.parse(step.at) / 60_000) - start;
    if (i < 0 || i >= MINUTES) continue;
    const series = throughputs.get(step.name ?? "") ?? { values: Array(MINUTES).fill(0), bad: Array(MINUTES).fill(0) };
    series.values[i] = step.succeeded + step.failed + step.cancelled;
    series.bad[i] = step.failed;
    throughputs.set(step.name ?? "", series);
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
    label=${`${plural(sum(values), "job")} finished in the last hour, ${count(sum(bad))} failed`}
  />`;
}

/**
 * Jobs finished per minute, and how many of them failed.
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

/** How long the oldest due job has been due. @param {{seconds: number | null}} props */
export function OldestDue({ seconds }) {
  if (seconds === null) return html`<span class="faint">—</span>`;
  if (seconds <= LONG_S) return duration(seconds);
  return html`<span class="over"><${StateGlyph} state="late" />${duration(seconds)}</span>`;
}

/** Paused, without a worker, or active. @param {{gate: Gate | null | undefined, workers: number}} props */
export function OpenState({ gate, workers }) {
  if (gate) return html`<${GateBadge} gate=${gate} />`;
  return workers
    ? html`<${Badge} state="running">active<//>`
    : html`<span class="badge tone-attention"><${StateGlyph} state="ghost" />no worker</span>`;
}

/** Who paused it, and why. @param {Gate} gate */
export function pauseSummary(gate) {
  return `Paused by ${actorName(gate.actor)}${gate.reason ? `: “${line(gate.reason)}”` : ", no reason given"}`;
}

/** What a pause would affect now. @param {{due: number, due_later: number, running: number}} work */
export function pauseImpact({ due, due_later: later, running }) {
  const jobs = `${plural(due, "due job")} and ${count(later)} due later`;
  return `Affects ${jobs}; ${count(running)} running would finish.`;
}

/** The pause of everything, if there is one. */
export function useGlobalPause() {
  const gates = useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] });
  return {
    gate: gates.data?.items.find((one) => one.scope === "all") ?? null,
    reload: gates.reload,
  };
}

/**
 * Shown above every list of work while everything is paused.
 * @param {{globalPause: {gate: Gate | null, reload: () => unknown}}} props
 */
export function AllPausedNotice({ globalPause: { gate, reload } }) {
  if (!gate) return null;
  return html`<div class="note tone-attention" role="status">
    <${StateGlyph} state="paused" />
    <div>
      <p><b>Everything is paused.</b> Workers start no jobs. Running jobs finish.</p>
      <p>
        ${pauseSummary(gate)}. <${When} at=${gate.since_at} lead="Since" />
        ${gate.until_at ? html`, resumes automatically <${When} at=${gate.until_at} />` : ", until resumed"}.
      </p>
      <div class="acts"><${PauseButton} scope="all" gate=${gate} done=${reload} /></div>
    </div>
  </div>`;
}
