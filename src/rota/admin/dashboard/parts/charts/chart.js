// @ts-check
// Charts over time, drawn by uPlot in the colours of the page.

import { theme, zone } from "../../state.js";
import { html, useEffect, useRef } from "../../ui.js";
import { compact, exact, hourMinute, weekday } from "../../format.js";
import uPlot from "../../vendor/uplot.js";

/**
 * @typedef {{label: string, ink: string, values: (number | null)[], kind?: "bars" | "line", unit?: string}} Series
 *   ink: a CSS variable such as "--mark"
 */

/**
 * Series drawn over each other, the first at the back. The sentence describes the picture.
 * @param {{at: number[], series: Series[], sentence: string, height?: number, stepS?: number}} props at: instants
 *   in seconds
 */
export function Chart({ at, series, sentence, height = 180, stepS = 300 }) {
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const caption = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const element = root.current;
    if (!element) return undefined;
    const draw = () =>
      new uPlot(options(element, series, height, stepS, describe), [at, ...series.map((one) => one.values)], element);
    const describe = (/** @type {number | null} */ i) => {
      if (caption.current) caption.current.textContent = i === null ? "" : captionOf(at[i], series, i);
    };
    let plot = draw();
    const redraw = () => (plot.destroy(), (plot = draw()));
    const sizes = new ResizeObserver(() => element.clientWidth && plot.setSize({ width: element.clientWidth, height }));
    sizes.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    const off = theme.subscribe(() => queueMicrotask(redraw));
    return () => (sizes.disconnect(), off(), dark.removeEventListener("change", redraw), plot.destroy());
  }, [at, series, height, zone.value]);
  return html`<figure class="chart">
    <div ref=${root} role="img" aria-label=${sentence}></div>
    <figcaption ref=${caption} class="mono faint"></figcaption>
  </figure>`;
}

/** @param {number} at @param {Series[]} series @param {number} i */
function captionOf(at, series, i) {
  const values = series.map(
    (one) => `${one.label} ${one.values[i] === null ? "—" : compact(Number(one.values[i]))}${one.unit ?? ""}`,
  );
  return `${exact(at * 1000, Date.now(), zone.value)}  ${values.join("  ")}`;
}

/**
 * @param {HTMLElement} element
 * @param {Series[]} series
 * @param {number} height
 * @param {number} stepS
 * @param {(i: number | null) => void} describe
 */
function options(element, series, height, stepS, describe) {
  const ink = (/** @type {string} */ name) => resolved(element, name);
  const axis = {
    stroke: ink("--ink-3"),
    font: `11px ${getComputedStyle(element).getPropertyValue("--mono")}`,
    ticks: { show: false },
  };
  return {
    width: element.clientWidth || 600,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: {
        range: (/** @type {unknown} */ _u, /** @type {number} */ low, /** @type {number} */ high) => [
          low - stepS / 2,
          high + stepS / 2,
        ],
      },
      y: {
        range: (/** @type {unknown} */ _u, /** @type {number} */ _low, /** @type {number} */ high) => [
          0,
          Math.max(1, (high || 0) * 1.08),
        ],
      },
    },
    axes: [
      {
        ...axis,
        size: 26,
        grid: { show: false },
        values: (/** @type {unknown} */ _u, /** @type {number[]} */ ticks) => hours(ticks),
      },
      {
        ...axis,
        size: 44,
        grid: { stroke: ink("--rule"), width: 1 },
        values: (/** @type {unknown} */ _u, /** @type {number[]} */ ticks) =>
          ticks.map((n) => (Number.isInteger(n) ? compact(n) : "")),
      },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        points: { show: false },
        ...(one.kind === "line"
          ? { stroke: ink(one.ink), width: 1.5 }
          : {
              fill: ink(one.ink),
              stroke: ink(one.ink),
              width: 0,
              paths: uPlot.paths.bars({ size: [0.82, 40], align: 0 }),
            }),
      })),
    ],
    hooks: { setCursor: [(/** @type {{cursor: {idx?: number | null}}} */ plot) => describe(plot.cursor.idx ?? null)] },
  };
}

/** The hour, or the day at midnight. @param {number[]} ticks */
function hours(ticks) {
  return ticks.map((tick) => {
    const time = hourMinute(tick * 1000, zone.value);
    return time === "00:00" ? weekday(tick * 1000, zone.value) : time;
  });
}

/**
 * The colour of a variable in the current theme: a canvas has no light-dark().
 * @param {HTMLElement} element
 * @param {string} name
 */
function resolved(element, name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
