// @ts-check
// Finished and failed jobs over time, of all queues or of one.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { now, query, refine } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { clean, count, plural } from "../../format.js";
import { Choice } from "../base/button.js";
import { Chart } from "./chart.js";
import { WhenLoaded } from "../base/empty.js";
import { Panel } from "../base/panel.js";

/**
 * By the label: the range in words, its hours, the seconds of a step.
 * @type {Record<string, [string, number, number]>}
 */
const RANGES = {
  "1h": ["1 hour", 1, 60],
  "6h": ["6 hours", 6, 300],
  "24h": ["24 hours", 24, 900],
  "7d": ["7 days", 168, 7200],
};
const DEFAULT_RANGE = "6h";

/** @param {{queue?: string}} props */
export function Throughput({ queue }) {
  const wanted = query.value.get("range") ?? DEFAULT_RANGE;
  const range = wanted in RANGES ? wanted : DEFAULT_RANGE;
  const [word, hours, step] = RANGES[range];
  const activity = useLoad(
    (signal) => api.get("/activity", { hours, step_s: step, by: queue === undefined ? "all" : "queue" }, signal),
    [queue, range],
    { on: ["stats"], minInterval: 3, every: 15 },
  );
  const drawn = useMemo(
    () =>
      activity.data &&
      filled(
        activity.data.items.filter((one) => one.name === (queue ?? null)),
        hours,
        step,
      ),
    [activity.data],
  );
  const choose = html`<${Choice}
    label="Range"
    value=${range}
    options=${Object.keys(RANGES).map((one) => [one, one])}
    onChange=${(/** @type {string} */ one) => refine({ range: one === DEFAULT_RANGE ? null : one }, { replace: true })}
  />`;
  return html`<${Panel} title="Throughput" note=${choose}>
    <${WhenLoaded} of=${activity} lines=${4}>
      ${() =>
        drawn &&
        html`
          <p class="soft small">
            ${drawn.finished
              ? html`
                  ${plural(drawn.finished, "job")} finished
                  in ${word}, <span class=${drawn.failed ? "tone-failed toned" : ""}>
                    ${count(drawn.failed)} failed
                  </span>
                  ${drawn.failed ? ` (${((100 * drawn.failed) / drawn.finished).toFixed(1)} %)` : ""}.
                `
              : `No job finished in ${word}.`}
          </p>
          <${Chart}
            at=${drawn.at}
            series=${drawn.series}
            stepS=${step}
            sentence=${`${plural(drawn.finished, "job")} finished in ${word}, ${count(drawn.failed)} of them failed.`}
          />
        `}
    <//>
  <//>`;
}

/**
 * One value per step, also where no job finished.
 * @param {import("../../types").ActivityBucket[]} steps
 * @param {number} hours
 * @param {number} step
 */
function filled(steps, hours, step) {
  const found = new Map(steps.map((one) => [Math.floor(Date.parse(one.at) / 1000), one]));
  const n = Math.round((hours * 3600) / step);
  const last = Math.floor(now.peek() / 1000 / step) * step;
  const times = Array.from({ length: n }, (_, i) => last - (n - 1 - i) * step);
  const finished = times.map((at) => sum([found.get(at)?.succeeded, found.get(at)?.failed, found.get(at)?.cancelled]));
  const failed = times.map((at) => found.get(at)?.failed ?? 0);
  return {
    at: times,
    finished: sum(finished),
    failed: sum(failed),
    series: [
      { label: "finished", ink: "--mark", values: finished },
      { label: "failed", ink: "--failed", values: failed },
    ],
  };
}

/** @param {(number | undefined)[]} values @returns {number} */
function sum(values) {
  return values.reduce((/** @type {number} */ total, value) => total + (value ?? 0), 0);
}
