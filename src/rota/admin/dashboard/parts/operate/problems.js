// @ts-check
// Problems, worst first: each line names the cause, links to it, and has one button that helps.

import { at } from "../../state.js";
import { html } from "../../ui.js";
import { clean, count, line, plural, shellQuote, duration } from "../../format.js";
import { StateGlyph, tone } from "../base/badge.js";
import { PauseButton, titled } from "./pause.js";
import { pageOf } from "../schedules/schedule.js";
import { When } from "../base/time.js";

// Checks of the doctor that this page covers in more detail.
const SHOWN_ELSEWHERE = ["schedules", "waiting", "pauses", "failures"];
const LATE_S = 60;
const OLD_S = 60;
const WORST = ["failed", "ghost", "late", "warn", "paused"];

/** @typedef {import("../../types").GateView} Gate */
/** @typedef {import("../../types").QueueView} Queue */
/** @typedef {import("../../types").ScheduleView} Schedule */
/** @typedef {import("../../types").WorkerView} Worker */
/** @typedef {import("../../types").Finding} Finding */
/**
 * @typedef {{key: string, state: string, title: unknown, detail: unknown, help?: unknown, gate?: Gate,
 *   to?: string}} Problem
 */
/**
 * @template T
 * @typedef {{items: T[]} | null} Page null: not loaded yet, or not allowed for this user
 */

/**
 * @param {{queues: Page<Queue>, gates: Page<Gate>, schedules: Page<Schedule>, workers: Page<Worker>,
 *   doctor: {findings: Finding[]} | null}} known what has been loaded
 * @returns {Problem[]}
 */
export function problemsOf({ queues, gates, schedules, workers, doctor }) {
  const found = [
    ...(gates?.items ?? []).map(fromGate),
    ...(queues?.items ?? []).flatMap(fromQueue),
    ...(schedules?.items ?? []).filter((one) => (one.late_s ?? 0) > LATE_S && !one.gate).map(fromLateSchedule),
    ...(workers?.items ?? []).filter((one) => one.state === "lost" && one.running > 0).map(fromLostWorker),
    ...(doctor?.findings ?? [])
      .filter((one) => one.level !== "ok" && !SHOWN_ELSEWHERE.includes(one.check))
      .map(fromFinding),
  ];
  return found.sort((a, b) => WORST.indexOf(a.state) - WORST.indexOf(b.state));
}

/** @param {Gate} gate @returns {Problem} */
function fromGate(gate) {
  return {
    key: `gate ${gate.id}`,
    state: "paused",
    title: html`${titled(gate)} is paused`,
    detail: html`
      By ${clean(gate.actor)} <${When} at=${gate.since_at} />
      ${gate.reason ? `: “${line(gate.reason)}”` : ", no reason given"}. ${gate.until_at
        ? html`Resumes automatically <${When} at=${gate.until_at} />.`
        : "Until resumed."}
    `,
    to: gate.scope === "queue" ? at("/jobs", { queue: gate.name, state: "queued" }) : at("/gates"),
    gate,
  };
}

/** @param {Queue} queue @returns {Problem[]} */
function fromQueue(queue) {
  if (queue.gate || !queue.due) return [];
  const to = at("/jobs", { queue: queue.name, state: "queued" });
  const backlog = html`
    ${plural(queue.due, "due job")}, the oldest due for ${duration(queue.oldest_due_s ?? 0)}.
  `;
  const named = html`<code>${clean(queue.name)}</code>`;
  if (!queue.workers)
    return [
      {
        key: `queue ${queue.name}`,
        state: "ghost",
        title: html`No running worker for queue ${named}`,
        detail: html`${backlog} Start one: <code>rota worker -q ${clean(shellQuote(queue.name))}</code>`,
        to,
        help: html`<a class="button tiny" href=${at("/workers")}>View workers</a>`,
      },
    ];
  if ((queue.oldest_due_s ?? 0) > OLD_S)
    return [
      {
        key: `queue ${queue.name}`,
        state: "late",
        title: html`Queue ${named} is falling behind`,
        detail: html`
          ${backlog} It finished ${queue.per_minute.toFixed(1)} jobs/min in the last ten minutes,
          with ${plural(queue.workers, "worker")}.
        `,
        to,
        help: html`<a class="button tiny" href=${to}>View ${plural(queue.due, "job")}</a>`,
      },
    ];
  return [];
}

/** @param {Schedule} schedule @returns {Problem} */
function fromLateSchedule(schedule) {
  const to = at(pageOf(schedule));
  return {
    key: `schedule ${schedule.id}`,
    state: "late",
    title: html`Schedule <code>${clean(schedule.name)}</code> is ${duration(schedule.late_s ?? 0)} late`,
    detail: html`
      Due <${When} at=${schedule.next_run_at} />. No scheduler has started it: check that a worker with a scheduler is
      running.
    `,
    to,
    help: html`<a class="button tiny" href=${to}>View schedule</a>`,
  };
}

/** @param {Worker} worker @returns {Problem} */
function fromLostWorker(worker) {
  return {
    key: `worker ${worker.id}`,
    state: "ghost",
    title: html`Worker <code>${clean(worker.name ?? worker.id)}</code> stopped responding`,
    detail: html`
      Last seen <${When} at=${worker.seen_at} /> with ${plural(worker.running, "running job")}. Other workers rescue
      them automatically.
    `,
    to: at("/workers"),
  };
}

/** @param {Finding} finding @returns {Problem} */
function fromFinding(finding) {
  return {
    key: `doctor ${finding.check} ${finding.text}`,
    state: finding.level === "problem" ? "failed" : "warn",
    title: sentence(finding.text),
    detail: line(finding.remedy ?? "", 400),
    to: at("/doctor"),
  };
}

/** @param {string} text */
function sentence(text) {
  const flat = line(text);
  return flat.charAt(0).toUpperCase() + flat.slice(1);
}

/** @param {{problems: Problem[], done?: () => unknown}} props */
export function Problems({ problems, done }) {
  if (!problems.length) return html`<p class="quiet">None. Nothing is paused, late or without a worker.</p>`;
  return html`<ul class="lines">
    ${problems.map(
      (one) => html`<li key=${one.key} class=${tone(one.state === "ghost" ? "late" : one.state)}>
        <${StateGlyph} state=${one.state} />
        <div>
          <p><b>${one.to ? html`<a class="plain-link" href=${one.to}>${one.title}</a>` : one.title}</b></p>
          <p>${one.detail}</p>
        </div>
        ${one.gate
          ? html`<${PauseButton}
              scope=${one.gate.scope}
              name=${one.gate.name}
              gate=${one.gate}
              done=${done}
              need=${one.gate.scope === "schedule" || one.gate.scope === "tenant" ? "operate" : "operate.shared"}
            />`
          : (one.help ?? html`<span></span>`)}
      </li>`,
    )}
  </ul>`;
}
