// @ts-check
// One worker: what it runs, what it would take, since when.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { queuesOf, Slots, WorkerBadge } from "../parts/operate/worker-summary.js";
import { Empty, WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { Code, Facts, PageHeader, Note, Panel } from "../parts/base/panel.js";
import { Table } from "../parts/base/table.js";
import { Elapsed, When } from "../parts/base/time.js";
import { at } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, plural, shortId } from "../format.js";

/** @param {{id: string}} props */
export default function Worker({ id }) {
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [id], { on: ["worker"], every: 10 });
  const worker = workers.data?.items.find((/** @type {any} */ one) => one.id === id);
  const crumb = html`<a href=${at("/workers")}>Workers</a>`;
  return html`
    <${PageHeader}
      title=${clean(id)}
      mono
      crumb=${crumb}
      beside=${worker && html`<${WorkerBadge} worker=${worker} solid />`}
    />
    <${WhenLoaded} of=${workers} lines=${6}>
      ${() =>
        worker
          ? html`<${Known} worker=${worker} />`
          : html`<${Empty}
              title="This worker is not listed"
              acts=${html`<a class="button" href=${at("/jobs", { worker: id })}>Show the jobs it ran</a>`}
            >
              It stopped, or it has been silent for so long that its line went. The jobs it ran still name it.
            <//>`}
    <//>
  `;
}

/** @param {{worker: import("../types").WorkerView}} props */
function Known({ worker }) {
  const lost = worker.state === "lost";
  return html`
    ${lost && html`<${Note} state="failed">
      <p><b>It fell silent.</b> <${When} at=${worker.seen_at} lead="Last heard" />.</p>
      <p>
        Live workers take over what it ran, by themselves. If its process still stands, look at its log: the store may
        be out of its reach.
      </p>
    <//>`}
    <div class="columns">
      <${Running} worker=${worker} />
      <${Panel} title="What it is">
        <${Facts}
          items=${[
            ["Slots", html`<${Slots} worker=${worker} />`],
            ["Queues", queuesOf(worker)],
            ["Done", plural(worker.finished, "job")],
            ["Up since", html`<${When} at=${worker.started_at} />`],
            ["Last seen", html`<${When} at=${worker.seen_at} />`],
            ["Host", html`<${Code}>${worker.host}<//>`],
            ["Process", html`<${Code}>${worker.pid}<//>`],
            worker.name && ["Name", clean(worker.name)],
            ["Version", worker.version && html`<${Code}>${worker.version}<//>`],
          ]}
        />
      <//>
    </div>
    <${Panel} title="Tasks it knows" note=${count(worker.tasks.length)}>
      ${worker.tasks.length
        ? html`<ul class="names">
            ${worker.tasks.map(
              (task) => html`<li><a href=${at("/jobs", { task, worker: worker.id })}><${Code}>${task}<//></a></li>`,
            )}
          </ul>`
        : html`<p class="quiet">None: its program declares no task.</p>`}
    <//>
  `;
}

/** @param {{worker: import("../types").WorkerView}} props */
function Running({ worker }) {
  const jobs = useLoad(
    (signal) => api.get("/jobs", { worker: worker.id, state: "running", limit: 50 }, signal),
    [worker.id],
    { on: ["job"] },
  );
  const columns = useMemo(
    () => [
      {
        title: "Job",
        kind: "head",
        cell: (/** @type {any} */ job) =>
          html`<a class="name" href=${at(`/jobs/${job.id}`)}>
            ${clean(job.task)} <span class="faint">${shortId(job.id)}</span>
          </a>`,
      },
      {
        title: "Queue",
        width: "7rem",
        cell: (/** @type {any} */ job) => html`<code class="clip">${clean(job.queue)}</code>`,
      },
      {
        title: "Tenant",
        width: "7rem",
        cell: (/** @type {any} */ job) => html`<span class="clip">${clean(job.tenant)}</span>`,
      },
      { title: "Began", width: "8.5rem", cell: (/** @type {any} */ job) => html`<${When} at=${job.started_at} />` },
      {
        title: "For",
        kind: "num",
        width: "6rem",
        cell: (/** @type {any} */ job) => html`<${Elapsed} from=${job.started_at} />`,
      },
    ],
    [],
  );
  return html`<${Panel} title="Runs now" note=${html`<a href=${at("/jobs", { worker: worker.id })}>All its jobs</a>`}>
    ${jobs.error
      ? html`<${ErrorNotice} error=${jobs.error} retry=${jobs.reload} />`
      : jobs.data?.items.length === 0
        ? html`<p class="quiet">Nothing. ${worker.state === "running" ? "It takes the next job that is due." : ""}</p>`
        : html`<${Table}
            caption="Running jobs"
            columns=${columns}
            rows=${jobs.data?.items ?? null}
            id=${(/** @type {any} */ job) => job.id}
            skeleton=${2}
          />`}
  <//>`;
}
