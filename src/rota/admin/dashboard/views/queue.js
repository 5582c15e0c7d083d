// @ts-check
// One queue: throughput, workers, the oldest live jobs and the current counts.

import { api } from "../api.js";
import { useLoad } from "../load.js";
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
import { LiveJobs } from "../parts/jobs/live-jobs.js";
import { Facts, PageHeader, Panel } from "../parts/base/panel.js";
import { PauseButton } from "../parts/operate/pause.js";
import { LimitUse, limitAt, useLimit } from "../parts/operate/limit-cells.js";
import { Table, byId } from "../parts/base/table.js";
import { Throughput } from "../parts/charts/throughput.js";
import { When } from "../parts/base/time.js";
import { at, may } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, line, plural, shellQuote } from "../format.js";

/** @param {{name: string}} props */
export default function Queue({ name }) {
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [name], { on: ["stats", "gate"], every: 10 });
  const globalPause = useGlobalPause();
  const queue = queues.data?.items.find((one) => one.name === name);
  const acts =
    queue &&
    html`
      <a class="button" href=${at("/jobs", { queue: name })}>View jobs</a>
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
              title="No jobs in this queue"
              command=${`rota worker -q ${shellQuote(name)}`}
              acts=${html`<a class="button" href=${at("/jobs", { queue: name })}>View finished jobs</a>`}
            >
              It has no live jobs, no recent activity and no dedicated worker.
            <//>`}
    <//>
  `;
}

/** @param {{queue: import("../types").QueueView}} props */
function Known({ queue }) {
  const shared = may("read.shared");
  const limit = useLimit(`queue:${queue.name}`);
  return html`
    ${shared && html`<${Throughput} queue=${queue.name} />`}
    <div class="columns">
      <${LiveJobs} where=${{ queue: queue.name }} />
      <${Panel} title="Now">
        <${Facts}
          items=${[
            [
              "Due",
              html`<a href=${at("/jobs", { queue: queue.name, state: "queued" })}>${plural(queue.due, "job")}</a>`,
            ],
            ["Due later", plural(queue.due_later, "job")],
            [
              "Running",
              html`<a href=${at("/jobs", { queue: queue.name, state: "running" })}>${plural(queue.running, "job")}</a>`,
            ],
            limit && [
              "Limit",
              html`
                <${LimitUse} held=${limit} /> <a href=${limitAt(limit.name)}>
                  ${may("operate.shared") ? "Change limit" : "View limit"}
                </a>
              `,
            ],
            ["Oldest due", html`<${OldestDue} seconds=${queue.oldest_due_s} />`],
            shared && ["Finished/min", `${queue.per_minute.toFixed(1)} (10-minute average)`],
            shared && ["Failed/min", `${queue.failed_per_minute.toFixed(1)} (10-minute average)`],
          ]}
        />
      <//>
    </div>
    ${shared && html`<${WorkersOn} name=${queue.name} />`}
  `;
}

/** @param {{name: string}} props */
function WorkersOn({ name }) {
  const workers = useLoad((signal) => api.get("/workers", {}, signal), [name], { on: ["worker"], every: 15 });
  const rows = useMemo(
    () => workers.data?.items.filter((one) => one.state !== "lost" && serves(one, name)) ?? null,
    [workers.data, name],
  );
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column<import("../types").WorkerView>[]} */ ([
        {
          title: "Worker",
          kind: "head",
          cell: (one) => html`<a class="name" href=${pageOf(one)}>${clean(one.id)}</a>`,
        },
        { title: "State", width: "7rem", cell: (one) => html`<${WorkerBadge} worker=${one} />` },
        { title: "Slots busy", width: "9rem", cell: (one) => html`<${Slots} worker=${one} />` },
        {
          title: "Host",
          width: "25%",
          cell: (one) => html`<code class="clip">${line(one.host, 80)}</code>`,
        },
        { title: "Last seen", width: "8.5rem", cell: (one) => html`<${When} at=${one.seen_at} />` },
      ]),
    [],
  );
  return html`<${Panel} title="Workers on this queue" note=${html`<a href=${at("/workers")}>View workers</a>`}>
    ${workers.error && html`<${ErrorNotice} error=${workers.error} retry=${workers.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty} title="No running worker for this queue" command=${`rota worker -q ${shellQuote(name)}`}>
          Its jobs start when a worker is running.
        <//>`
      : html`<${Table} caption="Workers" columns=${columns} rows=${rows} id=${byId} skeleton=${2} />`}
  <//>`;
}
