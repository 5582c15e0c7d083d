// @ts-check
// One queue: its pace over the day, who serves it, what waits longest, what failed last.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge, displayState } from "../parts/base/badge.js";
import { pageOf, serves, Slots, WorkerBadge } from "../parts/operate/worker-summary.js";
import { Empty, WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import {
  AllPausedNotice,
  pauseSummary,
  OpenState,
  useGlobalPause,
  OldestDue,
  pauseImpact,
} from "../parts/operate/throughput-cells.js";
import { Facts, PageHeader, Panel } from "../parts/base/panel.js";
import { PauseButton } from "../parts/operate/pause.js";
import { Table } from "../parts/base/table.js";
import { Throughput } from "../parts/charts/throughput.js";
import { When } from "../parts/base/time.js";
import { at, may, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, line, plural, shellQuote, shortId } from "../format.js";

/** @param {{name: string}} props */
export default function Queue({ name }) {
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [name], { on: ["stats", "gate"], every: 10 });
  const globalPause = useGlobalPause();
  const queue = queues.data?.items.find((/** @type {any} */ one) => one.name === name);
  const acts =
    queue &&
    html`
      <a class="button" href=${at("/jobs", { queue: name })}>Show its jobs</a>
      <${PauseButton}
        tiny=${false}
        scope="queue"
        name=${name}
        gate=${queue.gate}
        done=${queues.reload}
        impact=${pauseImpact(queue)}
      />
    `;
  return html`
    <${PageHeader}
      title=${clean(name)}
      mono
      crumb=${html`<a href=${at("/queues")}>Queues</a>`}
      acts=${acts}
      beside=${queue && html`<${OpenState} gate=${queue.gate ?? globalPause.gate} workers=${queue.workers} />`}
    >
      ${queue?.gate && html`<p>${pauseSummary(queue.gate)}.</p>`}
    <//>
    <${AllPausedNotice} globalPause=${globalPause} />
    <${WhenLoaded} of=${queues} lines=${6}>
      ${() =>
        queue
          ? html`<${Known} queue=${queue} />`
          : html`<${Empty}
              title="No job waits here"
              command=${`rota worker -q ${shellQuote(name)}`}
              acts=${html`<a class="button" href=${at("/jobs", { queue: name })}>Show jobs that ended</a>`}
            >
              No live job is in this queue, none ended lately, and no worker serves it by name.
            <//>`}
    <//>
  `;
}

/** @param {{queue: any}} props */
function Known({ queue }) {
  const shared = may("read.shared");
  return html`
    ${shared && html`<${Throughput} queue=${queue.name} />`}
    <div class="columns">
      <${Oldest} name=${queue.name} />
      <${Panel} title="Now">
        <${Facts}
          items=${[
            [
              "Due",
              html`<a href=${at("/jobs", { queue: queue.name, state: "queued" })}>${plural(queue.queued, "job")}</a>`,
            ],
            ["Later", plural(queue.scheduled, "job")],
            [
              "Running",
              html`<a href=${at("/jobs", { queue: queue.name, state: "running" })}>${plural(queue.running, "job")}</a>`,
            ],
            ["Oldest due", html`<${OldestDue} seconds=${queue.oldest_due_s} />`],
            shared && ["Ended a minute", `${queue.per_minute.toFixed(1)}, mean of ten minutes`],
            shared && ["Failed a minute", `${queue.failed_per_minute.toFixed(1)}, mean of ten minutes`],
          ]}
        />
      <//>
    </div>
    ${shared && html`<${WorkersOn} name=${queue.name} />`}
  `;
}

/** @param {{name: string}} props */
function Oldest({ name }) {
  const jobs = useLoad(
    (signal) => api.get("/jobs", { queue: name, state: "queued,running", order: "oldest", limit: 8 }, signal),
    [name],
    { on: ["job"] },
  );
  const columns = useMemo(
    () => [
      {
        title: "State",
        width: "7.25rem",
        cell: (/** @type {any} */ job) => html`<${Badge} state=${displayState(job, now.peek())} />`,
      },
      {
        title: "Job",
        kind: "head",
        cell: (/** @type {any} */ job) =>
          html`<a class="name" href=${at(`/jobs/${job.id}`)}>
            ${clean(job.task)} <span class="faint">${shortId(job.id)}</span>
          </a>`,
      },
      {
        title: "Tenant",
        width: "7rem",
        cell: (/** @type {any} */ job) => html`<span class="clip">${clean(job.tenant)}</span>`,
      },
      { title: "Made", width: "8.5rem", cell: (/** @type {any} */ job) => html`<${When} at=${job.created_at} />` },
    ],
    [],
  );
  return html`<${Panel}
    title="Live jobs, oldest first"
    note=${html`<a href=${at("/jobs", { queue: name, state: "failed" })}>Failed ones</a>`}
  >
    ${jobs.error && html`<${ErrorNotice} error=${jobs.error} retry=${jobs.reload} />`}
    ${jobs.data?.items.length === 0
      ? html`<p class="quiet">None.</p>`
      : html`<${Table}
          caption="Live jobs"
          columns=${columns}
          rows=${jobs.data?.items ?? null}
          id=${(/** @type {any} */ job) => job.id}
          skeleton=${3}
        />`}
  <//>`;
}

/** @param {{name: string}} props */
function WorkersOn({ name }) {
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [name], { on: ["worker"], every: 15 });
  const rows = useMemo(
    () => workers.data?.items.filter((/** @type {any} */ one) => one.state !== "lost" && serves(one, name)) ?? null,
    [workers.data, name],
  );
  const columns = useMemo(
    () => [
      {
        title: "Worker",
        kind: "head",
        cell: (/** @type {any} */ one) => html`<a class="name" href=${pageOf(one)}>${clean(one.id)}</a>`,
      },
      { title: "State", width: "7rem", cell: (/** @type {any} */ one) => html`<${WorkerBadge} worker=${one} />` },
      { title: "Slots busy", width: "9rem", cell: (/** @type {any} */ one) => html`<${Slots} worker=${one} />` },
      {
        title: "Host",
        width: "25%",
        cell: (/** @type {any} */ one) => html`<code class="clip">${line(one.host, 80)}</code>`,
      },
      { title: "Last seen", width: "8.5rem", cell: (/** @type {any} */ one) => html`<${When} at=${one.seen_at} />` },
    ],
    [],
  );
  return html`<${Panel} title="Workers that serve it" note=${html`<a href=${at("/workers")}>All workers</a>`}>
    ${workers.error && html`<${ErrorNotice} error=${workers.error} retry=${workers.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty} title="No live worker serves it" command=${`rota worker -q ${shellQuote(name)}`}>
          Its jobs wait until one does.
        <//>`
      : html`<${Table}
          caption="Workers"
          columns=${columns}
          rows=${rows}
          id=${(/** @type {any} */ one) => one.id}
          skeleton=${2}
        />`}
  <//>`;
}
