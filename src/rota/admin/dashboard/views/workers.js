// @ts-check
// Workers: busy slots, running jobs, queues and tasks; lost workers apart.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { pageOf, queuesOf, serves, Slots, WorkerBadge } from "../parts/operate/worker-summary.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { AllPausedNotice, useGlobalPause } from "../parts/operate/throughput-cells.js";
import { ListFilters, useFiltered } from "../parts/base/list-filters.js";
import { Code, PageHeader, Panel } from "../parts/base/panel.js";
import { Table, byId } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { at, may, query, refine } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").WorkerView} Worker */
/** @typedef {import("../types").JobView} Job */

const MOST = 200; // running jobs to load, to match them with workers

/** @type {import("../parts/base/list-filters.js").Kinds<Worker>} */
const KINDS = {
  busy: ["Busy", (/** @type {Worker} */ worker) => worker.running > 0],
  full: ["Full", (/** @type {Worker} */ worker) => worker.running >= worker.concurrency],
  draining: ["Draining", (/** @type {Worker} */ worker) => worker.state === "draining"],
  lost: ["Lost", (/** @type {Worker} */ worker) => worker.state === "lost"],
};

export default function Workers() {
  const shared = may("read.shared");
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [], { on: ["worker"], every: 10, when: shared });
  const running = useLoad((signal) => api.get("/jobs", { state: "running", limit: MOST }, signal), [], {
    on: ["job", "stats"],
    when: shared,
  });
  const globalPause = useGlobalPause();
  const known = useMemo(() => workers.data && counted(workers.data.items, running.data), [workers.data, running.data]);
  const all = useMemo(() => known && known.filter(matchesUrl), [known, query.value]);
  const rows = useFiltered(all, { kinds: KINDS, name: (worker) => `${worker.id} ${worker.host}` });
  const columns = useMemo(() => columnsOf(running.data?.items ?? null), [running.data]);
  if (!shared)
    return html`
      <${PageHeader} title="Workers" />
      <${Empty}
        title="Workers cover all tenants"
        acts=${html`<a class="button" href=${at("/jobs", { state: "running" })}>View your running jobs</a>`}
      >
        Your access is limited to one tenant and does not include workers. You can see all of that tenant's jobs.
      <//>
    `;
  const live = rows && rows.filter((worker) => worker.state !== "lost");
  const lost = rows && rows.filter((worker) => worker.state === "lost");
  const list = (/** @type {string} */ caption, /** @type {Worker[] | null} */ some) =>
    html`<${Table} caption=${caption} class="workers" columns=${columns} rows=${some} id=${byId} skeleton=${3} />`;
  return html`
    <${PageHeader} title="Workers"><p>${known ? summary(known) : html`<span class="skeleton-line w2"></span>`}</p><//>
    <${AllPausedNotice} globalPause=${globalPause} />
    ${workers.error && html`<${ErrorNotice} error=${workers.error} retry=${workers.reload} />`}
    ${known?.length !== 0 && html`<${ListFilters} what="workers" kinds=${KINDS} shown=${rows} of=${all} />`}
    <${ActiveFilters} />
    ${rows?.length === 0
      ? html`<${NoWorkers} some=${known?.length ?? 0} />`
      : live?.length !== 0 && (live || !workers.error) && list("Running workers", live)}
    ${lost && lost.length > 0 && html`<${Panel}
      title="Lost"
      note=${`${plural(lost.length, "worker")} stopped responding`}
    >
      <p class="quiet">
        Other workers rescue their jobs automatically. Lost workers are removed from this list after a while.
      </p>
      ${list("Lost workers", lost)}
    <//>`}
  `;
}

/**
 * A worker reports its running jobs now and then; the list of running jobs is current, if it is complete.
 * @param {Worker[]} workers
 * @param {import("../types").Page_JobView | null} jobs
 * @returns {Worker[]}
 */
function counted(workers, jobs) {
  if (!jobs || jobs.next) return workers;
  return workers.map((worker) => ({
    ...worker,
    running: jobs.items.filter((job) => job.worker === worker.id).length,
  }));
}

/** Whether a worker serves the queue and has the task in the URL. @param {Worker} worker */
function matchesUrl(worker) {
  const [queue, task] = [query.value.get("queue"), query.value.get("task")];
  return (!queue || serves(worker, queue)) && (!task || worker.tasks.includes(task));
}

function ActiveFilters() {
  const chosen = ["queue", "task"].filter((key) => query.value.get(key));
  if (!chosen.length) return null;
  return html`<p class="active-filters">
    ${chosen.map(
      (key) =>
        html`<span>
          ${key === "queue" ? "Serving queue" : "With task"} <${Code}>${query.value.get(key)}<//>. <button
            type="button"
            class="link"
            onClick=${() => refine({ [key]: "" })}
          >
            Show all
          </button>
        </span>`,
    )}
  </p>`;
}

/** @param {Worker[]} workers */
function summary(workers) {
  const live = workers.filter((worker) => worker.state !== "lost");
  if (!live.length) return "No worker is running: no jobs are started.";
  const sum = (/** @type {"running" | "concurrency"} */ key) => live.reduce((total, worker) => total + worker[key], 0);
  const slots = `${count(sum("running"))} of ${count(sum("concurrency"))}`;
  const draining = live.filter((worker) => worker.state === "draining").length;
  return `${count(live.length)} running, ${slots} slots busy${draining ? `, ${draining} draining` : ""}.`;
}

/** @param {Job[] | null} running @returns {import("../parts/base/table.js").Column<Worker>[]} */
function columnsOf(running) {
  return [
    {
      title: "Worker",
      kind: "head",
      cell: (worker) =>
        html`
          <a class="name" href=${pageOf(worker)}>${clean(worker.id)}</a>
          <span class="sub mono">${clean(worker.host)} pid ${worker.pid}</span>
        `,
    },
    { title: "State", width: "6rem", cell: (worker) => html`<${WorkerBadge} worker=${worker} />` },
    { title: "Slots busy", width: "6.5rem", cell: (worker) => html`<${Slots} worker=${worker} />` },
    {
      title: "Running",
      width: "18%",
      kind: "full",
      cell: (worker) => html`<${Runs} worker=${worker} running=${running} />`,
    },
    {
      title: "Queues",
      width: "13%",
      cell: (worker) =>
        html`
          <span class="clip" title=${queuesOf(worker)}>${queuesOf(worker)}</span>
          <span class="sub" title=${line(worker.tasks.join(", "), 400)}>${plural(worker.tasks.length, "task")}</span>
        `,
    },
    { title: "Finished", kind: "num broad", width: "5.5rem", cell: (worker) => count(worker.finished) },
    { title: "Started", width: "8.5rem", kind: "broad", cell: (worker) => html`<${When} at=${worker.started_at} />` },
    { title: "Last seen", width: "7.5rem", cell: (worker) => html`<${When} at=${worker.seen_at} />` },
    {
      title: "Version",
      width: "4.5rem",
      kind: "broad",
      cell: (worker) => html`<code>${worker.version ? clean(worker.version) : "—"}</code>`,
    },
  ];
}

/** @param {{worker: Worker, running: Job[] | null}} props */
function Runs({ worker, running }) {
  if (running === null) return html`<span class="skeleton-line w2"></span>`;
  const own = running.filter((job) => job.worker === worker.id);
  if (!own.length && !worker.running) return html`<span class="faint">nothing</span>`;
  const tasks = [...new Set(own.map((job) => job.task))];
  return html`<a class="clip" href=${at("/jobs", { worker: worker.id, state: "running" })}>
    ${own.length ? tasks.map((task) => clean(task)).join(", ") : plural(worker.running, "job")}
  </a>`;
}

/** @param {{some: number}} props */
function NoWorkers({ some }) {
  if (some)
    return html`<${Empty}
      title="No matching workers"
      acts=${html`<a class="button" href=${at("/workers")}>Show all workers</a>`}
    >
      A part of the id or the host is enough.
    <//>`;
  return html`<${Empty} title="No worker is running" command="rota worker --app shop.jobs:app">
    A worker runs due jobs. Start as many as you like, wherever your program is installed and the store is reachable:
  <//>`;
}
