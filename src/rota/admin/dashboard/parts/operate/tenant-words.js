// @ts-check
// Tenants in words: money, quotas, forecasts, and what a change would do. Pure.

import { count, plural } from "../../format.js";

/** @typedef {import("../../types").TenantView} Tenant */
/** @typedef {import("../../types").BudgetView} Budget */
/** @typedef {import("../../types").QuotaView} Quota */

const AMOUNT = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const BYTES = /** @type {[number, string][]} */ ([
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
]);
const FULL = 1;
export const NEARLY = 0.9; // of a quota: worth a look
const EARLY = 0.1; // of a period: too soon for a forecast

/** The period that runs now. @type {Record<string, string>} */
export const THIS_PERIOD = { hour: "this hour", day: "today", week: "this week", month: "this month" };
/** @type {Record<string, string>} */
export const QUOTA_WORDS = { waiting: "Waiting jobs", schedules: "Schedules", bytes_per_day: "Payload today" };

/** Cents as an amount: 5000 is 50.00. @param {number} cents */
export function money(cents) {
  return AMOUNT.format(cents / 100);
}

/** A number of a quota, in its unit. @param {string} name @param {number} n */
export function quotaNumber(name, n) {
  if (name !== "bytes_per_day") return count(n);
  const [size, unit] = BYTES.find(([one]) => n >= one) ?? [1, "bytes"];
  return `${size === 1 ? count(n) : (n / size).toFixed(1)} ${unit}`;
}

/** @param {Quota} quota */
export function quotaWords({ name, used, most }) {
  return `${quotaNumber(name, used)}${most === null ? "" : ` of ${quotaNumber(name, most)}`}`;
}

/** How full, from 0; none: 0. @param {Quota} quota */
export function quotaUse({ used, most }) {
  if (most === null) return 0;
  return most > 0 ? used / most : FULL;
}

/** The fullest quota, if there is any. @param {readonly Quota[]} quotas @returns {Quota | null} */
export function fullest(quotas) {
  const set = quotas.filter((quota) => quota.most !== null);
  return set.reduce((a, b) => (a !== null && quotaUse(a) >= quotaUse(b) ? a : b), /** @type {Quota | null} */ (null));
}

/** What is spent or promised, in cents. @param {Budget} budget */
export function committed({ spent, reserved }) {
  return spent + reserved;
}

/**
 * Cents by the end of the period at the pace so far; null: too early to say.
 * @param {Budget} budget
 * @param {number} now
 */
export function forecast({ spent, starts_at: starts, ends_at: ends }, now) {
  const elapsed = (now - Date.parse(starts)) / (Date.parse(ends) - Date.parse(starts));
  return elapsed > EARLY && elapsed < 1 && spent > 0 ? spent / elapsed : null;
}

/** A share in percent. @param {number} part @param {number} whole */
export function percent(part, whole) {
  if (!whole) return "0 %";
  const value = (100 * part) / whole;
  return value > 0 && value < 1 ? "< 1 %" : `${Math.round(value)} %`;
}

/** @typedef {{weight: string, max_priority: string, waiting: string, schedules: string, bytes_per_day: string,
 *   amount: string, period: string, alert: string, retention_days: string}} Typed what the form holds */

/** @param {Tenant} tenant @returns {Typed} */
export function typedOf({ weight, max_priority, quotas, budget, retention_days }) {
  const text = (/** @type {number | null | undefined} */ value) => (value == null ? "" : `${value}`);
  const most = (/** @type {string} */ name) => text(quotas.find((one) => one.name === name)?.most);
  return {
    weight: text(weight),
    max_priority: text(max_priority),
    waiting: most("waiting"),
    schedules: most("schedules"),
    bytes_per_day: most("bytes_per_day"),
    amount: budget ? (budget.cents / 100).toFixed(2) : "",
    period: budget?.period ?? "day",
    alert: budget?.alert == null ? "" : `${Math.round(budget.alert * 1000) / 10}`,
    retention_days: text(retention_days),
  };
}

const NUMBERS = /** @type {const} */ ([
  "weight",
  "max_priority",
  "waiting",
  "schedules",
  "bytes_per_day",
  "retention_days",
]);

