// @ts-check
// Jobs: filtered by state and search, live; actions on one or on many.

import { api } from "../api.js";
import { write } from "../exact.js";
import { useLoad } from "../load.js";
import { StateGlyph, tone } from "../parts/base/badge.js";
import { BulkBar, bulkDialog } from "../parts/jobs/bulk.js";
import { Button } from "../parts/base/button.js";
import { copyAs } from "../parts/base/copy.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { enqueueDialog } from "../parts/jobs/enqueue.js";
import { PausedBy, gatesAffecting, useGates } from "../parts/operate/paused-by.js";
import { columnsOf } from "../parts/jobs/job-columns.js";
import { PAGE, usePages } from "../parts/jobs/job-pages.js";
import { PageHeader } from "../parts/base/panel.js";
import { useSelection, useRowKeys } from "../parts/jobs/selection.js";
import { SavedViews } from "../parts/jobs/saved-views.js";
import { SearchTokens, isRepeatable, parameter } from "../parts/jobs/search.js";
import { KEYS } from "../parts/jobs/search-query.js";
import { Table, byId } from "../parts/base/table.js";
import { JOB_STATES } from "../choices.js";
import { JOB_STATE_LABELS, valuesOf } from "../labels.js";
import { at, go, now, query, refine } from "../state.js";
import { html, useMemo } from "../ui.js";
import { compact, count, parseTime, shellQuote } from "../format.js";

/** The filter in the URL, as the API expects it. @param {URLSearchParams} params */
function filterOf(params) {
  /** @type {Record<string, unknown>} */
  const filter = {};
  for (const key of KEYS.map(parameter)) {
    const value = params.get(key);
    if (value)
      filter[key] =
        key === "since" || key === "until"
          ? (parseTime(value, now.peek()) ?? value)
          : key.startsWith("not_") || key === "payload"
            ? value.split(",")
            : value;
  }
  const state = params.get("state");
  return state ? { ...filter, state: state.split(",") } : filter;
}

/** @param {URLSearchParams} params @returns {[string, string][]} */
function chipsOf(params) {
  return KEYS.flatMap((key) => {
    const value = params.get(parameter(key));
    return value
      ? (isRepeatable(key) ? value.split(",") : [value]).map((one) => /** @type {[string, string]} */ ([key, one]))
      : [];
  });
}

/** @param {string} key @param {string} value */
function addChip(key, value) {
  const name = parameter(key);
  const old = query.value.get(name);
  refine({ [name]: isRepeatable(key) && old ? [...new Set([...old.split(","), value])].join(",") : value });
}

/** @param {string} key @param {string} value */
function dropChip(key, value) {
  const name = parameter(key);
  const rest = (query.value.get(name) ?? "").split(",").filter((one) => one !== value);
  refine({ [name]: isRepeatable(key) ? rest.join(",") : null });
}

export default function Jobs() {
  const params = query.value;
  const search = params.toString();
  const filter = useMemo(() => filterOf(params), [search]);
  const list = usePages(filter, search);
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], { on: ["stats"], every: 30 });
  const total = useLoad((signal) => api.get("/jobs/count", filter, signal), [search], {
    on: ["stats"],
    minInterval: 3,
  });
  const selection = useSelection(list.rows, search);
  const gates = useGates();
  const columns = useMemo(() => columnsOf(selection, gates), [selection.full, gates]);
  const place = useRowKeys(list.rows, selection);
  const act = async (/** @type {import("../parts/jobs/bulk.js").Action} */ action) => {
    const target = selection.all ? { filter } : { ids: [...selection.ids] };
    if ((await bulkDialog(action, target)) === null) return;
    selection.clear();
    await list.reload();
  };
  const rows = list.rows;
  return html`
    <${PageHeader}
      title="Jobs"
      acts=${html`
        <${Button} kind="plain" glyph="copy" onClick=${() => void copyAs(copyOf(filter))}>Copy as<//>
        <${Button} need="operate" onClick=${() => void enqueueDialog().then((job) => job && go(`/jobs/${job.id}`))}>
          Enqueue job
        <//>
      `}
    >
      <p>
        ${total.data
          ? html`
              ${total.data.exact ? "" : "At least "}
              ${count(total.data.count)} ${total.data.count === 1 ? "job" : "jobs"}, newest first.
            `
          : html`<span class="skeleton-line w2"></span>`}
      </p>
    <//>
    <${SearchTokens} chips=${chipsOf(params)} onAdd=${addChip} onRemove=${dropChip} />
    <${PausedBy} gates=${gatesAffecting(gates, filter)} />
    <${SavedViews} search=${search} />
    <${Tabs} stats=${stats.data} params=${params} />
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${rows?.length === 0 && !list.error
      ? html`<${NoJobs} search=${search} />`
      : (rows !== null || !list.error) &&
        html`<${Table}
          caption="Jobs"
          class="jobs"
          columns=${columns}
          rows=${rows}
          skeleton=${8}
          id=${byId}
          state=${(/** @type {import("../types").JobView} */ job) =>
            `${selection.has(job.id) ? "is-selected" : ""} ${place === job.id ? "is-at" : ""}`}
        />`}
    ${rows !== null && rows.length > 0 && html`<div class="more-rows">
      ${list.next ? html`<${Button} onClick=${list.more}>Show ${PAGE} more<//>` : "End of list"}
      <span>${count(rows.length)} shown</span>
    </div>`}
    <${BulkBar}
      n=${selection.ids.size}
      total=${total.data?.count ?? null}
      exact=${total.data?.exact ?? true}
      all=${selection.all}
      onAll=${selection.selectAll}
      onClear=${selection.clear}
      onAct=${act}
      states=${selection.states}
    />
  `;
}

