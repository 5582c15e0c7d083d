// @ts-check
// Cells about a limit: how much of it is in use, what waits for it, and which jobs hold it.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { at } from "../../state.js";
import { html } from "../../ui.js";
import { clean, count, duration, line, plural, shortId } from "../../format.js";
import { Elapsed, When } from "../base/time.js";
import { Fill } from "../charts/fill.js";
import { MOST_LANES, isFamily, partsOf } from "./limit-words.js";

/** @typedef {import("../../types").LimitView} Held */
/** @typedef {import("../../types").JobView} Job */
/** @typedef {{items: Job[], isComplete: boolean}} RunningJobs */

const MOST_JOBS = 200; // as many as one response holds
const MOST_NAMED = 3;
const MOST_HOLDERS = 10; // listed one by one

/** The jobs that run now, as far as one response holds them. @param {boolean} when @returns {RunningJobs | null} */
export function useRunningJobs(when) {
  const { data } = useLoad(
    (signal) => api.get("/jobs", { state: "running", order: "oldest", limit: MOST_JOBS }, signal),
    [],
    { when, on: ["stats"], every: 5, minInterval: 2 },
  );
  return data && remembered(data);
}

const seen = /** @type {WeakMap<object, RunningJobs>} */ (new WeakMap());
/**
 * The same object for the same data: a new one would draw every row again.
 * @param {{items: Job[], next?: string | null}} data
 */
function remembered(data) {
  const known = seen.get(data) ?? { items: data.items, isComplete: !data.next };
  seen.set(data, known);
  return known;
}

/** The jobs that count for a limit, the longest running first. @param {Held} held @param {Job[]} jobs */
export function holdersOf({ name }, jobs) {
  const [scope, rest] = partsOf(name);
  const counts = (/** @type {Job} */ job) => {
    if (scope !== "key") return job[/** @type {"queue" | "task" | "tenant"} */ (scope)] === rest;
    if (isFamily(name)) return job.concurrency_key?.startsWith(rest.slice(0, -1)) ?? false;
    return job.concurrency_key === rest;
  };
  return jobs.filter(counts).sort((a, b) => Date.parse(a.started_at ?? "") - Date.parse(b.started_at ?? ""));
}

/** How much of a limit is in use: a bar and its numbers. @param {{held: Held}} props */
export function LimitUse({ held }) {
  if (isFamily(held.name)) return html`<${FamilyUse} held=${held} />`;
  const { most, running, tokens, burst } = held;
  const slots = `${count(running)} of ${count(most ?? 0)}`;
  return html`<div class="limit-use">
    ${most !== null
      ? html`<${Fill} part=${running} whole=${most} slots isFull=${held.is_full} label=${`${slots} running`} />`
      : tokens !== null && burst
        ? html`<${Fill}
            part=${burst - tokens}
            whole=${burst}
            isFull=${held.is_full}
            label=${`${tokensText(tokens)} of ${count(burst)} units left`}
          />`
        : ""}
    <p class="soft small">
      ${most !== null ? html`<b>${slots}</b> running` : `${count(running)} running`}
      ${held.rate !== null && html` · <${RateNow} held=${held} />`}
    </p>
  </div>`;
}

/** @param {{held: Held}} props */
function FamilyUse({ held }) {
  const full = held.keys.filter((key) => key.is_full).length;
  const fullest = held.keys[0];
  const most = held.most;
  return html`<div class="limit-use">
    ${fullest && most !== null && html`<${Fill}
      part=${fullest.running}
      whole=${most}
      slots
      isFull=${full > 0}
      label=${`The fullest key: ${count(fullest.running)} of ${count(most)} running`}
    />`}
    <p class="soft small">
      <b>${count(held.running)}</b> running${most !== null ? `, ${count(most)} for each key` : ""}
      ${held.rate !== null ? ` · ${clean(held.rate)} for each key` : ""}
      ${full > 0 ? ` · ${plural(full, "key")} full` : ""}
    </p>
  </div>`;
}

/** "100/m, 12 of 20 left", or when the next can begin. @param {{held: Held}} props */
function RateNow({ held: { rate, tokens, burst, next_token_at: next } }) {
  if (tokens === null) return clean(rate);
  if (tokens < 1 && next) return html`${clean(rate)}, the next <${When} at=${next} />`;
  return `${clean(rate)}, ${tokensText(tokens)}${burst ? ` of ${count(burst)}` : ""} left`;
}

/** @param {number} tokens */
function tokensText(tokens) {
  return count(Math.max(0, Math.floor(tokens)));
}

