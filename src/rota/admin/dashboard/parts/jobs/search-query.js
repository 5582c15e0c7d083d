// @ts-check
// The text in the search for jobs, and what it means. Nothing is guessed and nothing is dropped: what cannot be
// understood stays in the field, with a message.

import { JOB_STATES } from "../../choices.js";
import { parseTime } from "../../format.js";

/** Keys that become chips; "-" before a key excludes. */
export const KEYS = [
  "task",
  "queue",
  "tenant",
  "tag",
  "error",
  "payload",
  "worker",
  "since",
  "until",
  "schedule",
  "key",
  "concurrency_key",
  "parent",
  "-task",
  "-queue",
];
const TYPED = ["state", ...KEYS];
/** What a word without a key may name. */
const NAMED = ["state", "task", "queue", "tenant", "schedule"];
export const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const KEYED = /(?:^|\s)-?[\w.]+:(?:"[^"]*"?|\S*)/g;
const MOST = 8;

/** @typedef {[string, string]} Token key and value; a plain word has the key "" */
/** @typedef {Record<string, string[]>} Values known values by key, for completion */

/**
 * Tokens of a line; words without a key have the key "". Quotes keep spaces together.
 * @param {string} text
 * @returns {Token[]}
 */
export function tokens(text) {
  return [...text.matchAll(/(?:(-?[\w.]+):)?(?:"([^"]*)"|(\S+))/g)].map(([, key = "", quoted, plain]) => [
    key,
    quoted ?? plain,
  ]);
}

/** @param {string} key @param {string} value */
export function written(key, value) {
  const plain = /[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value;
  return key ? `${key}:${plain}` : plain;
}

/**
 * Which tokens of a line are understood, what stays in the field, and why.
 * @param {string} text @param {Values} values @param {number} now
 * @returns {{sure: Token[], rest: string, message: string}}
 */
export function interpret(text, values, now) {
  const sure = /** @type {Token[]} */ ([]);
  const rest = [];
  const message = [];
  const found = tokens(text);
  for (const [key, value] of found.filter(([one]) => one)) {
    const wrong = problemWith(key, value, now);
    if (wrong) (message.push(wrong), rest.push(written(key, value)));
    else sure.push(key.startsWith("payload.") ? ["payload", `${key.slice(8)}=${value}`] : [key, value]);
  }
  const words = found
    .filter(([one]) => !one)
    .map(([, value]) => value)
    .join(" ");
  if (words && (/:$/.test(words) || candidates(words, values).length))
    (rest.push(words),
      message.push(/:$/.test(words) ? `${words} needs a value.` : `“${words}” has several meanings: choose one.`));
  else if (words) sure.push(["error", words]);
  return { sure, rest: rest.join(" "), message: message.join(" ") };
}

/** What is wrong with a token; "" if nothing is. @param {string} key @param {string} value @param {number} now */
function problemWith(key, value, now) {
  if (key === "state")
    return value.split(",").every((one) => JOB_STATES.some((state) => state === one))
      ? ""
      : `state: one of ${JOB_STATES.join(", ")}.`;
  if (key === "since" || key === "until")
    return parseTime(value, now) ? "" : `${key}: a duration such as 2h, or a time such as 2026-11-16T08:00.`;
  if (key === "payload") return value.includes("=") ? "" : "payload: a path and its value, such as payload.order.id:7.";
  if (key === "parent") return ID.test(value) ? "" : "parent: the full id of a job.";
  if (TYPED.includes(key) || /^payload\../.test(key)) return "";
  return `Unknown key “${key}”. Use one of ${TYPED.join(", ")}, or quotes to search in errors.`;
}

/** Tokens that a word may mean: known values with a similar name. @param {string} word @param {Values} values */
function candidates(word, values) {
  const wanted = word.toLowerCase();
  return NAMED.flatMap((key) =>
    (values[key] ?? []).filter((value) => value.toLowerCase().includes(wanted)).map((value) => written(key, value)),
  ).slice(0, MOST);
}

/**
 * The last word of a line, which is still being typed, and the text before it.
 * @param {string} text
 * @returns {[string, string]}
 */
function splitLast(text) {
  const last = [...text.matchAll(KEYED)].at(-1);
  if (!last) return ["", text];
  const end = last.index + last[0].length;
  return end === text.length
    ? [text.slice(0, last.index), last[0].trim()]
    : [text.slice(0, end), text.slice(end).trim()];
}

/**
 * Completions of a line: each a whole line, with a description.
 * @param {string} text
 * @param {Values} values
 * @returns {{line: string, message: string}[]}
 */
export function completions(text, values) {
  const [before, word] = splitLast(text);
  const whole = (/** @type {string} */ token, message = "") => ({
    line: [before.trim(), token].filter(Boolean).join(" "),
    message,
  });
  const [, key, value] = /^(-?[\w.]+):"?(.*)$/.exec(word) ?? [];
  if (key)
    return (values[key] ?? [])
      .filter((one) => one.toLowerCase().includes(value.toLowerCase()))
      .slice(0, MOST)
      .map((one) => whole(written(key, one)));
  const keys = TYPED.filter((one) => one.startsWith(word.toLowerCase())).map((one) =>
    whole(one === "payload" ? "payload." : `${one}:`),
  );
  if (!word) return keys;
  return [
    ...keys,
    ...candidates(word, values).map((one) => whole(one)),
    whole(written("tag", word), "has this tag"),
    whole(written("error", word), "error contains it"),
  ];
}
