// @ts-check
// Queues: due jobs, the age of the oldest, throughput and workers.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import {
  AllPausedNotice,
  LONG_S,
  ThroughputSpark,
  pauseSummary,
  Rate,
  OpenState,
  useGlobalPause,
  useThroughputs,
  OldestDue,
  pauseImpact,
} from "../parts/operate/throughput-cells.js";
import { isListFiltered, ListFilters, orderable, useFiltered } from "../parts/base/list-filters.js";
import { Code, PageHeader } from "../parts/base/panel.js";
import { PauseButton } from "../parts/operate/pause.js";
import { Table, byName } from "../parts/base/table.js";
import { at, may, query } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, plural, shellQuote, duration } from "../format.js";

/** @typedef {import("../types").QueueView} Queue */

/** @type {import("../parts/base/list-filters.js").Kinds<Queue>} */
const KINDS = {
  due: ["Due", (/** @type {Queue} */ queue) => queue.due > 0],
  behind: ["Behind", (/** @type {Queue} */ queue) => (queue.oldest_due_s ?? 0) > LONG_S],
  paused: ["Paused", (/** @type {Queue} */ queue) => queue.gate !== null],
  unserved: ["No worker", (/** @type {Queue} */ queue) => !queue.workers],
};
/** @type {import("../parts/base/list-filters.js").Orders<Queue>} */
const ORDERS = {
  due: (queue) => queue.due,
  later: (queue) => queue.due_later,
  running: (queue) => queue.running,
  oldest: (queue) => queue.oldest_due_s ?? -1,
  pace: (queue) => queue.per_minute,
};

export default function Queues() {
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [], { on: ["stats", "gate"], every: 10 });
  const globalPause = useGlobalPause();
  const throughputs = useThroughputs("queue");
  const all = queues.data?.items;
  const rows = useFiltered(all, { kinds: KINDS, orders: ORDERS, name: byName });
  const columns = useMemo(
    () => columnsOf(throughputs, globalPause.gate, queues.reload),
    [throughputs, globalPause.gate, query.value.get("by")],
  );
  return html`
    <${PageHeader} title="Queues"><p>${all ? summary(all) : html`<span class="skeleton-line w2"></span>`}</p><//>
    <${AllPausedNotice} globalPause=${globalPause} />
    ${queues.error && html`<${ErrorNotice} error=${queues.error} retry=${queues.reload} />`}
    ${all?.length !== 0 && html`<${ListFilters} what="queues" kinds=${KINDS} shown=${rows} of=${all} />`}
    ${rows?.length === 0
      ? html`<${NoQueues} />`
      : (rows || !queues.error) &&
        html`<${Table} caption="Queues" class="queues" columns=${columns} rows=${rows} id=${byName} />`}
  `;
}

/** @param {Queue[]} queues */
function summary(queues) {
  if (!queues.length) return "None yet.";
  const due = queues.reduce((sum, queue) => sum + queue.due, 0);
  if (!due) return `${plural(queues.length, "queue")}. Nothing is due.`;
  const slowest = queues.reduce((a, b) => ((b.oldest_due_s ?? -1) > (a.oldest_due_s ?? -1) ? b : a));
  return html`
    ${plural(queues.length, "queue")}. ${plural(due, "due job")}, the oldest due
    for <b>${duration(slowest.oldest_due_s ?? 0)}</b> in <${Code}>${slowest.name}<//>.
  `;
}

/**
 * @param {import("../parts/operate/throughput-cells.js").Throughputs | null} throughputs
 * @param {import("../types").GateView | null} globalPause
 * @param {() => unknown} done
 * @returns {import("../parts/base/table.js").Column<Queue>[]}
 */
function columnsOf(throughputs, globalPause, done) {
  const jobs = (/** @type {Queue} */ queue, /** @type {number} */ n, /** @type {string} */ state) =>
    n ? html`<a href=${at("/jobs", { queue: queue.name, state })}>${count(n)}</a>` : html`<span class="faint">0</span>`;
  // Throughput and workers concern all tenants: a user limited to one gets no data, and must not see zeros.
  const shared = may("read.shared");
  return [
    {
      title: "Queue",
      kind: "head",
      cell: (queue) =>
        html`
          <a class="name" href=${at(`/queues/${encodeURIComponent(queue.name)}`)}>${clean(queue.name)}</a>
          <span class="sub">${rowNote(queue)}</span>
        `,
    },
    {
      title: "State",
      width: "10.5rem",
      kind: "not-mid",
      cell: (queue) => html`<${OpenState} gate=${queue.gate ?? globalPause} workers=${queue.workers} />`,
    },
    ...(shared
      ? [
          {
            title: "Finished, last hour",
            width: "9.5rem",
            kind: "not-mid two",
            cell: (/** @type {Queue} */ queue) =>
              html`<${ThroughputSpark} of=${throughputs} name=${queue.name} paused=${Boolean(queue.gate)} />`,
          },
        ]
      : []),
    orderable("due", {
      title: "Due",
      kind: "num",
      width: "5rem",
      cell: (queue) => jobs(queue, queue.due, "queued"),
    }),
    orderable("later", {
      title: "Later",
      kind: "num broad",
      width: "5rem",
      cell: (queue) => jobs(queue, queue.due_later, "queued"),
    }),
    orderable("running", {
      title: "Running",
      kind: "num broad",
      width: "5.5rem",
      cell: (queue) => jobs(queue, queue.running, "running"),
    }),
    orderable("oldest", {
      title: "Oldest due",
      kind: "num",
      width: "7.5rem",
      cell: (queue) => html`<${OldestDue} seconds=${queue.oldest_due_s} />`,
    }),
    ...(shared
      ? [
          orderable("pace", {
            title: "Finished/min",
            kind: "num",
            width: "7.5rem",
            cell: (queue) => html`<${Rate} of=${queue} />`,
          }),
        ]
      : []),
    {
      title: "Workers",
      kind: "num broad",
      width: "5rem",
      cell: (queue) =>
        shared && queue.workers
          ? html`<a href=${at("/workers", { queue: queue.name })}>${queue.workers}</a>`
          : queue.workers,
    },
    ...(may("operate.shared")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "5.5rem",
            cell: (/** @type {Queue} */ queue) =>
              html`<${PauseButton}
                scope="queue"
                name=${queue.name}
                gate=${queue.gate}
                done=${done}
                impact=${pauseImpact(queue)}
              />`,
          },
        ]
      : []),
  ];
}

/** A note below the name. @param {Queue} queue */
function rowNote(queue) {
  if (queue.gate) return html`<span title=${pauseSummary(queue.gate)}>${pauseSummary(queue.gate)}</span>`;
  if (!queue.workers) return html`Start a worker: <code>rota worker -q ${clean(shellQuote(queue.name))}</code>`;
  return "";
}

function NoQueues() {
  if (isListFiltered())
    return html`<${Empty}
      title="No matching queues"
      acts=${html`<a class="button" href=${at("/queues")}>Show all queues</a>`}
    >
      A part of the name is enough.
    <//>`;
  return html`<${Empty}
    title="No queues yet"
    command=${`rota jobs enqueue demo.greet --payload '{"name": "Ada"}' --queue mail`}
  >
    A queue groups jobs. It appears with its first job, and while a worker is dedicated to it.
  <//>`;
}
