// @ts-check
// Limits in words: what a name is about, what a rate means, and what a change would do. Pure.

import { clean, count, plural } from "../../format.js";

/** @typedef {import("../../types").LimitView} Held */
/** @typedef {{running: number | null, rate: string | null, burst: number | null, strict: boolean}} Draft a limit */
/** @typedef {{units: number, seconds: number, per: string}} Rate */
/** @typedef {Omit<Held, "running"> & {running: number | null}} Use a limit of which it may not be known what runs */

const SECONDS = { w: 604_800, d: 86_400, h: 3600, m: 60, s: 1 };
const WORDS = { w: "week", d: "day", h: "hour", m: "minute", s: "second" };
const RATE = /^\s*(\d{1,12})\s*\/\s*(\d{1,9})?\s*(w|d|h|m|s)(?:in)?\s*$/i;
export const MOST_LANES = 1000; // the server counts no further

/** The scope and the rest of a limit's name. @param {string} name @returns {[string, string]} */
export function partsOf(name) {
  const colon = name.indexOf(":");
  return [name.slice(0, colon), name.slice(colon + 1)];
}

/** A rule for each of the keys that begin with it. @param {string} name */
export function isFamily(name) {
  return name.startsWith("key:") && name.endsWith("*");
}

/** "jobs of queue mail", or "job of queue mail". @param {string} name @param {number} [n] */
export function jobsOf(name, n = 2) {
  const [scope, rest] = partsOf(name);
  const noun = n === 1 ? "job" : "jobs";
  if (isFamily(name)) return `${noun} of each key that begins with ${clean(rest.slice(0, -1)) || "anything"}`;
  return `${noun} ${scope === "key" ? "with" : "of"} ${scope} ${clean(rest)}`;
}

/**
 * "100/m" read; null if it cannot be. The server's reading counts.
 * @param {string | null} text
 * @returns {Rate | null}
 */
export function readRate(text) {
  const found = RATE.exec(text ?? "");
  if (!found || !Number(found[1])) return null;
  const unit = /** @type {keyof typeof SECONDS} */ (found[3].toLowerCase());
  const n = found[2] ? Number(found[2]) : 1;
  if (!n) return null;
  return {
    units: Number(found[1]),
    seconds: n * SECONDS[unit],
    per: n === 1 ? WORDS[unit] : `${count(n)} ${WORDS[unit]}s`,
  };
}

/** What may begin at once if nothing says so: a second's worth. @param {Rate} rate */
export function usualBurst({ units, seconds }) {
  return Math.max(1, Math.floor(units / seconds));
}

/** "at most 40 at once, 100 per minute". @param {Draft} limit */
export function limitWords({ running, rate, burst, strict }) {
  const read = readRate(rate);
  const said = [
    running !== null && `at most ${count(running)} at once`,
    rate !== null && (read ? `${count(read.units)} per ${read.per}` : clean(rate)),
    burst !== null && `burst ${count(burst)}`,
    strict && "waiting for retries",
  ].filter(Boolean);
  return said.join(", ") || "no limit";
}

/** How full, from 0 to 1, for the order of a list. @param {Held} held @returns {number} */
export function fullness(held) {
  if (isFamily(held.name)) return Math.max(0, ...held.keys.map(fullness));
  const slots = held.most === null ? 0 : Math.min(1, held.running / held.most);
  const bucket = held.tokens === null || !held.burst ? 0 : 1 - Math.min(1, held.tokens / held.burst);
  return Math.max(slots, bucket);
}

/**
 * What a change would do, in sentences.
 * @param {Use} held as it is now
 * @param {Draft} draft
 * @param {{isNew?: boolean}} [how]
 * @returns {string[]}
 */
export function effectOf(held, draft, { isNew = false } = {}) {
  if (draft.running === null && draft.rate === null) return ["Give a number of running jobs, a rate, or both."];
  return [
    ...runningEffect(held, draft.running, isNew),
    ...rateEffect(held, draft),
    ...(draft.strict && held.name.startsWith("key:")
      ? ["While a failed job of a key waits for its retry, the other jobs of that key wait with it."]
      : []),
    ...(held.source === "code" && !isNew ? ["It replaces the limit in the code until you remove it here."] : []),
    "In force as soon as it is saved. Running jobs continue.",
  ];
}

/** @param {Use} held @param {number | null} n @param {boolean} isNew @returns {string[]} */
function runningEffect(held, n, isNew) {
  if (n === null) return held.most === null || isNew ? [] : ["Any number of them may run at once."];
  const jobs = jobsOf(held.name, n);
  const rule = n === 1 ? `One ${jobs} runs at a time, in order` : `At most ${count(n)} ${jobs} run at once`;
  if (held.running === null) return [`${rule}.`];
  if (isFamily(held.name)) return [`${rule}. ${familyNow(held, n)}`];
  return [`${rule}; ${runningNow(held.running, n)}`, ...roomEffect(held, n)];
}

/** @param {number} running @param {number} n */
function runningNow(running, n) {
  if (!running) return "none runs now.";
  const now = running === 1 ? "1 runs now" : `${count(running)} run now`;
  if (running <= n) return `${now}: nothing changes for ${running === 1 ? "it" : "them"}.`;
  return `${now}: they finish, and no other starts until fewer than ${count(n)} run.`;
}

/** @param {Use} held @param {number} n */
function familyNow(held, n) {
  const over = held.keys.filter((key) => key.running > n).length;
  if (over)
    return (
      `${plural(over, "key")} ${over === 1 ? "has" : "have"} more running: those jobs finish, and no other of the ` +
      `key starts until fewer than ${count(n)} run.`
    );
  if (!held.running) return "None runs now.";
  const verb = held.running === 1 ? "runs" : "run";
  return `${plural(held.running, "job")} of its keys ${verb} now: nothing changes there.`;
}

/** @param {Use} held @param {number} n @returns {string[]} */
function roomEffect({ running, most, waiting_lanes: lanes }, n) {
  if (running === null || most === null || running < most || !lanes || n <= running) return [];
  return [`Up to ${plural(n - running, "waiting job")} can start at once.`];
}

/** @param {Use} held @param {Draft} draft @returns {string[]} */
function rateEffect(held, { rate, burst }) {
  if (rate === null) return held.rate === null ? [] : ["They begin at any rate."];
  const read = readRate(rate);
  if (!read) return ["The rate is written as units per time: 10/s, 100/m, 5000/h or 1/10s."];
  const most = burst ?? usualBurst(read);
  const each = isFamily(held.name) ? "Of each key no" : "No";
  const units = read.units === 1 ? "unit begins" : "units begin";
  const atOnce = most === 1 ? "one at a time" : `up to ${count(most)} at once`;
  return [
    `${each} more than ${count(read.units)} ${units} per ${read.per}, ${atOnce}.`,
    "A job takes one unit unless it is enqueued with more.",
  ];
}