/**
 * What waits for it: of a queue its due jobs, else the lanes of jobs, each a tenant's, a task's or a key's.
 * @param {{held: Held, queues: Record<string, import("../../types").QueueDepth> | null}} props queues: null: not known
 */
export function Waiting({ held: { name, waiting_lanes: lanes }, queues }) {
  const [scope, rest] = partsOf(name);
  if (scope === "queue") return html`<${DueJobs} depth=${queues && (queues[rest] ?? {})} />`;
  if (!lanes) return html`<span class="faint">none</span>`;
  return html`<span title="A lane holds the waiting jobs of a tenant, a task or a key">
    ${lanes >= MOST_LANES ? `${count(MOST_LANES)}+ lanes` : plural(lanes, "lane")}
  </span>`;
}

/** @param {{depth: import("../../types").QueueDepth | null}} props */
function DueJobs({ depth }) {
  if (!depth) return html`<span class="skeleton-line w2"></span>`;
  if (!depth.due) return html`<span class="faint">none</span>`;
  return html`
    ${count(depth.due)} due
    ${depth.oldest_due_s != null && html`<span class="sub">oldest ${duration(depth.oldest_due_s)}</span>`}
  `;
}

/**
 * The tasks or tenants that hold it, and the job that holds it longest.
 * @param {{held: Held, running: RunningJobs | null}} props
 */
export function HeldBy({ held, running }) {
  if (!held.running) return html`<span class="faint">no job</span>`;
  if (!running) return html`<span class="skeleton-line w2"></span>`;
  const holders = holdersOf(held, running.items);
  const longest = holders[0];
  if (!longest) return html`<span class="soft small">${plural(held.running, "job")}</span>`;
  const by = partsOf(held.name)[0] === "task" ? "tenant" : "task";
  const groups = grouped(holders.map((job) => job[/** @type {"task" | "tenant"} */ (by)]));
  const rough = running.isComplete ? "" : "≥ ";
  return html`<div class="held-by small">
    ${groups.slice(0, MOST_NAMED).map(
      ([name, n], i) =>
        html`
          ${i > 0 && ", "}
          ${rough}
          ${count(n)} <a href=${at("/jobs", { [by]: name, state: "running" })}>${clean(name)}</a>
        `,
    )}
    ${groups.length > MOST_NAMED && `, ${count(groups.length - MOST_NAMED)} others`}.
    ${" "}Longest: <a href=${at(`/jobs/${longest.id}`)}>${shortId(longest.id)}</a>, <${Elapsed}
      from=${longest.started_at}
    />
  </div>`;
}

/** Each name with its number, the most frequent first. @param {string[]} names @returns {[string, number][]} */
function grouped(names) {
  const found = /** @type {Map<string, number>} */ (new Map());
  for (const name of names) found.set(name, (found.get(name) ?? 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1]);
}

/** The page of limits, with this one open. @param {string} name */
export function limitAt(name) {
  return at("/limits", { edit: name });
}

/** A limit by its name, if there is one. @param {string} name @returns {Held | null} */
export function useLimit(name) {
  const limits = useLoad((signal) => api.get("/limits", {}, signal), [name], {
    on: ["stats"],
    every: 10,
    minInterval: 5,
  });
  return limits.data?.items.find((one) => one.name === name) ?? null;
}

/** The jobs that hold a limit, the oldest first. @param {{held: Held}} props */
export function Holders({ held: { name, running } }) {
  const [scope, rest] = partsOf(name);
  const where = { [scope === "key" ? "concurrency_key" : scope]: rest };
  const jobs = useLoad(
    (signal) => api.get("/jobs", { ...where, state: "running", order: "oldest", limit: MOST_HOLDERS }, signal),
    [name],
    { on: ["stats"], every: 5, minInterval: 2 },
  );
  const holders = jobs.data?.items ?? [];
  if (!holders.length) return null;
  return html`<div class="holders">
    <h3>
      ${holders.length < running ? `Held by ${count(running)} jobs, the first ${count(holders.length)}` : "Held by"}
    </h3>
    <ul>
      ${holders.map(
        (job) => html`<li key=${job.id}>
          <a href=${at(`/jobs/${job.id}`)}>
            <b class="mono">${clean(job.task)}</b> <span class="faint mono">${shortId(job.id)}</span>
          </a>
          <span>${clean(job.tenant)}</span>
          <code>${line(job.worker ?? "", 60)}</code>
          <${When} lead="started" at=${job.started_at} />
        </li>`,
      )}
    </ul>
  </div>`;
}
