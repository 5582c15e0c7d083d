// @ts-check
// The next 24 hours of schedules: one timeline each, and all together by quarter hour. A pause is hatched.

import { minute, zone } from "../../state.js";
import { html } from "../../ui.js";
import { clean, hourMinute, plural, weekday } from "../../format.js";

export const HOURS = 24;
const HOUR = 3_600_000;
const QUARTER = HOUR / 4;
const MANY = 72; // runs; more are drawn as a band
const TOO_MANY = "not shown: too many runs in total";

/** The position of a time, in percent. @param {number} at @param {number} from */
function place(at, from) {
  return ((at - from) / (HOURS * HOUR)) * 100;
}

/** @typedef {import("../../types").GateView} Gate */

/**
 * The runs of one schedule.
 * @param {{fires: number[], cut?: boolean, more?: boolean, gate?: Gate | null, name: string}} props
 *   fires: in milliseconds; cut: it has more than these; more: it may have, as there are too many of all schedules
 */
export function FireTimeline({ fires, cut = false, more = false, gate, name }) {
  const from = minute.value;
  const size = fires.length > 30 ? 1.75 : 3;
  return html`<svg
    class="fire-timeline"
    width="100%"
    height="24"
    role="img"
    aria-label=${summaryOf(countLabel(fires, cut || more), fires, more, gate, name)}
  >
    <line class="thread" x1="0" x2="100%" y1="12" y2="12" />
    ${[6, 12, 18].map(
      (hour) =>
        html`<line class="tick" x1=${`${(hour / HOURS) * 100}%`} x2=${`${(hour / HOURS) * 100}%`} y1="8" y2="16" />`,
    )}
    ${fires.length > MANY
      ? html`<${Band} fires=${fires} cut=${cut} from=${from} />`
      : fires.map(
          (at) =>
            html`<circle key=${at} class="seed" cx=${`${place(at, from).toFixed(2)}%`} cy="12" r=${size}>
              <title>${hourMinute(at, zone.value)}</title>
            </circle>`,
        )}
    ${more && !fires.length && html`<text class="too-many" x="50%" y="16" text-anchor="middle">${TOO_MANY}</text>`}
    ${gate && html`<rect
      class="paused"
      x="0"
      y="4"
      height="16"
      width=${`${gate.until_at ? Math.min(100, Math.max(0.5, place(Date.parse(gate.until_at), from))) : 100}%`}
    />`}
  </svg>`;
}

/** @param {{fires: number[], cut: boolean, from: number}} props */
function Band({ fires, cut, from }) {
  const end = cut ? 100 : place(fires[fires.length - 1], from);
  const start = Math.max(0, place(fires[0], from));
  return html`<rect class="often" x=${`${start}%`} width=${`${Math.max(0.5, end - start)}%`} y="9" height="6" rx="1">
    <title>${countLabel(fires, cut)}</title>
  </rect>`;
}

/** @param {number[]} fires @param {boolean} cut */
function countLabel(fires, cut) {
  return `${plural(fires.length, "run")}${cut ? " and more" : ""}`;
}

/**
 * @param {string} how
 * @param {number[]} fires
 * @param {boolean} more
 * @param {Gate | null | undefined} gate
 * @param {string} name
 */
function summaryOf(how, fires, more, gate, name) {
  const first = fires.length && hourMinute(fires[0], zone.value);
  const runs = first ? `${how} within 24 hours, the first at ${first}` : more ? TOO_MANY : "no runs within 24 hours";
  const end = gate?.until_at ? `until ${hourMinute(gate.until_at, zone.value)}` : "until resumed";
  return `${clean(name)}: ${runs}${gate ? `, paused ${end}` : ""}`;
}

/** The hours above the timelines. */
export function TimelineHours() {
  const from = minute.value;
  return html`
    <span class="visually-hidden">The next 24 hours</span>
    <span class="timeline-hours" aria-hidden="true">
      <span>now</span>
      ${[6, 12, 18].map((hour) => html`<span>${hourMinute(from + hour * HOUR, zone.value)}</span>`)}
    </span>
  `;
}

/**
 * The number of runs in each quarter hour.
 * @param {{fires: {at: number, name: string}[]}} props schedules that run too often are left out by the caller
 */
export function FireMap({ fires }) {
  const from = Math.floor(minute.value / QUARTER) * QUARTER;
  const slots = Array.from({ length: HOURS * 4 }, (_, i) => ({
    at: from + i * QUARTER,
    names: /** @type {string[]} */ ([]),
  }));
  for (const fire of fires) slots[Math.floor((fire.at - from) / QUARTER)]?.names.push(fire.name);
  const most = Math.max(1, ...slots.map((slot) => slot.names.length));
  const width = 100 / slots.length;
  return html`<svg
    class="firemap"
    width="100%"
    height="58"
    role="img"
    aria-label=${mapSummary(fires.length, busiest(slots))}
  >
    ${slots.map(
      (slot, i) =>
        html`<rect
          key=${slot.at}
          class=${`heat-${slot.names.length ? Math.ceil((slot.names.length / most) * 4) : 0}`}
          x=${`${(i * width).toFixed(3)}%`}
          y="6"
          width=${`${(width - 0.14).toFixed(3)}%`}
          height="28"
          rx="1"
        >
          <title>${slotSummary(slot)}</title>
        </rect>`,
    )}
    ${slots.map(
      (slot, i) =>
        slot.at % (3 * HOUR) === 0 &&
        i < 92 &&
        html`<text class=${slot.at % (6 * HOUR) ? "wide-only" : ""} x=${`${(i * width).toFixed(3)}%`} y="51">
          ${hourMinute(slot.at, zone.value) === "00:00"
            ? weekday(slot.at, zone.value)
            : hourMinute(slot.at, zone.value)}
        </text>`,
    )}
  </svg>`;
}

/** @param {{at: number, names: string[]}} slot */
function slotSummary({ at, names }) {
  const shown = [...new Set(names)].slice(0, 6).map(clean).join(", ");
  const runs = names.length ? `${plural(names.length, "run")} of ${shown}` : "no runs";
  return `${hourMinute(at, zone.value)}: ${runs}`;
}

/** @param {{at: number, names: string[]}[]} slots */
function busiest(slots) {
  return slots.reduce((a, b) => (b.names.length > a.names.length ? b : a));
}

/** @param {number} n @param {{at: number, names: string[]}} slot */
function mapSummary(n, slot) {
  const most = slot.names.length ? ` Most from ${hourMinute(slot.at, zone.value)}: ${slot.names.length}.` : "";
  return `${plural(n, "run")} within 24 hours, by quarter hour.${most}`;
}
