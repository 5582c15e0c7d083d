// @ts-check
// Words for the server's values. Each table is complete, which its type checks: a new value needs a word here.

/** In the order of the tabs. @type {Record<import("./choices.js").JobState, string>} */
export const JOB_STATE_LABELS = {
  queued: "Queued",
  waiting: "Waiting",
  running: "Running",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
};

/** @type {Record<import("./choices.js").JobOrigin, string>} */
export const RUN_ORIGIN_LABELS = {
  scheduler: "on time",
  catchup: "caught up",
  manual: "triggered",
  api: "enqueued",
  sql: "enqueued in SQL",
  job: "enqueued by a job",
};

/** What happens if the last run is still running. @type {Record<import("./choices.js").Overlap, string>} */
export const OVERLAP_LABELS = {
  allow: "Run both at once.",
  skip: "Skip this run.",
  queue: "Start when the previous run has finished.",
  cancel_previous: "Cancel the previous run and start this one.",
};

/** What happens if runs were missed. @type {Record<import("./choices.js").Missed, string>} */
export const MISSED_LABELS = {
  skip: "Skip missed runs.",
  latest: "Catch up with one run, for the latest missed time.",
  all: "Catch up with every missed run, oldest first.",
};

/** What happens on a day of the calendar. @type {Record<import("./choices.js").CalendarMode, string>} */
export const CALENDAR_MODE_LABELS = {
  skip: "Skip the run",
  next_working_day: "Run on the next working day",
};

/** @type {Record<import("./choices.js").ScheduleSource, string>} */
export const SOURCE_LABELS = {
  code: "declared in code",
  user: "created by a user",
  registry: "created at run time",
  sql: "created in SQL",
};

/** What a pause does, by its scope. @type {Record<import("./choices.js").GateScope, string>} */
export const PAUSE_EFFECTS = {
  all: "No worker starts another job. Schedules keep creating jobs, which are not started either.",
  queue: "Jobs in this queue are not started. Other queues continue.",
  task: "Jobs of this task are not started, in any queue.",
  tenant: "Jobs of this tenant are not started. Other tenants continue.",
  schedule: "It creates no jobs. Runs due meanwhile count as missed.",
};

/** @type {Record<import("./choices.js").Role, string>} */
export const ROLE_LABELS = {
  producer: "Can only enqueue jobs. For programs; no dashboard.",
  viewer: "Read-only. No payloads unless allowed.",
  operator: "Can also retry, cancel, move and pause jobs, and edit schedules.",
  admin: "Can also manage API tokens and users.",
};

/** @type {Record<import("./choices.js").Permission, string>} */
export const PERMISSION_LABELS = {
  me: "see who is signed in",
  enqueue: "enqueue jobs",
  read: "view jobs and schedules",
  operate: "operate jobs and schedules",
  audit: "read the audit log",
  admin: "manage API tokens and users",
  "read.shared": "view workers and tasks",
  "operate.shared": "pause queues, tasks and everything",
  "admin.shared": "view the configuration",
};

/** @type {Record<import("./choices.js").AuditResult, string>} */
export const AUDIT_RESULT_LABELS = {
  done: "done",
  denied: "denied",
  failed: "failed",
};

/** @type {Record<import("./choices.js").FindingLevel, string>} */
export const FINDING_LEVEL_LABELS = {
  problem: "problem",
  warning: "warning",
  ok: "ok",
};

/**
 * The word for a value; one from a newer server stays as it is.
 * @template {string} K
 * @param {Record<K, string>} labels
 * @param {string} value
 */
export function labelOf(labels, value) {
  return labels[/** @type {K} */ (value)] ?? value;
}

/**
 * The values of a table, in its order.
 * @template {string} K
 * @param {Record<K, string>} labels
 */
export function valuesOf(labels) {
  return /** @type {K[]} */ (Object.keys(labels));
}

/**
 * Values and words, for a choice.
 * @template {string} K
 * @param {Record<K, string>} labels
 */
export function optionsOf(labels) {
  return /** @type {[K, string][]} */ (Object.entries(labels));
}
