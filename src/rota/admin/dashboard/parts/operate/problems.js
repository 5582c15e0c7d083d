// @ts-check
// What is wrong, worst first: each line names the cause, links to it, and has one button that helps.

import { at } from "../../state.js";
import { html } from "../../ui.js";
import { clean, count, line, plural, shellQuote, duration } from "../../format.js";
import { StateGlyph, tone } from "../base/badge.js";
import { PauseButton, titled } from "./pause.js";
import { pageOf } from "../schedules/schedule.js";
import { When } from "../base/time.js";

const SHOWN_ELSEWHERE = ["schedules", "waiting"]; // what the doctor finds and this page tells better
const LATE_S = 60;
const OLD_S = 60;
const WORST = ["failed", "ghost", "late", "warn", "paused"];

/** @typedef {{key: string, state: string, title: any, detail: any, help?: any, gate?: any, to?: string}} Problem */

/**
 * @param {{queues: any, gates: any, schedules: any, workers: any, doctor: any}} known what has been loaded; null: not
 *   yet, or not for this caller
 * @returns {Problem[]}
 */
export function problemsOf({ queues, gates, schedules, workers, doctor }) {
  const found = [
    ...(gates?.items ?? []).map(fromGate),
    ...(queues?.items ?? []).flatMap(fromQueue),
    ...(schedules?.items ?? [])
      .filter((/** @type {any} */ one) => (one.late_s ?? 0) > LATE_S && !one.gate)
      .map(fromLateSchedule),
    ...(workers?.items ?? [])
      .filter((/** @type {any} */ one) => one.state === "lost" && one.running > 0)
      .map(fromLostWorker),
    ...(doctor?.findings ?? [])
      .filter((/** @type {any} */ one) => one.level !== "fine" && !SHOWN_ELSEWHERE.includes(one.check))
      .map(fromFinding),
  ];
  return found.sort((a, b) => WORST.indexOf(a.state) - WORST.indexOf(b.state));
}

/** @param {any} gate @returns {Problem} */
function fromGate(gate) {
  return {
    key: `gate ${gate.id}`,
    state: "paused",
    title: html`${titled(gate)} is paused`,
    detail: html`
      By ${clean(gate.actor)} <${When} at=${gate.since_at} />
      ${gate.reason ? `: “${line(gate.reason)}”` : ", without a reason"}. ${gate.until_at
        ? html`Goes on by itself <${When} at=${gate.until_at} />.`
        : "Until somebody resumes it."}
    `,
    to: gate.scope === "queue" ? at("/jobs", { queue: gate.name, state: "queued" }) : at("/gates"),
    gate,
  };
}

/** @param {any} queue @returns {Problem[]} */
function fromQueue(queue) {
  if (queue.gate || !queue.queued) return [];
  const to = at("/jobs", { queue: queue.name, state: "queued" });
  const waits = html`
    ${plural(queue.queued, "due job waits", "due jobs wait")}, the oldest for ${duration(queue.oldest_due_s ?? 0)}.
  `;
  const named = html`<code>${clean(queue.name)}</code>`;
  if (!queue.workers)
    return [
      {
        key: `queue ${queue.name}`,
        state: "ghost",
        title: html`No live worker serves queue ${named}`,
        detail: html`${waits} Start one: <code>rota worker -q ${clean(shellQuote(queue.name))}</code>`,
        to,
        help: html`<a class="button tiny" href=${at("/workers")}>See workers</a>`,
      },
    ];
  if ((queue.oldest_due_s ?? 0) > OLD_S)
    return [
      {
        key: `queue ${queue.name}`,
        state: "late",
        title: html`Queue ${named} falls behind`,
        detail: html`
          ${waits} It ended ${queue.per_minute.toFixed(1)} a minute in the last ten minutes,
          with ${plural(queue.workers, "worker")}.
        `,
        to,
        help: html`<a class="button tiny" href=${to}>Show the ${count(queue.queued)}</a>`,
      },
    ];
  return [];
}

/** @param {any} schedule @returns {Problem} */
function fromLateSchedule(schedule) {
  const to = at(pageOf(schedule));
  return {
    key: `schedule ${schedule.id}`,
    state: "late",
    title: html`Schedule <code>${clean(schedule.name)}</code> is ${duration(schedule.late_s)} late`,
    detail: html`
      Due <${When} at=${schedule.next_run_at} />. No scheduler has fired it: is a worker with a scheduler alive?
    `,
    to,
    help: html`<a class="button tiny" href=${to}>Open the schedule</a>`,
  };
}

/** @param {any} worker @returns {Problem} */
function fromLostWorker(worker) {
  return {
    key: `worker ${worker.id}`,
    state: "ghost",
    title: html`Worker <code>${clean(worker.name ?? worker.id)}</code> fell silent`,
    detail: html`
      Last heard <${When} at=${worker.seen_at} /> with ${plural(worker.running, "running job")}. Live workers take these
      over by themselves.
    `,
    to: at("/workers"),
  };
}

/** @param {any} finding @returns {Problem} */
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

/** @param {{problems: Problem[], done?: () => any}} props */
export function Problems({ problems, done }) {
  if (!problems.length) return html`<p class="quiet">None. Nothing is paused, late or left without a worker.</p>`;
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
