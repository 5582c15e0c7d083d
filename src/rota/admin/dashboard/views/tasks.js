// @ts-check
// Tasks: throughput, durations and failures.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import {
  AllPausedNotice,
  ThroughputSpark,
  pauseSummary,
  Rate,
  OpenState,
  useGlobalPause,
  useThroughputs,
} from "../parts/operate/throughput-cells.js";
import { gatesAffecting, useGates } from "../parts/operate/paused-by.js";
import { isListFiltered, ListFilters, orderable, useFiltered } from "../parts/base/list-filters.js";
import { Code, PageHeader } from "../parts/base/panel.js";
import { PauseButton } from "../parts/operate/pause.js";
import { Table, byName } from "../parts/base/table.js";
import { at, may, query } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, plural, duration } from "../format.js";

/** @typedef {import("../types").TaskView} Task */

/** @type {import("../parts/base/list-filters.js").Kinds<Task>} */
const KINDS = {
  failing: ["Failing", (/** @type {Task} */ task) => task.failed_per_minute > 0],
  paused: ["Paused", (/** @type {Task} */ task) => task.gate !== null],
  unknown: ["No worker", (/** @type {Task} */ task) => !task.workers],
};
/** @type {import("../parts/base/list-filters.js").Orders<Task>} */
const ORDERS = {
  pace: (task) => task.per_minute,
  failures: (task) => task.failed_per_minute,
  p50: (task) => task.p50_ms ?? -1,
  p95: (task) => task.p95_ms ?? -1,
  p99: (task) => task.p99_ms ?? -1,
};

export default function Tasks() {
  const shared = may("read.shared");
  const tasks = useLoad((signal) => api.get("/tasks", {}, signal), [], { on: ["gate"], every: 10, when: shared });
  const globalPause = useGlobalPause();
  const gates = useGates();
  const throughputs = useThroughputs("task");
  const all = tasks.data?.items;
  const rows = useFiltered(all, { kinds: KINDS, orders: ORDERS, name: byName });
  const columns = useMemo(
    () => columnsOf(throughputs, gates, tasks.reload),
    [throughputs, gates, query.value.get("by")],
  );
  if (!shared)
    return html`
      <${PageHeader} title="Tasks" />
      <${Empty} title="Tasks cover all tenants" acts=${html`<a class="button" href=${at("/jobs")}>View your jobs</a>`}>
        Your access is limited to one tenant and does not include tasks. You can see all of that tenant's jobs.
      <//>
    `;
  return html`
    <${PageHeader} title="Tasks"><p>${all ? summary(all) : html`<span class="skeleton-line w2"></span>`}</p><//>
    <${AllPausedNotice} globalPause=${globalPause} />
    ${tasks.error && html`<${ErrorNotice} error=${tasks.error} retry=${tasks.reload} />`}
    ${all?.length !== 0 && html`<${ListFilters} what="tasks" kinds=${KINDS} shown=${rows} of=${all} />`}
    ${rows?.length === 0
      ? html`<${NoTasks} />`
      : (rows || !tasks.error) &&
        html`<${Table} caption="Tasks" class="tasks" columns=${columns} rows=${rows} id=${byName} />`}
  `;
}

/** @param {Task[]} tasks */
function summary(tasks) {
  if (!tasks.length) return "None yet.";
  const failing = tasks.filter((task) => task.failed_per_minute > 0);
  const worst = failing.sort((a, b) => b.failed_per_minute - a.failed_per_minute)[0];
  if (!worst) return `${plural(tasks.length, "task")}. None failed in the last ten minutes.`;
  const named = html`<${Code}>${worst.name}<//>`;
  return html`
    ${plural(tasks.length, "task")}. ${failing.length === 1
      ? html`Only ${named} failed in the last ten minutes.`
      : html`${count(failing.length)} failed in the last ten minutes, most of all ${named}.`}
  `;
}

/**
 * @param {import("../parts/operate/throughput-cells.js").Throughputs | null} throughputs
 * @param {import("../types").GateView[]} gates
 * @param {() => unknown} done
 * @returns {import("../parts/base/table.js").Column<Task>[]}
 */
function columnsOf(throughputs, gates, done) {
  const lasts = (/** @type {"p50" | "p95" | "p99"} */ part) =>
    orderable(part, {
      title: part,
      kind: part === "p99" ? "num not-mid" : "num",
      width: "5.75rem",
      cell: (/** @type {Task} */ task) => {
        const ms = task[`${part}_ms`];
        return ms === null ? html`<span class="faint">—</span>` : duration(ms / 1000);
      },
    });
  return [
    {
      title: "Task",
      kind: "head",
      cell: (task) =>
        html`
          <a class="name" href=${at("/jobs", { task: task.name })}>${clean(task.name)}</a>
          <span class="sub">${rowNote(task, pausingGate(task, gates))}</span>
        `,
    },
    {
      title: "State",
      width: "10.5rem",
      kind: "not-mid",
      cell: (task) => html`<${OpenState} gate=${pausingGate(task, gates)} workers=${task.workers} />`,
    },
    {
      title: "Finished, last hour",
      width: "9.5rem",
      kind: "broad two",
      cell: (task) => html`<${ThroughputSpark} of=${throughputs} name=${task.name} paused=${Boolean(task.gate)} />`,
    },
    orderable("pace", {
      title: "Finished/min",
      kind: "num",
      width: "7.5rem",
      cell: (task) => html`<${Rate} of=${task} />`,
    }),
    lasts("p50"),
    lasts("p95"),
    lasts("p99"),
    {
      title: "Workers",
      kind: "num broad",
      width: "5rem",
      cell: (task) => (task.workers ? html`<a href=${at("/workers", { task: task.name })}>${task.workers}</a>` : "0"),
    },
    ...(may("operate.shared")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "5.5rem",
            cell: (/** @type {Task} */ task) =>
              html`<${PauseButton} scope="task" name=${task.name} gate=${task.gate} done=${done} />`,
          },
        ]
      : []),
  ];
}

/**
 * The pause that keeps all its jobs from starting: its own, that of everything, or one of each queue it uses.
 * @param {Task} task
 * @param {import("../types").GateView[]} gates
 */
function pausingGate(task, gates) {
  const over = task.queues.map((queue) => gatesAffecting(gates, { queue })[0]);
  return task.gate ?? gatesAffecting(gates, {})[0] ?? (over.length && over.every(Boolean) ? over[0] : null);
}

/** @param {Task} task @param {import("../types").GateView | null} gate */
function rowNote(task, gate) {
  if (gate)
    return html`<span title=${pauseSummary(gate)}>
      ${gate.scope === "queue" && html`queue <code>${clean(gate.name)}</code>: `}
      ${pauseSummary(gate)}
    </span>`;
  if (!task.workers) return "No running worker has it: start one with the program that declares it";
  if (task.failed_per_minute > 0)
    return html`<a href=${at("/jobs", { task: task.name, state: "failed" })}>View failed jobs</a>`;
  return "";
}

function NoTasks() {
  if (isListFiltered())
    return html`<${Empty}
      title="No matching tasks"
      acts=${html`<a class="button" href=${at("/tasks")}>Show all tasks</a>`}
    >
      A part of the name is enough.
    <//>`;
  return html`<${Empty} title="No tasks yet" command="rota worker --app shop.jobs:app">
    A task is a function that your program declares. It is listed while a running worker has it, or if it ran recently.
    Start a worker with your program:
  <//>`;
}
