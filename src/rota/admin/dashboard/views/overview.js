// @ts-check
// Overview: counts, throughput, problems, next runs, queues and failures.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { StateGlyph, tone } from "../parts/base/badge.js";
import { Skeleton, Empty, WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { Failures } from "../parts/jobs/failures.js";
import { GateBadge, PauseButton } from "../parts/operate/pause.js";
import { Code, PageHeader, Panel } from "../parts/base/panel.js";
import { Problems, problemsOf } from "../parts/operate/problems.js";
import { pageOf } from "../parts/schedules/schedule.js";
import { Spark } from "../parts/charts/spark.js";
import { Table, byId, byName } from "../parts/base/table.js";
import { Throughput } from "../parts/charts/throughput.js";
import { When } from "../parts/base/time.js";
import { JOB_STATE_LABELS, valuesOf } from "../labels.js";
import { at, may, minute, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { compact, clean, count, plural, duration } from "../format.js";

/** @typedef {import("../types").QueueView} QueueView */
/** @typedef {import("../types").ScheduleView} ScheduleView */

const HOUR = 3_600_000;

export default function Overview() {
  const shared = may("read.shared");
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], { on: ["stats"], every: 15 });
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [], {
    on: ["stats", "gate", "worker"],
    minInterval: 3,
    every: 15,
  });
  const gates = useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] });
  const schedules = useLoad((signal) => api.get("/schedules", { limit: 200 }, signal), [], {
    on: ["schedule", "gate"],
    every: 30,
  });
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [], { on: ["worker"], when: shared, every: 15 });
  const failures = useLoad((signal) => api.get("/failures", { limit: 8 }, signal), [], {
    on: ["stats"],
    minInterval: 10,
  });
  const doctor = useLoad((signal) => api.get("/doctor", {}, signal), [], { when: may("operate.shared"), every: 60 });
  const problems = problemsOf({
    queues: queues.data,
    gates: gates.data,
    schedules: schedules.data,
    workers: workers.data,
    doctor: doctor.data,
  });
  const known = queues.data && gates.data && schedules.data && (!shared || workers.data);
  const failedAt = failures.data?.last_at ?? null;
  const everything = gates.data?.items.find((gate) => gate.scope === "all");
  return html`
    <${PageHeader}
      title="Overview"
      acts=${gates.data && html`<${PauseButton} tiny=${false} scope="all" gate=${everything} done=${gates.reload} />`}
    >
      <p>
        ${known && stats.data && (failures.data || failures.error)
          ? html`${attention(problems, stats.data, failedAt)} ${oldestDue(stats.data, queues.data?.items ?? [])}`
          : html`<span class="skeleton-line w2"></span>`}
      </p>
    <//>
    ${stats.error && html`<${ErrorNotice} error=${stats.error} retry=${stats.reload} />`}
    <${Counts} stats=${stats.data} workers=${workers.data} />
    ${shared && html`<${Throughput} />`}
    <div class="columns">
      <${Panel} title="Problems" note=${problems.length > 1 && "worst first"}>
        ${known
          ? html`<${Problems}
              problems=${problems}
              done=${() => (gates.reload(), queues.reload(), schedules.reload())}
            />`
          : html`<${Skeleton} />`}
      <//>
      <${NextFires} schedules=${schedules} />
    </div>
    <${Queues} queues=${queues} />
    <${Panel} title="Failures by error" note=${html`<a href=${at("/jobs", { state: "failed" })}>View failed jobs</a>`}>
      <${WhenLoaded} of=${failures}>
        ${(/** @type {import("../types").FailureGroups} */ found) =>
          html`<${Failures} found=${found} done=${failures.reload} />`}
      <//>
    <//>
  `;
}

/**
 * What needs attention: problems, recent failures, failed jobs.
 * @param {unknown[]} problems
 * @param {import("../types").Stats} stats
 * @param {string | null} failedAt when a job failed last
 */
