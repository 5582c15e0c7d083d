// @ts-check
// How work flows through a queue, a task or a tenant: its pace, its wait, whether anything holds it.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { may, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { count, line, many, person, span } from "../words.js";
import { Badge, Sign } from "./badge.js";
import { GateBadge, PauseButton } from "./pause.js";
import { Spark } from "./spark.js";
import { When } from "./time.js";

const MINUTES = 60;
export const LONG_S = 60; // a due job that waits longer is worth a look
const MEAN = "A mean over the last ten minutes";

/** @typedef {Map<string, {values: number[], bad: number[]}>} Paces jobs that ended in each minute of the last hour, by name */

/** @param {"queue" | "task"} by @returns {Paces | null} null: not known yet, or not for this caller */
export function usePaces(by) {
  const hour = useLoad((signal) => api.get("/activity", { hours: 1, step_s: 60, by }, signal), [by], { when: may("read.shared"), every: 20 });
  return useMemo(() => hour.data && pacesOf(hour.data.items, now.peek()), [hour.data]);
}

/** @param {any[]} steps @param {number} until */
function pacesOf(steps, until) {
  const start = Math.floor(until / 60_000) - MINUTES + 1;
  const paces = /** @type {Paces} */ (new Map());
  for (const step of steps) {
    const i = Math.floor(Date.parse(step.at) / 60_000) - start;
    if (i < 0 || i >= MINUTES) continue;
    const pace = paces.get(step.name) ?? { values: Array(MINUTES).fill(0), bad: Array(MINUTES).fill(0) };
    pace.values[i] = step.succeeded + step.failed + step.cancelled;
    pace.bad[i] = step.failed;
    paces.set(step.name, pace);
  }
  return paces;
}

/** @param {{of: Paces | null, name: string, held?: boolean}} props */
export function Pace({ of, name, held }) {
  if (!of) return html`<span class="bone w3"></span>`;
  const { values, bad } = of.get(name) ?? { values: Array(MINUTES).fill(0), bad: [] };
  const sum = (/** @type {number[]} */ some) => some.reduce((a, b) => a + b, 0);
  return html`<${Spark} values=${values} bad=${bad} held=${held} label=${`${many(sum(values), "job")} ended in the last hour, ${count(sum(bad))} failed`} />`;
}

/** Jobs that ended a minute, and how many of them failed. @param {{of: {per_minute: number, failed_per_minute: number}}} props */
export function Rate({ of }) {
  if (!of.per_minute) return html`<span class="faint">none</span>`;
  return html`<span title=${MEAN}>${told(of.per_minute)}${of.failed_per_minute > 0 && html`<span class="sub bad">${told(of.failed_per_minute)} failed</span>`}</span>`;
}

/** @param {number} rate */
function told(rate) {
  return rate >= 100 ? count(Math.round(rate)) : rate.toFixed(1);
}

/** How long the oldest due job has waited. @param {{seconds: number | null}} props */
export function Waited({ seconds }) {
  if (seconds === null) return html`<span class="faint">—</span>`;
  if (seconds <= LONG_S) return span(seconds);
  return html`<span class="over"><${Sign} state="late" />${span(seconds)}</span>`;
}

/** Paused, without a worker, or open. @param {{gate: any, workers: number}} props */
export function Standing({ gate, workers }) {
  if (gate) return html`<${GateBadge} gate=${gate} />`;
  return workers ? html`<${Badge} state="running">open<//>` : html`<span class="badge tone-held"><${Sign} state="ghost" />no worker</span>`;
}

/** Why it is paused, and by whom. @param {any} gate */
export function pausedBy(gate) {
  return `${gate.reason ? `“${line(gate.reason)}”, paused` : "Paused without a reason"} by ${person(gate.actor)}`;
}

/** What a pause would meet now. @param {{queued: number, scheduled: number, running: number}} work */
export function wouldMeet({ queued, scheduled, running }) {
  return `Now ${many(queued, "due job")} would wait, ${count(scheduled)} more would when due, ${count(running)} running would end as usual.`;
}

/** The gate over everything, if it stands. */
export function useHalt() {
  const gates = useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] });
  return { gate: gates.data?.items.find((/** @type {any} */ one) => one.scope === "all") ?? null, reload: gates.reload };
}

/** Said on top of every list of work while everything is paused. @param {{halt: {gate: any, reload: () => any}}} props */
export function Halted({ halt: { gate, reload } }) {
  if (!gate) return null;
  return html`<div class="note tone-held" role="status"><${Sign} state="paused" /><div>
    <p><b>Everything is paused.</b> No worker takes another job. What runs goes on.</p>
    <p>${pausedBy(gate)}. <${When} at=${gate.since_at} lead="Since" />${gate.until_at ? html`, goes on by itself <${When} at=${gate.until_at} />` : ", until somebody resumes it"}.</p>
    <div class="acts"><${PauseButton} scope="all" gate=${gate} done=${reload} /></div>
  </div></div>`;
}
