// @ts-check
// One queue: its pace over the day, who serves it, what waits longest, what failed last.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge, face } from "../parts/badge.js";
import { pageOf, serves, Slots, WorkerBadge } from "../parts/crew.js";
import { Empty, Shown, Trouble } from "../parts/empty.js";
import { Halted, pausedBy, Standing, useHalt, Waited, wouldMeet } from "../parts/flow.js";
import { Facts, Lede, Panel } from "../parts/panel.js";
import { PauseButton } from "../parts/pause.js";
import { Table } from "../parts/table.js";
import { Throughput } from "../parts/throughput.js";
import { When } from "../parts/time.js";
import { at, may, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, line, many, shell, shortId } from "../words.js";

/** @param {{name: string}} props */
export default function Queue({ name }) {
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [name], { on: ["stats", "gate"], every: 10 });
  const halt = useHalt();
  const queue = queues.data?.items.find((/** @type {any} */ one) => one.name === name);
  const acts = queue && html`<a class="button" href=${at("/jobs", { queue: name })}>Show its jobs</a><${PauseButton} tiny=${false} scope="queue" name=${name} gate=${queue.gate} done=${queues.reload} meets=${wouldMeet(queue)} />`;
  return html`
    <${Lede} title=${clean(name)} mono crumb=${html`<a href=${at("/queues")}>Queues</a>`} acts=${acts} beside=${queue && html`<${Standing} gate=${queue.gate ?? halt.gate} workers=${queue.workers} />`}>${queue?.gate && html`<p>${pausedBy(queue.gate)}.</p>`}<//>
    <${Halted} halt=${halt} />
    <${Shown} of=${queues} lines=${6}>${() => (queue ? html`<${Known} queue=${queue} />` : html`<${Empty} title="No job waits here" command=${`rota worker -q ${shell(name)}`} acts=${html`<a class="button" href=${at("/jobs", { queue: name })}>Show jobs that ended</a>`}>No live job is in this queue, none ended lately, and no worker serves it by name.<//>`)}<//>`;
}

/** @param {{queue: any}} props */
function Known({ queue }) {
  const shared = may("read.shared");
  return html`${shared && html`<${Throughput} queue=${queue.name} />`}
    <div class="columns">
      <${Oldest} name=${queue.name} />
      <${Panel} title="Now"><${Facts} items=${[
        ["Due", html`<a href=${at("/jobs", { queue: queue.name, state: "queued" })}>${many(queue.queued, "job")}</a>`],
        ["Later", many(queue.scheduled, "job")],
        ["Running", html`<a href=${at("/jobs", { queue: queue.name, state: "running" })}>${many(queue.running, "job")}</a>`],
        ["Oldest due", html`<${Waited} seconds=${queue.oldest_due_s} />`],
        shared && ["Ended a minute", `${queue.per_minute.toFixed(1)}, mean of ten minutes`],
        shared && ["Failed a minute", `${queue.failed_per_minute.toFixed(1)}, mean of ten minutes`],
      ]} /><//>
    </div>
    ${shared && html`<${Crew} name=${queue.name} />`}`;
}

/** @param {{name: string}} props */
function Oldest({ name }) {
  const jobs = useLoad((signal) => api.get("/jobs", { queue: name, state: "queued,running", order: "oldest", limit: 8 }, signal), [name], { on: ["job"] });
  const columns = useMemo(() => [
    { title: "State", width: "7.25rem", cell: (/** @type {any} */ job) => html`<${Badge} state=${face(job, now.peek())} />` },
    { title: "Job", kind: "head", cell: (/** @type {any} */ job) => html`<a class="name" href=${at(`/jobs/${job.id}`)}>${clean(job.task)} <span class="faint">${shortId(job.id)}</span></a>` },
    { title: "Tenant", width: "7rem", cell: (/** @type {any} */ job) => html`<span class="clip">${clean(job.tenant)}</span>` },
    { title: "Made", width: "8.5rem", cell: (/** @type {any} */ job) => html`<${When} at=${job.created_at} />` },
  ], []);
  return html`<${Panel} title="Live jobs, oldest first" aside=${html`<a href=${at("/jobs", { queue: name, state: "failed" })}>Failed ones</a>`}>
    ${jobs.error && html`<${Trouble} error=${jobs.error} retry=${jobs.reload} />`}
    ${jobs.data?.items.length === 0 ? html`<p class="quiet">None.</p>` : html`<${Table} caption="Live jobs" columns=${columns} rows=${jobs.data?.items ?? null} id=${(/** @type {any} */ job) => job.id} bones=${3} />`}
  <//>`;
}

/** @param {{name: string}} props */
function Crew({ name }) {
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [name], { on: ["worker"], every: 15 });
  const rows = useMemo(() => workers.data?.items.filter((/** @type {any} */ one) => one.state !== "lost" && serves(one, name)) ?? null, [workers.data, name]);
  const columns = useMemo(() => [
    { title: "Worker", kind: "head", cell: (/** @type {any} */ one) => html`<a class="name" href=${pageOf(one)}>${clean(one.id)}</a>` },
    { title: "State", width: "7rem", cell: (/** @type {any} */ one) => html`<${WorkerBadge} worker=${one} />` },
    { title: "Slots busy", width: "9rem", cell: (/** @type {any} */ one) => html`<${Slots} worker=${one} />` },
    { title: "Host", width: "25%", cell: (/** @type {any} */ one) => html`<code class="clip">${line(one.host, 80)}</code>` },
    { title: "Last seen", width: "8.5rem", cell: (/** @type {any} */ one) => html`<${When} at=${one.seen_at} />` },
  ], []);
  return html`<${Panel} title="Workers that serve it" aside=${html`<a href=${at("/workers")}>All workers</a>`}>
    ${workers.error && html`<${Trouble} error=${workers.error} retry=${workers.reload} />`}
    ${rows?.length === 0 ? html`<${Empty} title="No live worker serves it" command=${`rota worker -q ${shell(name)}`}>Its jobs wait until one does.<//>` : html`<${Table} caption="Workers" columns=${columns} rows=${rows} id=${(/** @type {any} */ one) => one.id} bones=${2} />`}
  <//>`;
}