function attention(problems, { failed, estimated }, failedAt) {
  const recently = failed > 0 && failedAt !== null && minute.value - Date.parse(failedAt) < HOUR;
  if (!problems.length && !failed) return "All clear.";
  const first = problems.length ? `${plural(problems.length, "problem")}. ` : recently ? "" : "No problems. ";
  if (!failed) return first;
  const link = html`<a href=${at("/jobs", { state: "failed" })}>
    ${estimated.includes("failed") ? "≈ " : ""}
    ${plural(failed, "failed job")}
  </a>`;
  return html`${first}${link}${recently && html`, the latest <${When} at=${failedAt} />`}.`;
}

/** @param {import("../types").Stats} stats @param {import("../types").QueueView[]} queues */
function oldestDue(stats, queues) {
  if (stats.oldest_due_s === null) return "Nothing is due.";
  const worst = queues.reduce(
    (a, b) => ((b.oldest_due_s ?? -1) > (a?.oldest_due_s ?? -1) ? b : a),
    /** @type {import("../types").QueueView | null} */ (null),
  );
  return html`
    The oldest due job has been due for <b>${duration(stats.oldest_due_s)}</b>
    ${worst && html` in <a href=${at("/jobs", { queue: worst.name, state: "queued" })}><${Code}>${worst.name}<//></a>`}.
  `;
}

/** @param {{stats: import("../types").Stats | null, workers: {items: import("../types").WorkerView[]} | null}} props */
function Counts({ stats, workers }) {
  const slots = workers?.items.filter((one) => one.state === "running").reduce((sum, one) => sum + one.concurrency, 0);
  const later = Object.values(stats?.queues ?? {}).reduce((sum, queue) => sum + (queue.due_later ?? 0), 0);
  /** @type {Record<import("../choices.js").JobState, () => string>} */
  const clauses = {
    queued: () => (later ? `${count(later)} due later` : stats?.queued ? "all due" : "none"),
    waiting: () => "for other jobs",
    running: () => (slots ? `of ${plural(slots, "slot")}` : slots === 0 ? "no running worker" : "now"),
    succeeded: () => "in history",
    failed: () => (stats?.failed ? "retry or delete" : "none"),
    cancelled: () => "in history",
  };
  return html`<div class="counts">
    ${valuesOf(JOB_STATE_LABELS).map(
      (state) => html`<a
        href=${at("/jobs", { state })}
        class=${`${tone(state)} ${state === "failed" && stats?.failed ? "loud" : ""}`}
      >
        <span class="word"><${StateGlyph} state=${state} />${JOB_STATE_LABELS[state]}</span>
        <span class="value">
          ${stats
            ? html`
                ${stats.estimated.includes(state) ? "≈ " : ""}
                ${stats[state] < 1e6 ? count(stats[state]) : compact(stats[state])}
              `
            : html`<span class="skeleton-line w2"></span>`}
        </span>
        <span class="clause">${stats ? clauses[state]() : " "}</span>
      </a>`,
    )}
  </div>`;
}

/** A time that has passed is due now: the scheduler is about to advance it. @param {{at: string}} props */
function FireTime({ at: instant }) {
  return Date.parse(instant) > now.value ? html`<${When} at=${instant} />` : "due now";
}

/** @param {{schedules: import("../load.js").Loaded<{items: ScheduleView[]}>}} props */
function NextFires({ schedules }) {
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column<ScheduleView>[]} */ ([
        {
          title: "Next run",
          width: "8.5rem",
          cell: (one) => html`<${FireTime} at=${one.next_run_at} />`,
        },
        {
          title: "Schedule",
          kind: "head",
          cell: (one) =>
            html`
              <a class="name" href=${at(pageOf(one))}>${clean(one.name)}</a>
              <span class="sub">${clean(one.rule_summary)}</span>
            `,
        },
        {
          title: "Tenant",
          width: "6rem",
          cell: (one) => html`<span class="clip">${clean(one.tenant)}</span>`,
        },
      ]),
    [],
  );
  const all = schedules.data?.items ?? [];
  const next = all
    .filter((one) => one.enabled && one.next_run_at)
    .sort((a, b) => ((a.next_run_at ?? "") < (b.next_run_at ?? "") ? -1 : 1))
    .slice(0, 6);
  return html`<${Panel} title="Next runs" note=${html`<a href=${at("/schedules")}>View schedules</a>`}>
    ${schedules.error && html`<${ErrorNotice} error=${schedules.error} retry=${schedules.reload} />`}
    ${schedules.data && !next.length
      ? html`<${Empty}
          title="No upcoming runs"
          command="rota schedules create --name nightly --task cleanup --cron '0 3 * * *'"
        >
          A schedule creates jobs by a rule: every night, every 15 minutes, once on Friday.
        <//>`
      : html`<${Table} caption="Next runs" columns=${columns} rows=${schedules.data ? next : null} id=${byId} />`}
  <//>`;
}

