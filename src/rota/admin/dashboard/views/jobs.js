// @ts-check
// Jobs: found by state and by tokens, live, one by one or many at once.

import { api } from "../api.js";
import { write } from "../exact.js";
import { useLoad } from "../load.js";
import { Sign, tone } from "../parts/badge.js";
import { BulkBar, bulkDialog } from "../parts/bulk.js";
import { Button } from "../parts/button.js";
import { copyAs } from "../parts/copy.js";
import { Empty, Trouble } from "../parts/empty.js";
import { enqueueDialog } from "../parts/enqueue.js";
import { HeldBy, gatesOver, useGates } from "../parts/held.js";
import { columnsOf } from "../parts/job-columns.js";
import { PAGE, usePages } from "../parts/job-pages.js";
import { Lede } from "../parts/panel.js";
import { usePicked, useRowKeys } from "../parts/picking.js";
import { SavedViews } from "../parts/saved.js";
import { SearchTokens, isMany, parameter } from "../parts/search.js";
import { KEYS, STATES } from "../parts/search-words.js";
import { Table } from "../parts/table.js";
import { at, go, now, query, refine } from "../state.js";
import { html, useMemo } from "../ui.js";
import { brief, count, instantOf, shell } from "../words.js";

/** The filter that the URL tells, as the API wants it. @param {URLSearchParams} params */
function filterOf(params) {
  /** @type {Record<string, any>} */
  const filter = {};
  for (const key of KEYS.map(parameter)) {
    const value = params.get(key);
    if (value) filter[key] = key === "since" || key === "until" ? (instantOf(value, now.peek()) ?? value) : key.startsWith("not_") || key === "payload" ? value.split(",") : value;
  }
  const state = params.get("state");
  return state ? { ...filter, state: state.split(",") } : filter;
}

/** @param {URLSearchParams} params @returns {[string, string][]} */
function chipsOf(params) {
  return KEYS.flatMap((key) => {
    const value = params.get(parameter(key));
    return value ? (isMany(key) ? value.split(",") : [value]).map((one) => /** @type {[string, string]} */ ([key, one])) : [];
  });
}

/** @param {string} key @param {string} value */
function addChip(key, value) {
  const name = parameter(key);
  const old = query.value.get(name);
  refine({ [name]: isMany(key) && old ? [...new Set([...old.split(","), value])].join(",") : value });
}

/** @param {string} key @param {string} value */
function dropChip(key, value) {
  const name = parameter(key);
  const rest = (query.value.get(name) ?? "").split(",").filter((one) => one !== value);
  refine({ [name]: isMany(key) ? rest.join(",") : null });
}

