// @ts-check
// Builds a cron expression by clicks: presets, and five fields with a grid of values. The expression stays editable.

import { html, useState } from "../../ui.js";
import { clean, line } from "../../format.js";
import { Button } from "../base/button.js";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const NICKNAMES = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** @typedef {{name: string, low: number, high: number, words?: string[], steps: number[], grid: string}} CronField */
/** @type {CronField[]} */
const FIELDS = [
  { name: "Minute", low: 0, high: 59, steps: [5, 10, 15, 30], grid: "" },
  { name: "Hour", low: 0, high: 23, steps: [2, 3, 4, 6, 12], grid: "" },
  { name: "Day", low: 1, high: 31, steps: [], grid: "days" },
  { name: "Month", low: 1, high: 12, words: MONTHS, steps: [3], grid: "words" },
  { name: "Weekday", low: 0, high: 6, words: WEEKDAYS, steps: [], grid: "words" },
];
const PRESETS = [
  ["Every 15 minutes", "*/15 * * * *"],
  ["Every hour", "0 * * * *"],
  ["Every day at 03:00", "0 3 * * *"],
  ["Weekdays at 08:00", "0 8 * * 1-5"],
  ["Mondays at 09:00", "0 9 * * 1"],
  ["First of the month", "0 6 1 * *"],
  ["Last day of the month", "0 18 L * *"],
];

/**
 * The five fields of an expression, and the seconds before them; null if it has another form.
 * @param {string} text
 * @returns {{before: string[], fields: string[]} | null}
 */
function split(text) {
  const words = (NICKNAMES[/** @type {keyof typeof NICKNAMES} */ (text.trim().toLowerCase())] ?? text)
    .trim()
    .split(/\s+/);
  return words.length === 5 || words.length === 6
    ? { before: words.slice(0, words.length - 5), fields: words.slice(-5) }
    : null;
}

/**
 * The values of a field; null: all, or something that a grid cannot show.
 * @param {string} text
 * @param {CronField} field
 * @returns {Set<number> | null}
 */
function selectedValues(text, field) {
  const found = new Set();
  for (const term of text.split(",")) {
    const match = /^(?:\*|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/.exec(term);
    if (!match || term === "*") return null;
    const [, from, to, step] = match;
    const first = from === undefined ? field.low : valueOf(from, field);
    const last = to !== undefined ? valueOf(to, field) : from === undefined || step ? field.high : first;
    if (Number.isNaN(first) || Number.isNaN(last) || first > last) return null;
    for (let value = first; value <= last; value += Math.max(1, Number(step ?? 1)))
      found.add(field.name === "Weekday" ? value % 7 : value);
  }
  return found;
}

/** @param {string} text @param {CronField} field */
function valueOf(text, field) {
  const named = field.words?.findIndex((word) => word.toLowerCase() === text.toLowerCase()) ?? -1;
  return named >= 0 ? named + field.low : /^\d+$/.test(text) ? Number(text) : NaN;
}

/** Values as a cron field: "*", "1-5", "8,12". @param {Set<number>} values @param {CronField} field */
function toCron(values, field) {
  const sorted = [...values].sort((a, b) => a - b);
  if (!sorted.length || sorted.length > field.high - field.low) return "*";
  /** @type {number[][]} */
  const rows = [];
  for (const value of sorted) {
    const row = rows[rows.length - 1];
    if (row && value === row[row.length - 1] + 1) row.push(value);
    else rows.push([value]);
  }
  return rows.map((row) => (row.length > 2 ? `${row[0]}-${row[row.length - 1]}` : row.join(","))).join(",");
}

/** A field in a word or two. @param {string} text @param {CronField} field */
function fieldSummary(text, field) {
  if (text === "*") return "every";
  const values = field.words && selectedValues(text, field);
  return values && values.size <= 2 ? [...values].map((value) => field.words?.[value - field.low]).join(", ") : text;
}

/** @param {{value: string, onChange: (text: string) => void}} props */
export function CronBuilder({ value, onChange }) {
  const [open, setOpen] = useState(-1);
  const parts = split(value);
  const set = (/** @type {number} */ i, /** @type {string} */ text) => {
    if (parts) onChange([...parts.before, ...parts.fields.map((old, n) => (n === i ? text : old))].join(" "));
  };
  return html`<div class="cron-builder">
    <div class="presets" role="group" aria-label="Presets">
      ${PRESETS.map(([word, text]) => html`<${Button} tiny onClick=${() => onChange(text)}>${word}<//>`)}
    </div>
    ${parts
      ? html`
          <div class="cron-fields" role="group" aria-label="Cron fields">
            ${FIELDS.map(
              (field, i) =>
                html`<button
                  type="button"
                  aria-expanded=${open === i ? "true" : "false"}
                  onClick=${() => setOpen(open === i ? -1 : i)}
                >
                  ${field.name} <b>${line(fieldSummary(parts.fields[i], field), 40)}</b>
                </button>`,
            )}
          </div>
          ${open >= 0 && html`<${Picker}
            field=${FIELDS[open]}
            text=${parts.fields[open]}
            onChange=${(/** @type {string} */ text) => set(open, text)}
          />`}
        `
      : html`<p class="hint">Start with a preset, or enter five fields.</p>`}
  </div>`;
}

/** @param {{field: CronField, text: string, onChange: (text: string) => void}} props */
function Picker({ field, text, onChange }) {
  const values = selectedValues(text, field);
  const toggle = (/** @type {number} */ value) => {
    const next = new Set(values ?? []);
    if (!next.delete(value)) next.add(value);
    onChange(toCron(next, field));
  };
  const unit = field.name.toLowerCase();
  const size = field.high - field.low + 1;
  return html`<div class="cron-picker" role="group" aria-label=${`${field.name}s`}>
    <div class="acts">
      <${Button} tiny disabled=${text === "*"} onClick=${() => onChange("*")}>Every ${unit}<//>
      ${field.steps.map(
        (step) =>
          html`<${Button} tiny disabled=${text === `*/${step}`} onClick=${() => onChange(`*/${step}`)}>
            Every ${step} ${unit}s
          <//>`,
      )}
      ${field.name === "Day" && html`<${Button} tiny disabled=${text === "L"} onClick=${() => onChange("L")}>
        Last day
      <//>`}
      ${field.name === "Weekday" && html`<${Button} tiny disabled=${text === "1-5"} onClick=${() => onChange("1-5")}>
        Monday to Friday
      <//>`}
    </div>
    ${!values && text !== "*" && html`<p class="hint">
      <code>${clean(text)}</code> cannot be shown as a grid. A click replaces it.
    </p>`}
    <div class=${`cron-grid ${field.grid}`}>
      ${Array.from({ length: size }, (_, i) => i + field.low).map(
        (value) =>
          html`<button
            type="button"
            aria-label=${`${field.name} ${field.words?.[value - field.low] ?? value}`}
            aria-pressed=${values?.has(value) ? "true" : "false"}
            onClick=${() => toggle(value)}
          >
            ${field.words?.[value - field.low] ?? `${value}`.padStart(field.name === "Day" ? 1 : 2, "0")}
          </button>`,
      )}
    </div>
  </div>`;
}