/** What the form would set. @param {Typed} typed @returns {Record<string, number | string | null>} */
function settings(typed) {
  const number = (/** @type {string} */ text) => (text.trim() === "" ? null : Number(text));
  const hasBudget = typed.amount.trim() !== "";
  return {
    ...Object.fromEntries(NUMBERS.map((name) => [name, number(typed[name])])),
    budget: hasBudget ? `${typed.amount.trim()}/${typed.period}` : null,
    budget_alert: hasBudget && typed.alert.trim() ? Number(typed.alert) / 100 : null,
  };
}

/** The fields that differ, as the API takes them. @param {Typed} before @param {Typed} after */
export function changes(before, after) {
  const [old, next] = [settings(before), settings(after)];
  const changed = Object.entries(next).filter(([name, value]) => value !== old[name]);
  return Object.fromEntries(changed);
}

/**
 * What a change would do, in sentences.
 * @param {Tenant} tenant
 * @param {Typed} typed
 * @returns {string[]}
 */
export function effectOf(tenant, typed) {
  const changed = changes(typedOf(tenant), typed);
  const found = [
    "weight" in changed && weightEffect(tenant, Number(typed.weight || 1)),
    "max_priority" in changed && priorityEffect(typed.max_priority),
    ...QUOTAS.map((name) => name in changed && quotaEffect(tenant, name, typed[name])),
    ("budget" in changed || "budget_alert" in changed) && budgetEffect(tenant, typed),
    "retention_days" in changed && retentionEffect(typed.retention_days),
  ];
  const sentences = found.filter((one) => typeof one === "string");
  return sentences.length
    ? [...sentences, "In force as soon as it is saved. Running jobs continue."]
    : ["Nothing changes yet."];
}

const QUOTAS = /** @type {const} */ (["waiting", "schedules", "bytes_per_day"]);

/** @param {Tenant} tenant @param {number} weight */
function weightEffect({ share, weight: old }, weight) {
  if (!(weight > 0)) return "The weight is a number above 0.";
  const times = weight === 1 ? "as much" : `${weight} times as much`;
  if (share === null || share >= 1) return `While others wait too, it gets ${times} as a tenant of weight 1.`;
  const others = old / share - old;
  const next = weight / (others + weight);
  return `Among the tenants that wait now it gets ≈ ${percent(next, 1)} of a queue, instead of ${percent(share, 1)}.`;
}

/** @param {string} text */
function priorityEffect(text) {
  if (text.trim() === "") return "Its jobs keep any priority they are enqueued with.";
  return `Jobs enqueued with a higher priority than ${text} are stored with ${text}. Waiting jobs keep theirs.`;
}

/** @param {Tenant} tenant @param {"waiting" | "schedules" | "bytes_per_day"} name @param {string} text */
function quotaEffect({ quotas }, name, text) {
  const word = QUOTA_WORDS[name];
  const used = quotas.find((one) => one.name === name)?.used ?? 0;
  if (text.trim() === "") return `${word}: no quota.`;
  const most = Number(text);
  const now = `${word}: ${quotaNumber(name, used)} of ${quotaNumber(name, most)}`;
  if (used < most) return `${now}, ${quotaNumber(name, most - used)} left.`;
  const refused = name === "schedules" ? "New schedules are" : "Enqueueing is";
  return `${now}. ${refused} refused until it is below; what is there stays.`;
}

/** @param {Tenant} tenant @param {Typed} typed */
function budgetEffect({ budget, spent_cents: spentSoFar }, { amount, period, alert }) {
  if (amount.trim() === "") return "No budget: its jobs begin whatever they cost.";
  const cents = Number(amount) * 100;
  if (!(cents > 0)) return "The budget is an amount such as 50.00.";
  const isSame = budget?.period === period || (!budget && period === "day");
  if (!isSame) return `Nothing of it begins once ${money(cents)} is spent in a ${period}.`;
  const spent = budget?.spent ?? spentSoFar;
  const now = `${money(spent)} of ${money(cents)} spent ${THIS_PERIOD[period]}`;
  if (spent >= cents) return `${now}: nothing of it begins until the period ends, or the budget is raised.`;
  const warn = alert.trim() ? `, alert at ${money((cents * Number(alert)) / 100)}` : "";
  return `${now}: ${money(cents - spent)} left${warn}.`;
}

/** @param {string} text */
function retentionEffect(text) {
  if (text.trim() === "") return "Its finished jobs are kept as long as the settings say.";
  return `Its finished jobs are deleted after ${plural(Number(text), "day")}, older ones soon.`;
}
