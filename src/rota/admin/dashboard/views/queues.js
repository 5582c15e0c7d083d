// @ts-check
// Where jobs wait: how many, how long, how fast they go, and who serves them.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Empty, Trouble } from "../parts/empty.js";
import { Halted, LONG_S, Pace, pausedBy, Rate, Standing, useHalt, usePaces, Waited, wouldMeet } from "../parts/flow.js";
import { isNarrowed, Narrow, orderable, useNarrowed } from "../parts/narrow.js";
import { Code, Lede } from "../parts/panel.js";
import { PauseButton } from "../parts/pause.js";
import { Table } from "../parts/table.js";
import { at, may, query } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, many, shell, span } from "../words.js";

/** @typedef {import("../types").QueueView} Queue */

/** @type {import("../parts/narrow.js").Kinds} */
const KINDS = {
  waiting: ["Due", (/** @type {Queue} */ queue) => queue.queued > 0],
  behind: ["Behind", (/** @type {Queue} */ queue) => (queue.oldest_due_s ?? 0) > LONG_S],
  paused: ["Paused", (/** @type {Queue} */ queue) => queue.gate !== null],
  unserved: ["No worker", (/** @type {Queue} */ queue) => !queue.workers],
};
/** @type {import("../parts/narrow.js").Orders} */
const ORDERS = {
  due: (queue) => queue.queued,
  later: (queue) => queue.scheduled,
  running: (queue) => queue.running,
  oldest: (queue) => queue.oldest_due_s ?? -1,
  pace: (queue) => queue.per_minute,
};

export default function Queues() {
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [], { on: ["stats", "gate"], every: 10 });
  const halt = useHalt();
  const paces = usePaces("queue");
  const all = queues.data?.items;
  const rows = useNarrowed(all, { kinds: KINDS, orders: ORDERS });
  const columns = useMemo(() => columnsOf(paces, halt.gate, queues.reload), [paces, halt.gate, query.value.get("by")]);
  return html`
    <${Lede} title="Queues"><p>${all ? inShort(all) : html`<span class="bone w2"></span>`}</p><//>
    <${Halted} halt=${halt} />
    ${queues.error && html`<${Trouble} error=${queues.error} retry=${queues.reload} />`}
    ${all?.length !== 0 && html`<${Narrow} what="queues" kinds=${KINDS} shown=${rows} of=${all} />`}
    ${rows?.length === 0 ? html`<${NoQueues} />` : (rows || !queues.error) && html`<${Table} caption="Queues" class="queues" columns=${columns} rows=${rows} id=${(/** @type {Queue} */ queue) => queue.name} />`}`;
}

/** @param {Queue[]} queues */
function inShort(queues) {
  if (!queues.length) return "None yet.";
  const due = queues.reduce((sum, queue) => sum + queue.queued, 0);
  if (!due) return `${many(queues.length, "queue")}. Nothing is due.`;
  const slowest = queues.reduce((a, b) => ((b.oldest_due_s ?? -1) > (a.oldest_due_s ?? -1) ? b : a));
  return html`${many(queues.length, "queue")}. ${many(due, "due job waits", "due jobs wait")}, the oldest for <b>${span(slowest.oldest_due_s ?? 0)}</b> in <${Code}>${slowest.name}<//>.`;
}

/** @param {import("../parts/flow.js").Paces | null} paces @param {any} halt @param {() => any} done @returns {import("../parts/table.js").Column[]} */
function columnsOf(paces, halt, done) {
  const jobs = (/** @type {Queue} */ queue, /** @type {number} */ n, /** @type {string} */ state) => (n ? html`<a href=${at("/jobs", { queue: queue.name, state })}>${count(n)}</a>` : html`<span class="faint">0</span>`);
  // Pace and workers concern all tenants: who belongs to one is not told, and must not be shown zeros.
  const shared = may("read.shared");
  return [
    { title: "Queue", kind: "head", cell: (queue) => html`<a class="name" href=${at(`/queues/${encodeURIComponent(queue.name)}`)}>${clean(queue.name)}</a><span class="sub">${saying(queue)}</span>` },
    { title: "State", width: "10.5rem", kind: "not-mid", cell: (queue) => html`<${Standing} gate=${queue.gate ?? halt} workers=${queue.workers} />` },
    ...(shared ? [{ title: "Ended, last hour", width: "9.5rem", kind: "not-mid two", cell: (/** @type {Queue} */ queue) => html`<${Pace} of=${paces} name=${queue.name} held=${Boolean(queue.gate)} />` }] : []),
    orderable("due", { title: "Due", kind: "num", width: "5rem", cell: (queue) => jobs(queue, queue.queued, "queued") }),
    orderable("later", { title: "Later", kind: "num broad", width: "5rem", cell: (queue) => jobs(queue, queue.scheduled, "queued") }),
    orderable("running", { title: "Running", kind: "num broad", width: "5.5rem", cell: (queue) => jobs(queue, queue.running, "running") }),
    orderable("oldest", { title: "Oldest due", kind: "num", width: "7.5rem", cell: (queue) => html`<${Waited} seconds=${queue.oldest_due_s} />` }),
    ...(shared ? [orderable("pace", { title: "Ended a minute", kind: "num", width: "7.5rem", cell: (queue) => html`<${Rate} of=${queue} />` })] : []),
    { title: "Workers", kind: "num broad", width: "5rem", cell: (queue) => (shared && queue.workers ? html`<a href=${at("/workers", { queue: queue.name })}>${queue.workers}</a>` : queue.workers) },
    ...(may("operate.shared") ? [{ title: html`<span class="unseen">Actions</span>`, kind: "act", width: "5.5rem", cell: (/** @type {Queue} */ queue) => html`<${PauseButton} scope="queue" name=${queue.name} gate=${queue.gate} done=${done} meets=${wouldMeet(queue)} />` }] : []),
  ];
}

/** The most useful line about a queue. @param {Queue} queue */
function saying(queue) {
  if (queue.gate) return html`<span title=${pausedBy(queue.gate)}>${pausedBy(queue.gate)}</span>`;
  if (!queue.workers) return html`Start a worker for it: <code>rota worker -q ${clean(shell(queue.name))}</code>`;
  return "";
}

function NoQueues() {
  if (isNarrowed()) return html`<${Empty} title="No queue is like that" acts=${html`<a class="button" href=${at("/queues")}>Show all queues</a>`}>Names are matched by any part of them.<//>`;
  return html`<${Empty} title="No queue yet" command=${`rota jobs enqueue demo.greet --payload '{"name": "Ada"}' --queue mail`}>A queue is a name that jobs wait under. It appears with its first job, and while a worker serves it by name.<//>`;
}
