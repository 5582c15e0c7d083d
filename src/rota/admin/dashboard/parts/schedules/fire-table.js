// @ts-check
// Next runs, one per row: in the zone of the rule, in the user's, and what a clock change does to them.

import { now, zone } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { line, relative } from "../../format.js";
import { Glyph } from "../base/glyph.js";
import { Table } from "../base/table.js";
import { dayIn, isZone, placeOf, timeIn } from "./zones.js";

/** @typedef {import("../../types").FireView} Fire */

/** Whether a clock change affects it: a wall time that does not exist, or happens twice. @param {Fire} fire */
export function isShifted(fire) {
  return /does not exist|happens twice/.test(fire.note ?? "");
}

/** A note as a sentence. @param {string | null | undefined} note */
export function sentence(note) {
  const text = line(note ?? "");
  return text && `${text[0].toUpperCase()}${text.slice(1)}.`;
}

/** @param {{fires: Fire[] | null, timezone: string, caption?: string, skeleton?: number}} props */
export function FireTable({ fires, timezone, caption = "Next runs", skeleton = 5 }) {
  const own = zone.value;
  const columns = useMemo(() => columnsOf(timezone, own), [timezone, own]);
  return html`<${Table}
    caption=${caption}
    class="fires"
    columns=${columns}
    rows=${fires}
    skeleton=${skeleton}
    id=${(/** @type {Fire} */ fire) => fire.at}
    state=${(/** @type {Fire} */ fire) => (isShifted(fire) ? "is-odd" : "")}
  />`;
}

/** @param {string} timezone @param {string} own @returns {import("../base/table.js").Column<Fire>[]} */
function columnsOf(timezone, own) {
  const local = {
    title: line(placeOf(timezone)),
    cell: (/** @type {Fire} */ fire) =>
      html`
        <span class="mono">${isZone(timezone) ? timeIn(fire.at, timezone, true) : line(fire.local.slice(11, 16))}</span>
        ${fire.note && html`<span class=${`sub ${isShifted(fire) ? "over" : ""}`}>
          ${isShifted(fire) && html`<${Glyph} name="warn" />`}
          ${line(fire.note)}
        </span>`}
      `,
  };
  const mine = {
    title: own,
    width: "7.5rem",
    kind: "num",
    cell: (/** @type {Fire} */ fire) => html`<span class="mono">${timeIn(fire.at, own, true)}</span>`,
  };
  const when = {
    title: "Day",
    width: "8.5rem",
    kind: "head",
    cell: (/** @type {Fire} */ fire) =>
      html`
        <time datetime=${fire.at} title=${fire.at}>${dayIn(fire.at, isZone(timezone) ? timezone : own)}</time>
        <span class="sub">${relative(fire.at, now.peek())}</span>
      `,
  };
  return timezone === own ? [when, local] : [when, local, mine];
}
