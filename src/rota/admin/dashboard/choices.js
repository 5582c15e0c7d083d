// @ts-check
// Values of the server's enumerations, in its order. Written by tools/dashboard_types.py; do not edit.

export const JOB_STATES = /** @type {const} */ (["waiting", "queued", "running", "succeeded", "failed", "cancelled"]);
/** @typedef {(typeof JOB_STATES)[number]} JobState */

export const FINAL_STATES = /** @type {const} */ (["succeeded", "failed", "cancelled"]);
/** @typedef {(typeof FINAL_STATES)[number]} FinalState */

export const JOB_ORIGINS = /** @type {const} */ (["api", "scheduler", "manual", "catchup", "sql", "job"]);
/** @typedef {(typeof JOB_ORIGINS)[number]} JobOrigin */

export const ATTEMPT_OUTCOMES = /** @type {const} */ ([
  "succeeded",
  "failed",
  "snoozed",
  "cancelled",
  "rescued",
  "released",
]);
/** @typedef {(typeof ATTEMPT_OUTCOMES)[number]} AttemptOutcome */

export const WHY_CODES = /** @type {const} */ ([
  "ended",
  "quarantined",
  "running",
  "lease_expired",
  "stopping",
  "dependency",
  "paused",
  "due_later",
  "retry_later",
  "budget",
  "oversized",
  "strict",
  "limit_full",
  "rate",
  "no_worker",
  "unknown_task",
  "unserved_queue",
  "in_line",
  "next",
]);
/** @typedef {(typeof WHY_CODES)[number]} WhyCode */

export const MISSED = /** @type {const} */ (["skip", "latest", "all"]);
/** @typedef {(typeof MISSED)[number]} Missed */

export const OVERLAP = /** @type {const} */ (["allow", "skip", "queue", "cancel_previous"]);
/** @typedef {(typeof OVERLAP)[number]} Overlap */

export const CALENDAR_MODES = /** @type {const} */ (["skip", "next_working_day"]);
/** @typedef {(typeof CALENDAR_MODES)[number]} CalendarMode */

export const SCHEDULE_SOURCES = /** @type {const} */ (["code", "user", "registry", "sql"]);
/** @typedef {(typeof SCHEDULE_SOURCES)[number]} ScheduleSource */

export const GATE_SCOPES = /** @type {const} */ (["all", "queue", "task", "tenant", "schedule"]);
/** @typedef {(typeof GATE_SCOPES)[number]} GateScope */

export const PERIODS = /** @type {const} */ (["hour", "day", "week", "month"]);
/** @typedef {(typeof PERIODS)[number]} BudgetPeriod */

export const ROLES = /** @type {const} */ (["producer", "viewer", "operator", "admin"]);
/** @typedef {(typeof ROLES)[number]} Role */

export const PERMISSIONS = /** @type {const} */ ([
  "me",
  "enqueue",
  "read",
  "operate",
  "audit",
  "admin",
  "read.shared",
  "operate.shared",
  "admin.shared",
]);
/** @typedef {(typeof PERMISSIONS)[number]} Permission */

export const AUDIT_RESULTS = /** @type {const} */ (["done", "denied", "failed"]);
/** @typedef {(typeof AUDIT_RESULTS)[number]} AuditResult */

export const FINDING_LEVELS = /** @type {const} */ (["ok", "warning", "problem"]);
/** @typedef {(typeof FINDING_LEVELS)[number]} FindingLevel */
