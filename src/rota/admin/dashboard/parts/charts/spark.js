// @ts-check
// Small charts inside a line of text or a table. Each has a text alternative.

import { html } from "../../ui.js";
import { plural } from "../../format.js";

/**
 * Values over time as a line, failures as marks below it.
 * @param {{values: number[], bad?: number[], label: string, paused?: boolean}} props
 */
export function Spark({ values, bad = [], label, paused }) {
  const width = 128;
  const height = 26;
  const top = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, i) => `${(i * step).toFixed(1)} ${(20 - (value / top) * 17).toFixed(1)}`);
  if (!points.length) return html`<span class="faint">—</span>`;
  return html`<svg
    class=${`spark ${paused ? "paused" : ""}`}
    viewBox=${`0 0 ${width} ${height}`}
    width=${width}
    height=${height}
    role="img"
    aria-label=${label}
  >
    <path class="area" d=${`M0 20 L${points.join(" L")} L${width} 20z`} />
    <path class="line" d=${`M${points.join(" L")}`} />
    <path class="base" d=${`M0 20.5H${width}`} />
    ${bad.map(
      (n, i) => n > 0 && html`<rect class="bad" x=${(i * step - 1).toFixed(1)} y="22" width="2.5" height="4" />`,
    )}
  </svg>`;
}

/** Attempts as marks: failed, running, done or unused. @param {{job: import("../../types").JobView}} props */
export function Pips({ job }) {
  const most = Math.min(job.max_attempts, 8);
  const last =
    job.state === "succeeded"
      ? "ok"
      : job.state === "running"
        ? "on"
        : job.state === "cancelled"
          ? "cut"
          : job.state === "failed" || job.error
            ? "bad"
            : "free";
  const kinds = Array.from({ length: most }, (_, i) =>
    i + 1 < job.attempt ? "bad" : i + 1 === job.attempt ? last : "free",
  );
  return html`<span class="pips" title=${`${plural(job.attempt, "attempt")} of ${job.max_attempts}`}>
    <span>${job.attempt}/${job.max_attempts}</span>
    <svg viewBox=${`0 0 ${most * 9} 8`} width=${most * 9} height="8" aria-hidden="true">
      ${kinds.map((kind, i) => html`<${Pip} kind=${kind} x=${i * 9} />`)}
    </svg>
  </span>`;
}

/** @param {{kind: string, x: number}} props */
function Pip({ kind, x }) {
  if (kind === "bad") return html`<path class="pip bad" d=${`M${x + 1} 1l6 6m0-6-6 6`} />`;
  if (kind === "cut")
    return html`<path class="pip" d=${`M${x + 1.2} 4a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0-5.6 0M${x + 2} 6l4-4`} />`;
  if (kind === "on") return html`<path class="pip on" d=${`M${x + 1} .5v7l6-3.5z`} />`;
  return html`<circle class=${`pip ${kind}`} cx=${x + 4} cy="4" r="2.8" />`;
}

/** A share of a whole. @param {{part: number, whole: number, label: string, state?: string}} props */
export function Gauge({ part, whole, label, state = "" }) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  return html`<svg class=${`gauge ${state}`} width="72" height="6" role="img" aria-label=${label}>
    <rect class="rail" width="72" height="6" rx="1" />
    <rect class="part" width=${(share * 72).toFixed(1)} height="6" rx="1" />
  </svg>`;
}

/**
 * The last runs of a schedule, oldest first; a failure is also taller.
 * @param {{results: {state: string, label: string}[], label: string}} props
 */
export function Strip({ results, label }) {
  const width = results.length * 8;
  return html`<svg
    class="strip"
    viewBox=${`0 0 ${Math.max(8, width)} 18`}
    width=${Math.max(8, width)}
    height="18"
    role="img"
    aria-label=${label}
  >
    ${results.map(
      ({ state, label: title }, i) =>
        html`<rect
          class=${state}
          x=${i * 8}
          y=${state === "failed" ? 0 : 6}
          width="6"
          height=${state === "failed" ? 18 : 12}
          rx="1"
        >
          <title>${title}</title>
        </rect>`,
    )}
  </svg>`;
}