export default function Jobs() {
  const params = query.value;
  const search = params.toString();
  const filter = useMemo(() => filterOf(params), [search]);
  const list = usePages(filter, search);
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], { on: ["stats"], every: 30 });
  const total = useLoad((signal) => api.get("/jobs/count", filter, signal), [search], { on: ["stats"], soonest: 3 });
  const picked = usePicked(list.rows, search);
  const gates = useGates();
  const columns = useMemo(() => columnsOf(picked, gates), [picked.full, gates]);
  const place = useRowKeys(list.rows, picked);
  const act = async (/** @type {any} */ action) => {
    const target = picked.all ? { filter } : { ids: [...picked.ids] };
    if ((await bulkDialog(action, target)) === null) return;
    picked.clear();
    await list.reload();
  };
  const rows = list.rows;
  return html`
    <${Lede} title="Jobs" acts=${html`<${Button} kind="plain" glyph="copy" onClick=${() => void copyAs(asked(filter))}>Copy as<//><${Button} need="operate" onClick=${() => void enqueueDialog().then((job) => job && go(`/jobs/${job.id}`))}>Enqueue job<//>`}>
      <p>${total.data ? html`${total.data.exact ? "" : "At least "}${count(total.data.count)} ${total.data.count === 1 ? "matches" : "match"}, newest first.` : html`<span class="bone w2"></span>`}</p>
    <//>
    <${SearchTokens} chips=${chipsOf(params)} onAdd=${addChip} onRemove=${dropChip} />
    <${HeldBy} gates=${gatesOver(gates, filter)} />
    <${SavedViews} search=${search} />
    <${Tabs} stats=${stats.data} params=${params} />
    ${list.error && html`<${Trouble} error=${list.error} retry=${list.reload} />`}
    ${rows?.length === 0 && !list.error
      ? html`<${NoJobs} search=${search} />`
      : (rows !== null || !list.error) && html`<${Table} caption="Jobs" class="jobs" columns=${columns} rows=${rows} bones=${8} id=${(/** @type {any} */ job) => job.id} state=${(/** @type {any} */ job) => `${picked.has(job.id) ? "is-picked" : ""} ${place === job.id ? "is-at" : ""}`} />`}
    ${rows !== null && rows.length > 0 && html`<div class="more-rows">${list.next ? html`<${Button} onClick=${list.more}>Show ${PAGE} more<//>` : "That is all."}<span>${count(rows.length)} shown</span></div>`}
    <${BulkBar} n=${picked.ids.size} total=${total.data?.count ?? null} exact=${total.data?.exact ?? true} all=${picked.all} onAll=${picked.takeAll} onClear=${picked.clear} onAct=${act} states=${picked.states} />`;
}

/** @param {{stats: any, params: URLSearchParams}} props */
function Tabs({ stats, params }) {
  const current = params.get("state") ?? "";
  const others = Object.fromEntries([...params].filter(([key]) => key !== "state"));
  const narrowed = Object.keys(others).length > 0;
  const tab = (/** @type {string} */ state) => {
    const n = stats && (state ? stats[state] : STATES.reduce((sum, one) => sum + stats[one], 0));
    const rough = stats && (state ? stats.estimated.includes(state) : stats.estimated.length);
    return html`<a href=${at("/jobs", { ...others, state })} class=${tone(state)} aria-current=${current === state ? "page" : undefined}>${state && html`<${Sign} state=${state} />`}${state ? state[0].toUpperCase() + state.slice(1) : "All"}
      <span class="n" title=${narrowed ? "in all, without the search" : ""}>${stats ? `${rough ? "≈ " : ""}${brief(n)}` : html`<span class="bone tab-bone"></span>`}</span></a>`;
  };
  return html`<nav class="tabs" aria-label="States">${["", ...STATES].map(tab)}</nav>`;
}

/** @param {{search: string}} props */
function NoJobs({ search }) {
  if (search) return html`<${Empty} title="No job matches" acts=${html`<a class="button" href=${at("/jobs")}>Show all jobs</a>`}>Names are matched whole, errors by a part of their text. Jobs that ended long ago are removed by retention.<//>`;
  return html`<${Empty} title="No jobs yet" command="rota jobs enqueue demo.greet --payload '{"name": "Ada"}'">A job is one request to run a task once. Your program makes them, a schedule does, or this line.<//>`;
}

/** The same question elsewhere. @param {Record<string, any>} filter */
function asked(filter) {
  const flags = Object.entries(filter).flatMap(([key, value]) => [value].flat().map((one) => ` --${key.replace("_", "-")} ${shell(one)}`));
  const search = new URLSearchParams(Object.entries(filter).map(([key, value]) => [key, `${value}`]));
  return { cli: `rota jobs list${flags.join("")}`, method: "GET", path: `/jobs${`${search}` && `?${search}`}`, python: inPython(filter) };
}

const SHORT = ["state", "task", "queue", "tenant", "tag", "parent"]; // what app.jobs takes

/** By the short way where that can say it all, else as the desk is asked. @param {Record<string, any>} filter */
function inPython(filter) {
  const isShort = Object.keys(filter).every((key) => SHORT.includes(key)) && (filter.state ?? []).length < 2;
  const given = Object.entries(filter).map(([key, value]) => `${key}=${isShort ? write(`${value}`) : inAsk(key, value)}`).join(", ");
  if (isShort) return `from rota import Rota\n\napp = Rota()\npage = await app.jobs(${given})`;
  return `from datetime import datetime\n\nfrom rota import Rota, State\nfrom rota.operate.asks import JobsAsk\n\napp = Rota()\npage = await app.desk().jobs.list(JobsAsk(${given}))`;
}

/** @param {string} key @param {any} value @returns {string} */
function inAsk(key, value) {
  if (Array.isArray(value)) return `(${value.map((one) => `${inAsk(key, one)},`).join(" ")})`;
  if (key === "state") return `State(${write(value)})`;
  return key === "since" || key === "until" ? `datetime.fromisoformat(${write(value)})` : `${write(value)}`;
}
