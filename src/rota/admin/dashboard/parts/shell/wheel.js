// @ts-check
// The picture of the sign-in page: a clock face of 24 hours, its hand at the current time.

import { html } from "../../ui.js";
import { now, zone } from "../../state.js";
import { hourMinute } from "../../format.js";

const CENTRE = 240;
const RAYS = 144; // one for each ten minutes

/** A point on the clock face. @param {number} part of the day @param {number} radius */
function point(part, radius) {
  const angle = part * 2 * Math.PI - Math.PI / 2;
  return [(CENTRE + Math.cos(angle) * radius).toFixed(1), (CENTRE + Math.sin(angle) * radius).toFixed(1)];
}

/** @param {{part: number, from: number, to: number, kind: string}} props */
function Ray({ part, from, to, kind }) {
  const [x1, y1] = point(part, from);
  const [x2, y2] = point(part, to);
  return html`<line class=${kind} x1=${x1} y1=${y1} x2=${x2} y2=${y2} />`;
}

/** The length of a ray: an invented day, busy in the morning and quiet at night. @param {number} i */
function length(i) {
  const hour = (i / RAYS) * 24;
  return (
    10 +
    34 * Math.exp(-(((hour - 10.5) / 4) ** 2)) +
    22 * Math.exp(-(((hour - 20) / 2.5) ** 2)) +
    9 * Math.abs(Math.sin(i * 1.9))
  );
}

export function ClockFace() {
  const [hours, minutes] = hourMinute(now.value, zone.value).split(":").map(Number);
  const present = (hours * 60 + minutes) / 1440;
  return html`<svg class="wheel" viewBox="0 0 480 480" width="480" height="480" aria-hidden="true">
    <circle class="ring" cx="240" cy="240" r="92" />
    <circle class="ring" cx="240" cy="240" r="186" />
    ${Array.from(
      { length: RAYS },
      (_, i) =>
        html`<${Ray}
          part=${i / RAYS}
          from=${98}
          to=${98 + length(i)}
          kind=${i / RAYS > present ? "ray to-come" : "ray"}
        />`,
    )}
    ${Array.from(
      { length: 24 },
      (_, i) => html`<${Ray} part=${i / 24} from=${186} to=${i % 6 ? 192 : 198} kind="tick" />`,
    )}
    ${[0, 6, 12, 18].map((hour) => {
      const [x, y] = point(hour / 24, 216);
      return html`<text x=${x} y=${y}>${String(hour).padStart(2, "0")}</text>`;
    })}
    <${Ray} part=${present} from=${0} to=${178} kind="hand" />
    <circle class="hub" cx="240" cy="240" r="7" />
  </svg>`;
}