/** @param {{queues: import("../load.js").Loaded<{items: QueueView[]}>}} props */
function Queues({ queues }) {
  const shared = may("read.shared");
  const hour = useLoad((signal) => api.get("/activity", { hours: 1, step_s: 60, by: "queue" }, signal), [], {
    when: shared,
    every: 60,
  });
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column<QueueView>[]} */ ([
        {
          title: "Queue",
          kind: "head",
          width: "22%",
          cell: (one) => html`<a class="name" href=${at("/jobs", { queue: one.name })}>${clean(one.name)}</a>`,
        },
        {
          title: "State",
          width: "10rem",
          cell: (one) =>
            html`<${GateBadge}
              gate=${one.gate}
              otherwise=${one.workers
                ? html`<span class="badge tone-running"><${StateGlyph} state="running" />active</span>`
                : html`<span class="badge tone-attention"><${StateGlyph} state="ghost" />no worker</span>`}
            />`,
        },
        {
          title: "Finished, last hour",
          width: "9.5rem",
          kind: "wide-only",
          cell: (one) => html`<${Spark} ...${minutesOf(hour.data?.items, one.name)} paused=${Boolean(one.gate)} />`,
        },
        { title: "Due", kind: "num", width: "4.5rem", cell: (one) => count(one.due) },
        {
          title: "Later",
          kind: "num wide-only",
          width: "4.5rem",
          cell: (one) => count(one.due_later),
        },
        { title: "Running", kind: "num", width: "5rem", cell: (one) => count(one.running) },
        {
          title: "Oldest due",
          kind: "num",
          width: "7rem",
          cell: (one) =>
            one.oldest_due_s === null
              ? html`<span class="faint">—</span>`
              : html`<span class=${one.oldest_due_s > 60 ? "over" : ""}>
                  ${one.oldest_due_s > 60 && html`<${StateGlyph} state="late" />`}
                  ${duration(one.oldest_due_s)}
                </span>`,
        },
        { title: "Workers", kind: "num wide-only", width: "4.5rem", cell: (one) => one.workers },
        ...(may("operate.shared")
          ? [
              {
                title: html`<span class="visually-hidden">Actions</span>`,
                kind: "act",
                width: "6rem",
                cell: (/** @type {QueueView} */ one) =>
                  html`<${PauseButton} scope="queue" name=${one.name} gate=${one.gate} done=${queues.reload} />`,
              },
            ]
          : []),
      ]),
    [hour.data],
  );
  return html`<${Panel} title="Queues" note=${html`<a href=${at("/queues")}>View queues</a>`}>
    ${queues.error && html`<${ErrorNotice} error=${queues.error} retry=${queues.reload} />`}
    ${queues.data?.items.length === 0
      ? html`<${Empty} title="No queue has jobs now" command="rota jobs enqueue TASK --payload '{}'">
          A queue is listed while it has queued or running jobs, recent activity, or a worker of its own.
        <//>`
      : html`<${Table} caption="Queues" columns=${columns} rows=${queues.data?.items ?? null} id=${byName} />`}
  <//>`;
}

/** @param {import("../types").ActivityBucket[] | undefined} steps @param {string} name */
function minutesOf(steps = [], name) {
  const start = Math.floor(now.peek() / 60_000) - 59;
  const values = Array(60).fill(0);
  const bad = Array(60).fill(0);
  for (const step of steps.filter((one) => one.name === name)) {
    const i = Math.floor(Date.parse(step.at) / 60_000) - start;
    if (i < 0 || i > 59) continue;
    values[i] = step.succeeded + step.failed + step.cancelled;
    bad[i] = step.failed;
  }
  const sum = values.reduce((a, b) => a + b, 0);
  return { values, bad, label: `${plural(sum, "job")} finished in the last hour` };
}
