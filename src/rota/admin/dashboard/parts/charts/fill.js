// @ts-check
// How full something is: a bar, or one mark per slot while there are few. Each has a text alternative.

import { html } from "../../ui.js";

const WIDTH = 120;
const HEIGHT = 10;
const MOST_SLOTS = 24;

/**
 * @param {{part: number, whole: number, label: string, isFull?: boolean, tick?: number | null, slots?: boolean}} props
 *   isFull: nothing more fits, shown as such; tick: a mark on the bar, in the same measure; slots: a mark for each
 */
export function Fill({ part, whole, label, isFull = part >= whole, tick = null, slots = false }) {
  const share = whole > 0 ? Math.max(0, Math.min(1, part / whole)) : 0;
  const at = tick === null || whole <= 0 ? null : Math.min(1, tick / whole) * WIDTH;
  return html`<svg
    class=${`fill-bar ${isFull ? "is-full" : ""}`}
    viewBox=${`0 0 ${WIDTH} ${HEIGHT}`}
    preserveAspectRatio="none"
    height=${HEIGHT}
    role="img"
    aria-label=${label}
  >
    ${slots && whole <= MOST_SLOTS
      ? Array.from({ length: whole }, (_, i) => html`<${Slot} i=${i} of=${whole} isTaken=${i < part} />`)
      : html`
          <rect class="rail" width=${WIDTH} height=${HEIGHT} />
          <rect class="part" width=${(share * WIDTH).toFixed(1)} height=${HEIGHT} />
        `}
    ${at !== null && html`<path class="tick" d=${`M${at.toFixed(1)} -3V${HEIGHT + 3}`} />`}
  </svg>`;
}

/** @param {{i: number, of: number, isTaken: boolean}} props */
function Slot({ i, of, isTaken }) {
  const step = WIDTH / of;
  const gap = of === 1 ? 0 : 1.5;
  return html`<rect
    class=${isTaken ? "part" : "rail"}
    x=${(i * step).toFixed(2)}
    width=${(step - gap).toFixed(2)}
    height=${HEIGHT}
  />`;
}
