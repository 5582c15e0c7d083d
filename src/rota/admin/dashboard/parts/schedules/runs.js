// @ts-check
// The history of one schedule: totals, charts of duration and success, and every run.

import { RUN_ORIGIN_LABELS, labelOf } from "../../labels.js";
import { at, zone } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { count, line, plural, shortId, duration } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Chart } from "../charts/chart.js";
import { Table } from "../base/table.js";
import { When } from "../base/time.js";

/** @typedef {import("../../types").ScheduleRun} Run */

const STEPS = 60;

/**
 * Totals of the last days.
 * @param {{summary: import("../../types").RunSummary | null}} props null: not loaded yet
 */
export function Figures({ summary }) {
  const length = (/** @type {number | null} */ ms) => (ms === null ? "—" : duration(ms / 1000));
  const figure = (
    /** @type {string} */ word,
    /** @type {unknown} */ value = html`<span class="skeleton-line w2"></span>`,
    clause = " ",
    loud = false,
  ) =>
    html`<div class=${loud ? "loud" : ""}>
      <dt>${word}</dt>
      <dd>${value}<small>${clause}</small></dd>
    </div>`;
  if (!summary)
    return html`<dl class="figures">
      ${["Runs", "Succeeded", "Failed", "Average", "Longest"].map((word) => figure(word))}
    </dl>`;
  const { runs, succeeded, failed, success_rate_percent: rate, average_ms, longest_ms, window_days } = summary;
  const percent = rate === null ? "—" : `${Number(rate.toFixed(1))} %`;
  return html`<dl class="figures">
    ${figure("Runs", count(runs), `last ${plural(window_days, "day")}`)}
    ${figure("Succeeded", percent, `${count(succeeded)} of ${count(succeeded + failed)}`)}
    ${figure("Failed", count(failed), failed ? "see history" : "none", failed > 0)}
    ${figure("Average", length(average_ms), "duration")}
    ${figure("Longest", length(longest_ms), "duration")}
  </dl>`;
}

/** Duration and success of the newest runs, in equal steps of time. @param {{runs: Run[]}} props newest first */
export function RunCharts({ runs }) {
  const drawn = useMemo(() => stepsOf(runs), [runs]);
  if (!drawn) return html`<p class="quiet">A chart appears after two finished runs.</p>`;
  const { stepS, at: times, unit, longest, finished, failed } = drawn;
  const sum = (/** @type {(number | null)[]} */ values) =>
    values.reduce((/** @type {number} */ a, b) => a + (b ?? 0), 0);
  return html`<div class="columns even">
    <div>
      <h3>Longest run, ${unit.word}</h3>
      <${Chart}
        at=${times}
        stepS=${stepS}
        height=${150}
        series=${longest}
        sentence=${`Longest run per ${duration(stepS)}, in ${unit.word}.`}
      />
    </div>
    <div>
      <h3>Runs, failed in front</h3>
      <${Chart}
        at=${times}
        stepS=${stepS}
        height=${150}
        series=${[finished, failed]}
        sentence=${`${plural(sum(finished.values), "run")} finished, ${sum(failed.values)} of them failed.`}
      />
    </div>
  </div>`;
}

/** @param {Run[]} runs */
function stepsOf(runs) {
  const over = runs.filter((run) => run.finished_at && run.success !== null);
  if (over.length < 2) return null;
  const time = (/** @type {Run} */ run) => Date.parse(run.finished_at ?? "") / 1000;
  const [newest, oldest] = [Math.max(...over.map(time)), Math.min(...over.map(time))];
  const stepS = Math.max(1, Math.ceil((newest - oldest) / STEPS));
  const size = Math.floor((newest - oldest) / stepS) + 1;
  const times = Array.from({ length: size }, (_, i) => oldest + i * stepS);
  const unit = unitOf(Math.max(...over.map((run) => run.duration_ms ?? 0)));
  const empty = () => /** @type {(number | null)[]} */ (Array(size).fill(null));
  const [good, bad, finished, failed] = [empty(), empty(), empty(), empty()];
  for (const run of over) {
    const i = Math.floor((time(run) - oldest) / stepS);
    const longest = run.success ? good : bad;
    finished[i] = (finished[i] ?? 0) + 1;
    if (!run.success) failed[i] = (failed[i] ?? 0) + 1;
    if (run.duration_ms !== null)
      longest[i] = Math.max(longest[i] ?? 0, Number((run.duration_ms / unit.ms).toPrecision(4)));
  }
  return {
    at: times,
    stepS,
    unit,
    longest: [
      { label: "succeeded", ink: "--mark", values: good, unit: ` ${unit.short}` },
      { label: "failed", ink: "--failed", values: bad, unit: ` ${unit.short}` },
    ],
    finished: { label: "finished", ink: "--mark", values: finished },
    failed: { label: "failed", ink: "--failed", values: failed },
  };
}

/** @param {number} ms */
function unitOf(ms) {
  if (ms < 10_000) return { word: "milliseconds", short: "ms", ms: 1 };
  return ms < 600_000 ? { word: "seconds", short: "s", ms: 1000 } : { word: "minutes", short: "min", ms: 60_000 };
}

/** @param {{runs: Run[] | null}} props */
export function RunTable({ runs }) {
  const columns = useMemo(
    () =>
      /** @type {import("../base/table.js").Column<Run>[]} */ ([
        {
          title: "State",
          width: "7.5rem",
          cell: (run) => html`<${Badge} state=${run.state} />`,
        },
        {
          title: "Run",
          kind: "head",
          cell: (run) =>
            html`
              <a class="name" href=${at(`/jobs/${run.job}`)}>job ${shortId(run.job)}</a>
              <span class=${`sub ${run.success === false ? "bad" : ""}`}>${line(run.message ?? "") || " "}</span>
            `,
        },
        {
          title: "Started by",
          width: "6.5rem",
          cell: (run) =>
            html`<span class=${run.triggered_by === "catchup" ? "over" : ""}>
              ${labelOf(RUN_ORIGIN_LABELS, run.triggered_by)}
            </span>`,
        },
        {
          title: "Scheduled for",
          width: "10rem",
          kind: "wide-only",
          cell: (run) => html`<${When} at=${run.scheduled_for} />`,
        },
        { title: "Started", width: "10rem", cell: (run) => html`<${When} at=${run.started_at} none="not yet" />` },
        {
          title: "Duration",
          kind: "num",
          width: "6rem",
          cell: (run) =>
            run.duration_ms === null
              ? html`<span class="faint">—</span>`
              : html`<span class="nowrap">${duration(run.duration_ms / 1000)}</span>`,
        },
      ]),
    [zone.value],
  );
  return html`<${Table} caption="Runs" columns=${columns} rows=${runs} id=${(/** @type {Run} */ run) => run.job} />`;
}

/** @param {Run[]} runs */
export function runCount(runs) {
  const failed = runs.filter((run) => run.success === false).length;
  return `${plural(runs.length, "run")} shown, ${count(failed)} failed`;
}
