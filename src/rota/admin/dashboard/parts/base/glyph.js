// @ts-check
// Glyphs of states: each has its own shape, so that colour is never needed to distinguish them.

import { html } from "../../ui.js";

/** Drawn on a grid of 16 × 16. "fill" parts are solid, "cut" parts are lines in the background's colour. */
const SHAPES = {
  queued: [["circle", { cx: 8, cy: 8, r: 5.5 }]],
  scheduled: [
    ["circle", { cx: 8, cy: 8, r: 6 }],
    ["path", { d: "M8 4.6V8l2.4 1.6" }],
  ],
  retrying: [
    ["path", { d: "M13.4 8.4a5.5 5.5 0 1 1-1.5-4.2" }],
    ["path", { d: "M13.6 1.6v3.2h-3.2" }],
  ],
  waiting: [["path", { d: "M8 1.6 14.4 8 8 14.4 1.6 8z", "stroke-dasharray": "2.7 2.1" }]],
  running: [["path", { d: "M4.2 2.6v10.8L13.4 8z", class: "fill" }]],
  succeeded: [["path", { d: "m2.6 8.7 3.6 3.6 7.2-8" }]],
  failed: [
    ["path", { d: "M5.1 1.5h5.8l3.6 3.6v5.8l-3.6 3.6H5.1l-3.6-3.6V5.1z", class: "fill bare" }],
    ["path", { d: "m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8", class: "cut" }],
  ],
  rescued: [
    ["circle", { cx: 8, cy: 8, r: 6 }],
    ["circle", { cx: 8, cy: 8, r: 2.3 }],
    ["path", { d: "M8 2v3.5M8 10.5V14M2 8h3.5M10.5 8H14" }],
  ],
  cancelled: [
    ["circle", { cx: 8, cy: 8, r: 5.8 }],
    ["path", { d: "m4 12 8-8" }],
  ],
  off: [["circle", { cx: 8, cy: 8, r: 5.5, "stroke-dasharray": "1.6 2.7" }]],
  paused: [["path", { d: "M5 3v10M11 3v10", "stroke-width": 3 }]],
  late: [
    [
      "path",
      {
        d:
          "M3.2 1.8h9.6M3.2 14.2h9.6M4.4 1.8C4.4 5.4 8 5.8 8 8s-3.6 2.6-3.6 6.2M11.6 1.8C11.6 5.4 8 5.8 8 8" +
          "s3.6 2.6 3.6 6.2",
      },
    ],
  ],
  warn: [
    ["path", { d: "M8 1.8 14.8 14H1.2z" }],
    ["path", { d: "M8 6.4v3.4M8 11.9v.1" }],
  ],
  full: [
    ["path", { d: "M2 3.5h12v9H2z" }],
    ["path", { d: "M4.7 6v4M8 6v4M11.3 6v4" }],
  ],
  ghost: [
    ["path", { d: "M3 14V7a5 5 0 0 1 10 0v7l-2.5-1.7L8 14l-2.5-1.7z" }],
    ["path", { d: "M6.2 7v.1M9.8 7v.1" }],
  ],
  close: [["path", { d: "m3 3 10 10M13 3 3 13" }]],
  find: [
    ["circle", { cx: 7, cy: 7, r: 4.8 }],
    ["path", { d: "m10.6 10.6 3.9 3.9" }],
  ],
  menu: [["path", { d: "M2 4h12M2 8h12M2 12h12" }]],
  copy: [
    ["path", { d: "M5.5 5.5h8v8h-8z" }],
    ["path", { d: "M10.5 5.5v-3h-8v8h3" }],
  ],
  more: [["path", { d: "m3.5 6 4.5 4.5L12.5 6" }]],
};

/** @typedef {keyof typeof SHAPES} GlyphName */

/** Always beside a word, so hidden from screen readers. @param {{name: string}} props */
export function Glyph({ name }) {
  const shape = SHAPES[/** @type {GlyphName} */ (name)] ?? SHAPES.off;
  return html`<svg class="glyph" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
    ${shape.map(([tag, props]) => html`<${tag} ...${props} />`)}
  </svg>`;
}

/** rota's logo. @param {{size?: number}} props */
export function Mark({ size = 26 }) {
  return html`<svg class="mark" viewBox="0 0 32 32" width=${size} height=${size} aria-hidden="true">
    <circle cx="16" cy="16" r="13" stroke-width="3.4" stroke-dasharray="5.3 1.507" />
    <path d="M16 7.6V16l5.4 3.6" stroke-width="2.8" />
  </svg>`;
}
