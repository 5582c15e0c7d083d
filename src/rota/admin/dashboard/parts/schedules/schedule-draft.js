// @ts-check
// A schedule as the fields of a form, and back as the API expects it. Pure.

import { write } from "../../exact.js";
import { payloadOf } from "../jobs/payload.js";
import { ruleOf } from "./rule.js";
import { isZone, wallIn } from "./zones.js";

/** @typedef {import("../../types").ScheduleView} ScheduleView */
/**
 * @typedef {import("./rule.js").RuleDraft & {name: string, tenant: string, task: string, payload: string, queue:
 *   string, priority: string, max_attempts: string,
 *   timeout: string, description: string, missed: string, missed_cap: string, missed_window: string, overlap:
 *   string, calendar: string, calendar_mode: string}} Draft
 */

const UNITS = /** @type {[string, number][]} */ ([
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
]);

/** @param {string} tenant @returns {Draft} */
export function emptyDraft(tenant) {
  return {
    name: "",
    tenant,
    task: "",
    kind: "cron",
    cron: "0 3 * * *",
    every: "15m",
    at: "",
    timezone: "UTC",
    start_at: "",
    until: "",
    jitter: "",
    payload: "{}",
    queue: "",
    priority: "",
    max_attempts: "",
    timeout: "",
    description: "",
    missed: "latest",
    missed_cap: "100",
    missed_window: "",
    overlap: "allow",
    calendar: "",
    calendar_mode: "skip",
  };
}

/** @param {ScheduleView} schedule @returns {Draft} */
export function draftOf(schedule) {
  const zone = isZone(schedule.timezone) ? schedule.timezone : "UTC";
  const text = (/** @type {unknown} */ value) => (value === null || value === undefined ? "" : `${value}`);
  const wall = (/** @type {string | null} */ instant, seconds = false) =>
    instant ? wallIn(instant, zone, seconds) : "";
  const empty = emptyDraft(schedule.tenant);
  return {
    ...empty,
    name: schedule.name,
    task: schedule.task,
    kind: schedule.cron !== null ? "cron" : schedule.every !== null ? "every" : "at",
    cron: schedule.cron ?? empty.cron,
    every: schedule.every === null ? empty.every : short(schedule.every),
    at: wall(schedule.at, true),
    timezone: schedule.timezone,
    start_at: wall(schedule.start_at),
    until: wall(schedule.until),
    jitter: schedule.jitter ? short(schedule.jitter) : "",
    payload: typeof schedule.payload === "string" ? schedule.payload : (write(schedule.payload, 2) ?? "{}"),
    queue: text(schedule.queue),
    priority: text(schedule.priority),
    max_attempts: text(schedule.max_attempts),
    timeout: text(schedule.timeout),
    description: schedule.description,
    missed: schedule.missed,
    missed_cap: text(schedule.missed_cap),
    missed_window: schedule.missed_window === null ? "" : short(schedule.missed_window),
    overlap: schedule.overlap,
    calendar: text(schedule.calendar),
    calendar_mode: schedule.calendar_mode,
  };
}

/** 5400 as "1h30m". @param {number} seconds */
export function short(seconds) {
  let rest = seconds;
  const parts = UNITS.map(([unit, size]) => {
    const n = unit === "s" ? Number(rest.toFixed(3)) : Math.floor(rest / size);
    rest -= n * size;
    return n ? `${n}${unit}` : "";
  });
  return parts.join("") || "0s";
}

/** The content of the form; the payload only if it is valid. @param {Draft} draft @returns {Record<string, unknown>} */
export function bodyOf(draft) {
  const number = (/** @type {string} */ text) => (text.trim() === "" ? null : Number(text));
  return {
    ...ruleOf(draft),
    task: draft.task.trim(),
    payload: payloadOf(draft.payload).value,
    queue: draft.queue.trim() || null,
    priority: number(draft.priority),
    max_attempts: number(draft.max_attempts),
    timeout: number(draft.timeout),
    description: draft.description.trim(),
    missed: draft.missed,
    missed_cap: number(draft.missed_cap) ?? 100,
    missed_window: draft.missed_window.trim() || null,
    overlap: draft.overlap,
    calendar: draft.calendar || null,
    calendar_mode: draft.calendar_mode,
  };
}

/**
 * The changed fields: only these are sent, so that a masked payload is never written back.
 * @param {Draft} draft
 * @param {Draft} before
 * @returns {Record<string, unknown>}
 */
export function changesOf(draft, before) {
  const [now, old] = [bodyOf(draft), bodyOf(before)];
  return Object.fromEntries(Object.entries(now).filter(([key, value]) => write(value) !== write(old[key])));
}
