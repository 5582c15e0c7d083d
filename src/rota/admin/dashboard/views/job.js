// @ts-check
// One job: its state, why it is not running, its attempts, and every action on it.

import { api } from "../api.js";
import { useEvents } from "../live.js";
import { useEvery, useLoad } from "../load.js";
import { Attempts } from "../parts/jobs/attempts.js";
import { Badge, displayState } from "../parts/base/badge.js";
import { Copy, copyAs } from "../parts/base/copy.js";
import { Skeleton, WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { Button } from "../parts/base/button.js";
import { History } from "../parts/jobs/history.js";
import { progressOf } from "../parts/jobs/job-columns.js";
import { JobActions } from "../parts/jobs/job-actions.js";
import { CopyJson, JsonTree } from "../parts/base/json.js";
import { Code, Facts, PageHeader, Panel } from "../parts/base/panel.js";
import { isWhole } from "../parts/jobs/payload.js";
import { pageOf } from "../parts/schedules/schedule.js";
import { Pips } from "../parts/charts/spark.js";
import { Table, byId } from "../parts/base/table.js";
import { Elapsed, When } from "../parts/base/time.js";
import { Why } from "../parts/jobs/why.js";
import { FINAL_STATES } from "../choices.js";
import { at, may, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { write } from "../exact.js";
import { clean, line, plural, shellQuote, shortId, duration } from "../format.js";

/** @typedef {import("../types").JobView} JobView */

const FOREVER_S = 100 * 365 * 86400; // what "forever" is stored as

/** States that are shown in more detail. @type {Record<string, string>} */
const WORDS = { scheduled: "queued, due later", retrying: "queued, to retry", stopping: "running, asked to stop" };

/** @param {{id: string}} props */
export default function Job({ id }) {
  const loaded = useLoad((signal) => api.get(`/jobs/${encodeURIComponent(id)}`, {}, signal), [id]);
  const job = loaded.data;
  const isLive = job !== null && !FINAL_STATES.some((state) => state === job.state);
  const every = job?.state === "running" ? 2 : isLive ? 5 : 30;
  const attempts = useLoad((signal) => api.get(`/jobs/${encodeURIComponent(id)}/attempts`, {}, signal), [id]);
  const why = useLoad((signal) => api.get(`/jobs/${encodeURIComponent(id)}/why`, {}, signal), [id], {
    when: isLive,
    on: ["gate", "worker"],
    every: 10,
  });
  const audit = useLoad((signal) => api.get("/audit", { object: `job:${id}`, limit: 50 }, signal), [id], {
    when: may("audit"),
  });
  const reload = () =>
    Promise.all([
      loaded.reload(),
      attempts.reload(),
      ...(isLive ? [why.reload()] : []),
      ...(may("audit") ? [audit.reload()] : []),
    ]);
  useEvents(["job", "audit"], (event) => (!event || event.id === id || event.object === `job:${id}`) && void reload(), [
    id,
    isLive,
  ]);
  useEvery(every, reload, [id, isLive]); // progress has no event
  if (!job)
    return loaded.error
      ? html`
          <${PageHeader} title="Job" crumb=${html`<a href=${at("/jobs")}>Jobs</a>`} />
          <${ErrorNotice} error=${loaded.error} retry=${loaded.reload} />
        `
      : html`<${PageHeader} title="Job" /><${Skeleton} lines=${8} />`;
  const because = isLive && isAbout(why.data, job) ? why.data : null;
  const story = html`
    ${because && !because.runs && html`<${Why} why=${because} job=${job} done=${reload} />`}
    <${WhenLoaded} of=${attempts}>
      ${(/** @type {import("../types").Page_AttemptView} */ page) =>
        html`<${Attempts} job=${job} attempts=${page.items} why=${because} />`}
    <//>
  `;
  const payload = html`<${Panel} title="Payload" note=${html`<${CopyJson} value=${job.payload} />`}>
    <${JsonTree} value=${job.payload} label="Payload" />
  <//>`;
  const progress = progressOf(job);
  const several = (attempts.data?.items.length ?? 0) > 1; // two attempts side by side need the whole width
  return html`
    <${Head} job=${job} reload=${reload} />
    ${job.state === "running" && typeof progress?.percent === "number" && html`<${Progress} progress=${progress} />`}
    ${several && story}
    <div class="columns with-sidebar">
      <div>
        ${several ? payload : story}
        ${job.output !== null && html`<${Panel} title="Output" note=${html`<${CopyJson} value=${job.output} />`}>
          <${JsonTree} value=${job.output} label="Output" />
        <//>`}
        <${Children} id=${id} />
      </div>
      <div>
        <${Panel}
          title="Details"
          note=${html`<${Button} tiny kind="plain" glyph="copy" onClick=${() => void copyAs(shown(job))}>Copy as<//>`}
        >
          <${JobFacts} job=${job} />
        <//>
        ${!several && payload}
        ${may("audit") && html`<${WhenLoaded} of=${audit}>
          ${(/** @type {import("../types").Page_AuditView} */ page) =>
            html`<${History} job=${job} entries=${page.items} />`}
        <//>`}
      </div>
    </div>
  `;
}

/**
 * The two are loaded separately, and the job may have changed in between.
 * @param {import("../types").Why | null} why
 * @param {JobView} job
 */
function isAbout(why, job) {
  return why !== null && why.state === job.state && why.attempt === job.attempt;
}

/** @param {{job: JobView, reload: () => unknown}} props */
function Head({ job, reload }) {
  const looks = displayState(job, now.value);
  const crumb = html`
    <a href=${at("/jobs")}>Jobs</a> / <a href=${at("/jobs", { task: job.task })}>${clean(job.task)}</a> / ${shortId(
      job.id,
    )}
  `;
  const beside = html`
    <${Badge} solid state=${looks}>${WORDS[looks] ?? looks}<//>
    <${Pips} job=${job} />
  `;
  return html`<${PageHeader}
    mono
    title=${clean(job.task)}
    name=${`${job.task} ${shortId(job.id)}`}
    crumb=${crumb}
    beside=${beside}
    acts=${html`<${JobActions} job=${job} done=${reload} />`}
  >
    ${summary(job).map(([name, value]) => html`<span>${name} <b class="mono">${value}</b></span>`)}
    <span>tenant <b>${clean(job.tenant)}</b></span>
    ${job.state === "running"
      ? html`<span><${When} lead="started" at=${job.started_at} /></span>`
      : job.finished_at
        ? html`<span><${When} lead="finished" at=${job.finished_at} /></span>`
        : html`<span><${When} lead="due" at=${job.run_at} /></span>`}
  <//>`;
}

/**
 * The first plain values of the payload: enough to recognise the job.
 * @param {JobView} job
 * @returns {[string, string][]}
 */
function summary(job) {
  if (job.payload === null || typeof job.payload !== "object") return [];
  return Object.entries(job.payload)
    .filter(([, value]) => ["string", "number", "bigint", "boolean"].includes(typeof value))
    .slice(0, 3)
    .map(([name, value]) => [line(name, 24), line(value, 32)]);
}

/** @param {{progress: import("../parts/jobs/job-columns.js").Progress}} props */
function Progress({ progress }) {
  const percent = Math.max(0, Math.min(100, Number(progress.percent ?? 0)));
  return html`<div class="progress">
    <progress max="100" value=${percent} aria-label="Progress"></progress>
    <p><b>${Math.round(percent)} %</b> ${line(progress.message ?? "")}</p>
  </div>`;
}

/** @param {{job: JobView}} props */
function JobFacts({ job }) {
  const link = (/** @type {string} */ key, /** @type {string} */ value) =>
    html`<a href=${at("/jobs", { [key]: value })}><${Code}>${value}<//></a>`;
  return html`<${Facts}
    items=${[
      ["ID", html`<code>${job.id}</code> <${Copy} text=${job.id} label="Copy id" />`],
      ["Task", link("task", job.task)],
      ["Queue", link("queue", job.queue)],
      ["Tenant", html`<a href=${at(`/tenants/${encodeURIComponent(job.tenant)}`)}><${Code}>${job.tenant}<//></a>`],
      ["Priority", job.priority],
      job.key && ["Idempotency key", html`<${Code}>${job.key}<//>`],
      job.concurrency_key && ["Concurrency key", link("concurrency_key", job.concurrency_key)],
      job.units !== 1 && ["Units", plural(job.units, "unit")],
      job.tags.length > 0 && ["Tags", job.tags.map((tag, i) => html`${i > 0 && ", "}${link("tag", tag)}`)],
      [
        "Origin",
        job.schedule
          ? html`
              ${clean(job.origin)},
              schedule <a href=${at(pageOf({ name: job.schedule, tenant: job.tenant }))}>
                <${Code}>${job.schedule}<//>
              </a>
            `
          : clean(job.origin),
      ],
      job.scheduled_for && ["Scheduled for", html`<${When} at=${job.scheduled_for} />`],
      job.parent && [
        "Parent",
        html`<a href=${at(`/jobs/${encodeURIComponent(job.parent)}`)}><code>${clean(job.parent)}</code></a>`,
      ],
      ["Created", html`<${When} at=${job.created_at} />`],
      ["Due", html`<${When} at=${job.run_at} />`],
      job.state === "queued" && job.expires_at && ["Expires", html`<${When} at=${job.expires_at} />`],
      job.started_at && ["Started", html`<${When} at=${job.started_at} />`],
      job.finished_at && ["Finished", html`<${When} at=${job.finished_at} />`],
      job.started_at &&
        (job.finished_at || job.state === "running") && [
          "Duration",
          html`<${Elapsed} from=${job.started_at} to=${job.finished_at} />`,
        ],
      job.worker && ["Worker", html`<${Code}>${job.worker}<//>`],
      job.state === "running" && job.lease_until && ["Lease until", html`<${When} at=${job.lease_until} />`],
      job.timeout !== null && ["Timeout", duration(job.timeout)],
      job.crashes > 0 && ["Crashes", crashes(job)],
      job.snoozes > 0 && ["Snoozed", plural(job.snoozes, "time")],
      job.price !== null && ["Price", `${job.price.toFixed(2)} cents`],
      job.cost_cents > 0 && ["Cost", `${job.cost_cents.toFixed(2)} cents`],
      job.auto_remove && ["When finished", "deleted automatically"],
      job.keep !== null && ["Kept for", job.keep >= FOREVER_S ? "ever" : duration(job.keep)],
    ]}
  />`;
}

/** How often its worker was lost. @param {import("../types.js").JobView} job */
function crashes(job) {
  const inARow = job.crashes > 1 && job.state !== "succeeded" ? " in a row" : "";
  return `${job.crashes}${inARow}: its worker${job.crashes > 1 ? "s" : ""} stopped responding`;
}

/** Jobs that this one created. @param {{id: string}} props */
function Children({ id }) {
  const children = useLoad((signal) => api.get("/jobs", { parent: id, limit: 20 }, signal), [id], { on: ["job"] });
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column<JobView>[]} */ ([
        {
          title: "State",
          width: "8rem",
          cell: (job) => html`<${Badge} state=${displayState(job, now.peek())} />`,
        },
        {
          title: "Task",
          kind: "head",
          cell: (job) =>
            html`
              <a class="name" href=${at(`/jobs/${job.id}`)}>
                ${clean(job.task)} <span class="id">${shortId(job.id)}</span>
              </a>
              <span class="sub mono">${line(write(job.payload), 120)}</span>
            `,
        },
        {
          title: "Time",
          width: "9.5rem",
          cell: (job) => html`<${When} at=${job.finished_at ?? job.started_at ?? job.run_at} />`,
        },
      ]),
    [],
  );
  if (!children.data?.items.length) return null;
  return html`<${Panel} title="Children" note=${html`<a href=${at("/jobs", { parent: id })}>View all</a>`}>
    <${Table} caption="Children" columns=${columns} rows=${children.data.items} id=${byId} />
  <//>`;
}

const NOT_WHOLE = "# The command to enqueue a copy is not shown: the payload contains hidden secrets.";

/** Show it, and enqueue a copy of it, unless its payload contains masks. @param {JobView} job */
function shown(job) {
  const payload = job.payload ?? {};
  const task = JSON.stringify(job.task);
  const again = isWhole(payload)
    ? {
        cli: [
          `rota jobs enqueue ${shellQuote(job.task)}`,
          `--payload ${shellQuote(write(payload))}`,
          `--queue ${shellQuote(job.queue)}`,
        ].join(" "),
        python: `again = await app.enqueue(${task}, ${pythonOf(payload)}, queue=${JSON.stringify(job.queue)})`,
      }
    : { cli: NOT_WHOLE, python: NOT_WHOLE };
  return {
    cli: `rota jobs show ${job.id}\n${again.cli}`,
    method: "GET",
    path: `/jobs/${job.id}`,
    python: `from rota import Rota\n\napp = Rota()\njob = await app.job("${job.id}")\n${again.python}`,
  };
}

/** A value as a Python literal. @param {unknown} value @returns {string} */
function pythonOf(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([key, one]) => `${JSON.stringify(key)}: ${pythonOf(one)}`)
      .join(", ")}}`;
  return String(value);
}
