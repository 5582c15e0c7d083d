// @ts-check
// The history of one schedule: figures, charts of duration and success, and every run.

import { at, zone } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { count, line, plural, shortId, duration } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Chart } from "../charts/chart.js";
import { Table } from "../base/table.js";
import { When } from "../base/time.js";

const STEPS = 60;

/** Success over the last seven days. @param {{summary: any}} props null: not known yet */
export function Figures({ summary }) {
  const bone = html`<span class="skeleton-line w2"></span>`;
  const length = (/** @type {number | null} */ ms) => (ms === null ? "—" : duration(ms / 1000));
  const figure = (/** @type {string} */ word, /** @type {any} */ value, /** @type {string} */ clause, loud = false) =>
    html`<div class=${loud ? "loud" : ""}>
      <dt>${word}</dt>
      <dd>${summary ? value() : bone}<small>${summary ? clause : " "}</small></dd>
    </div>`;
  return html`<dl class="figures">
    ${figure("Runs", () => count(summary.runs), "within seven days")}
    ${figure(
      "Succeeded",
      () => (summary.success_rate_percent === null ? "—" : `${Number(summary.success_rate_percent.toFixed(1))} %`),
      summary ? `${count(summary.succeeded)} of ${count(summary.succeeded + summary.failed)}` : "",
    )}
    ${figure(
      "Failed",
      () => count(summary.failed),
      summary?.failed ? "see the history below" : "none",
      summary?.failed > 0,
    )}
    ${figure("Average", () => length(summary.average_ms), "from start to end")}
    ${figure("Longest", () => length(summary.longest_ms), "from start to end")}
  </dl>`;
}

/** Duration and success of the newest runs, in equal steps of time. @param {{runs: any[]}} props newest first */
export function RunCharts({ runs }) {
  const drawn = useMemo(() => stepsOf(runs), [runs]);
  if (!drawn) return html`<p class="quiet">Two runs that have ended make a chart.</p>`;
  const { stepS, at: times, unit, longest, ended, failed } = drawn;
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
        sentence=${`How long the longest run of each ${duration(stepS)} took, in ${unit.word}.`}
      />
    </div>
    <div>
      <h3>Runs, failed ones in front</h3>
      <${Chart}
        at=${times}
        stepS=${stepS}
        height=${150}
        series=${[ended, failed]}
        sentence=${`${plural(sum(ended.values), "run")} ended, ${sum(failed.values)} of them failed.`}
      />
    </div>
  </div>`;
}

/** @param {any[]} runs */
function stepsOf(runs) {
  const over = runs.filter((run) => run.finished_at && run.success !== null);
  if (over.length < 2) return null;
  const time = (/** @type {any} */ run) => Date.parse(run.finished_at) / 1000;
  const [newest, oldest] = [Math.max(...over.map(time)), Math.min(...over.map(time))];
  const stepS = Math.max(1, Math.ceil((newest - oldest) / STEPS));
  const size = Math.floor((newest - oldest) / stepS) + 1;
  const times = Array.from({ length: size }, (_, i) => oldest + i * stepS);
  const unit = unitOf(Math.max(...over.map((run) => run.duration_ms ?? 0)));
  const empty = () => /** @type {(number | null)[]} */ (Array(size).fill(null));
  const [good, bad, ended, failed] = [empty(), empty(), empty(), empty()];
  for (const run of over) {
    const i = Math.floor((time(run) - oldest) / stepS);
    const longest = run.success ? good : bad;
    ended[i] = (ended[i] ?? 0) + 1;
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
    ended: { label: "ended", ink: "--mark", values: ended },
    failed: { label: "failed", ink: "--failed", values: failed },
  };
}

/** @param {number} ms */
function unitOf(ms) {
  if (ms < 10_000) return { word: "milliseconds", short: "ms", ms: 1 };
  return ms < 600_000 ? { word: "seconds", short: "s", ms: 1000 } : { word: "minutes", short: "min", ms: 60_000 };
}

const ORIGINS = { scheduler: "on time", catchup: "made up", manual: "by hand" };

/** @param {{runs: any[] | null}} props */
export function RunTable({ runs }) {
  const columns = useMemo(
    () =>
      /** @type {import("../base/table.js").Column[]} */ ([
        {
          title: "State",
          width: "7.5rem",
          cell: (run) =>
            html`<${Badge} state=${run.success === false && run.state === "succeeded" ? "failed" : run.state} />`,
        },
        {
          title: "Run and what it said",
          kind: "head",
          cell: (run) =>
            html`
              <a class="name" href=${at(`/jobs/${run.job}`)}>job ${shortId(run.job)}</a>
              <span class=${`sub ${run.success === false ? "bad" : ""}`}>${line(run.message ?? "") || " "}</span>
            `,
        },
        {
          title: "Fired",
          width: "6.5rem",
          cell: (run) =>
            html`<span class=${run.triggered_by === "catchup" ? "over" : ""}>
              ${ORIGINS[/** @type {keyof typeof ORIGINS} */ (run.triggered_by)] ?? line(run.triggered_by)}
            </span>`,
        },
        { title: "For", width: "10rem", kind: "wide-only", cell: (run) => html`<${When} at=${run.scheduled_for} />` },
        { title: "Began", width: "10rem", cell: (run) => html`<${When} at=${run.started_at} none="not yet" />` },
        {
          title: "Took",
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
  return html`<${Table} caption="Runs" columns=${columns} rows=${runs} id=${(/** @type {any} */ run) => run.job} />`;
}

/** @param {any[]} runs */
export function runCount(runs) {
  const failed = runs.filter((run) => run.success === false).length;
  return `${plural(runs.length, "run")} shown, ${count(failed)} failed`;
}