/** @param {{stats: import("../types").Stats | null, params: URLSearchParams}} props */
function Tabs({ stats, params }) {
  const current = params.get("state") ?? "";
  const others = Object.fromEntries([...params].filter(([key]) => key !== "state"));
  const isFiltered = Object.keys(others).length > 0;
  const tab = (/** @type {import("../choices.js").JobState | ""} */ state) => {
    const n = stats ? (state ? stats[state] : JOB_STATES.reduce((sum, one) => sum + stats[one], 0)) : 0;
    const rough = stats && (state ? stats.estimated.includes(state) : stats.estimated.length);
    return html`<a
      href=${at("/jobs", { ...others, state })}
      class=${tone(state)}
      aria-current=${current === state ? "page" : undefined}
    >
      ${state && html`<${StateGlyph} state=${state} />`}
      ${state ? JOB_STATE_LABELS[state] : "All"}
      <span class="n" title=${isFiltered ? "total, without the search" : ""}>
        ${stats ? `${rough ? "≈ " : ""}${compact(n)}` : html`<span class="skeleton-line tab-skeleton"></span>`}
      </span>
    </a>`;
  };
  return html`<nav class="tabs" aria-label="States">
    ${[/** @type {const} */ (""), ...valuesOf(JOB_STATE_LABELS)].map(tab)}
  </nav>`;
}

/** @param {{search: string}} props */
function NoJobs({ search }) {
  if (search)
    return html`<${Empty}
      title="No matching jobs"
      acts=${html`<a class="button" href=${at("/jobs")}>Show all jobs</a>`}
    >
      Names must match exactly, errors in part. Old finished jobs are deleted by retention.
    <//>`;
  return html`<${Empty} title="No jobs yet" command="rota jobs enqueue demo.greet --payload '{"name": "Ada"}'">
    A job is one call of a task. Your program, a schedule or this command creates it:
  <//>`;
}

/** The same query as a command, a request and a program. @param {Record<string, unknown>} filter */
function copyOf(filter) {
  const flags = Object.entries(filter).flatMap(([key, value]) =>
    [value].flat().map((one) => ` --${key.replace("_", "-")} ${shellQuote(one)}`),
  );
  const search = new URLSearchParams(Object.entries(filter).map(([key, value]) => [key, `${value}`]));
  return {
    cli: `rota jobs list${flags.join("")}`,
    method: "GET",
    path: `/jobs${`${search}` && `?${search}`}`,
    python: pythonOf(filter),
  };
}

const SHORT = ["state", "task", "queue", "tenant", "key", "concurrency_key", "tag", "parent"]; // what app.jobs takes

/** With app.jobs where it has all filters, else with the admin actions. @param {Record<string, unknown>} filter */
function pythonOf(filter) {
  const isShort = Object.keys(filter).every((key) => SHORT.includes(key)) && [filter.state ?? []].flat().length < 2;
  const given = Object.entries(filter)
    .map(([key, value]) => `${key}=${isShort ? write(`${value}`) : pythonValue(key, value)}`)
    .join(", ");
  if (isShort) return `from rota import Rota\n\napp = Rota()\npage = await app.jobs(${given})`;
  return [
    "from datetime import datetime",
    "",
    "from rota import Rota, State",
    "from rota.operate.requests import JobsRequest",
    "",
    "app = Rota()",
    `page = await app.operations().jobs.list(JobsRequest(${given}))`,
  ].join("\n");
}

/** @param {string} key @param {unknown} value @returns {string} */
function pythonValue(key, value) {
  if (Array.isArray(value)) return `(${value.map((one) => `${pythonValue(key, one)},`).join(" ")})`;
  if (key === "state") return `State(${write(value)})`;
  return key === "since" || key === "until" ? `datetime.fromisoformat(${write(value)})` : `${write(value)}`;
}
