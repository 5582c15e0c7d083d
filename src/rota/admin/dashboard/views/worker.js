// @ts-check
// One worker: its running jobs, slots, queues and tasks.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge } from "../parts/base/badge.js";
import { queuesOf, Slots, WorkerBadge } from "../parts/operate/worker-summary.js";
import { Empty, WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { Code, Facts, PageHeader, Note, Panel } from "../parts/base/panel.js";
import { Table, byId } from "../parts/base/table.js";
import { Elapsed, When } from "../parts/base/time.js";
import { at } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, line, plural, shortId } from "../format.js";

/** @param {{id: string}} props */
export default function Worker({ id }) {
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [id], { on: ["worker"], every: 10 });
  const worker = workers.data?.items.find((one) => one.id === id);
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
              acts=${html`<a class="button" href=${at("/jobs", { worker: id })}>View its jobs</a>`}
            >
              It stopped, or was silent for so long that it was removed from this list. Its jobs still show its name.
            <//>`}
    <//>
  `;
}

/** @param {{worker: import("../types").WorkerView}} props */
function Known({ worker }) {
  const lost = worker.state === "lost";
  return html`
    ${lost && html`<${Note} state="failed">
      <p><b>This worker stopped responding.</b> <${When} at=${worker.seen_at} lead="Last seen" />.</p>
      <p>
        Other workers rescue its jobs automatically. If its process is still running, check its log: it may not reach
        the store.
      </p>
    <//>`}
    <div class="columns">
      <${Running} worker=${worker} />
      <${Panel} title="Details">
        <${Facts}
          items=${[
            ["Slots", html`<${Slots} worker=${worker} />`],
            ["Queues", queuesOf(worker)],
            ["Finished", plural(worker.finished, "job")],
            ["Started", html`<${When} at=${worker.started_at} />`],
            ["Last seen", html`<${When} at=${worker.seen_at} />`],
            ["Host", html`<${Code}>${worker.host}<//>`],
            ["Process", html`<${Code}>${worker.pid}<//>`],
            worker.name && ["Name", clean(worker.name)],
            ["Version", worker.version && html`<${Code}>${worker.version}<//>`],
          ]}
        />
      <//>
    </div>
    ${worker.services.length > 0 && html`<${Services} worker=${worker} />`}
    <${Panel} title="Tasks" note=${count(worker.tasks.length)}>
      ${worker.tasks.length
        ? html`<ul class="names">
            ${worker.tasks.map(
              (task) => html`<li><a href=${at("/jobs", { task, worker: worker.id })}><${Code}>${task}<//></a></li>`,
            )}
          </ul>`
        : html`<p class="quiet">None: its program declares no tasks.</p>`}
    <//>
  `;
}

/** When each background service last succeeded. @param {{worker: import("../types").WorkerView}} props */
function Services({ worker }) {
  const troubled = worker.services.filter((service) => service.state !== "ok").length;
  return html`<${Panel}
    title="Services"
    note=${troubled ? `${troubled} ${troubled === 1 ? "needs" : "need"} attention` : "all succeeded recently"}
  >
    <${Facts}
      items=${worker.services.map((service) => [
        clean(service.name),
        html`
          ${service.state !== "ok" && html`<${Badge} state=${service.state}>${line(service.state, 20)}<//>${" "}`}
          ${service.succeeded_at
            ? html`<${When} at=${service.succeeded_at} lead="succeeded" />`
            : html`<span class="faint">not yet</span>`}
        `,
      ])}
    />
  <//>`;
}

/** @param {{worker: import("../types").WorkerView}} props */
function Running({ worker }) {
  const jobs = useLoad(
    (signal) => api.get("/jobs", { worker: worker.id, state: "running", limit: 50 }, signal),
    [worker.id],
    { on: ["job"] },
  );
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column<import("../types").JobView>[]} */ ([
        {
          title: "Job",
          kind: "head",
          cell: (job) =>
            html`<a class="name" href=${at(`/jobs/${job.id}`)}>
              ${clean(job.task)} <span class="faint">${shortId(job.id)}</span>
            </a>`,
        },
        {
          title: "Queue",
          width: "7rem",
          cell: (job) => html`<code class="clip">${clean(job.queue)}</code>`,
        },
        {
          title: "Tenant",
          width: "7rem",
          cell: (job) => html`<span class="clip">${clean(job.tenant)}</span>`,
        },
        { title: "Started", width: "8.5rem", cell: (job) => html`<${When} at=${job.started_at} />` },
        {
          title: "Duration",
          kind: "num",
          width: "6rem",
          cell: (job) => html`<${Elapsed} from=${job.started_at} />`,
        },
      ]),
    [],
  );
  return html`<${Panel} title="Running" note=${html`<a href=${at("/jobs", { worker: worker.id })}>View its jobs</a>`}>
    ${jobs.error
      ? html`<${ErrorNotice} error=${jobs.error} retry=${jobs.reload} />`
      : jobs.data?.items.length === 0
        ? html`<p class="quiet">Nothing. ${worker.state === "running" ? "It claims the next due job." : ""}</p>`
        : html`<${Table}
            caption="Running jobs"
            columns=${columns}
            rows=${jobs.data?.items ?? null}
            id=${byId}
            skeleton=${2}
          />`}
  <//>`;
}
