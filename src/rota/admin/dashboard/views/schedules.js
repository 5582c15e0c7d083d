// @ts-check
// Schedules: rules, next and last runs, and the next 24 hours.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Button } from "../parts/base/button.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { ListFilters, isListFiltered, useFiltered } from "../parts/base/list-filters.js";
import { onValue } from "../parts/base/form.js";
import { PageHeader, Panel } from "../parts/base/panel.js";
import { Table, byId } from "../parts/base/table.js";
import { Ahead } from "../parts/schedules/ahead.js";
import { STRIP, columnsOf } from "../parts/schedules/schedule-columns.js";
import { keyOf } from "../parts/schedules/schedule.js";
import { at, go, query, refine, zone } from "../state.js";
import { html, useMemo, useRef } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").ScheduleView} ScheduleView */
/** @typedef {import("../types").ScheduleRun} Run */

const PAGE = 200;
const PAGES = 5;
const LATE_S = 60;

const isLate = (/** @type {ScheduleView} */ one) => (one.late_s ?? 0) > LATE_S && !one.gate;
/** @type {import("../parts/base/list-filters.js").Kinds<ScheduleView>} */
const KINDS = {
  on: ["Enabled", (one) => one.enabled && !one.gate],
  off: ["Disabled", (one) => !one.enabled],
  paused: ["Paused", (one) => Boolean(one.gate)],
  late: ["Late", isLate],
};

export default function Schedules() {
  const [tenant, task, source] = ["tenant", "task", "source"].map((key) => query.value.get(key) ?? "");
  const list = useLoad((signal) => loadAll({ tenant, task }, signal), [tenant, task], {
    on: ["schedule", "gate"],
    every: 30,
  });
  const fires = useLoad((signal) => api.get("/schedules/fires", { hours: 24, tenant }, signal), [tenant], {
    on: ["schedule"],
    every: 60,
  });
  const runs = useRuns(list.data?.items ?? null);
  const planned = useMemo(() => fires.data && byKey(fires.data.items, (fire) => Date.parse(fire.at)), [fires.data]);
  const cut = useMemo(() => new Set((fires.data?.cut ?? []).map(keyOf)), [fires.data]);
  const all = list.data?.items ?? null;
  const ofSource = useMemo(() => all && all.filter((one) => !source || one.source === source), [all, source]);
  const shown = useFiltered(ofSource, { kinds: KINDS, name: (one) => `${one.name} ${one.task} ${one.rule_summary}` });
  const reload = () => (list.reload(), fires.reload());
  const more = Boolean(fires.data?.more);
  const columns = useMemo(() => columnsOf(runs, planned, cut, more, reload), [runs, planned, zone.value]);
  return html`
    <${PageHeader}
      title="Schedules"
      acts=${html`
        <a class="button plain" href=${at("/calendars")}>Calendars</a>
        <${Button} kind="main" need="operate" onClick=${() => go("/schedules/new")}>Create schedule<//>
      `}
    >
      <p>${all ? summary(all) : html`<span class="skeleton-line w2"></span>`}</p>
    <//>
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${all?.length !== 0 && html`<${Ahead} planned=${planned} cut=${cut} more=${more} error=${fires.error} />`}
    ${all?.length === 0 && !tenant && !task
      ? html`<${NoSchedule} />`
      : html`
          <${Panel}
            title="All schedules"
            note=${html`<${Filters} all=${all} tenant=${tenant} task=${task} source=${source} />`}
          >
            <${ListFilters} what="schedules" kinds=${KINDS} shown=${shown} of=${all} />
            ${shown?.length === 0
              ? html`<${Empty}
                  title="No matching schedules"
                  acts=${html`<a class="button" href=${at("/schedules")}>Show all schedules</a>`}
                >
                  ${isListFiltered() || tenant || task || source
                    ? "A part of the name, the task or the rule is enough."
                    : ""}
                <//>`
              : html`<${Table}
                  caption="Schedules"
                  class="schedules"
                  columns=${columns}
                  rows=${shown}
                  skeleton=${6}
                  id=${byId}
                  state=${(/** @type {ScheduleView} */ one) => (one.enabled ? "" : "is-off")}
                />`}
            ${list.data?.more && html`<p class="quiet">
              Only the first ${count(all?.length ?? 0)} are shown. Filter by tenant or task to see others.
            </p>`}
          <//>
        `}
  `;
}

/**
 * @param {Record<string, string>} filter
 * @param {AbortSignal} signal
 * @returns {Promise<{items: ScheduleView[], more: boolean}>}
 */
async function loadAll(filter, signal) {
  /** @type {ScheduleView[]} */
  const items = [];
  let cursor = /** @type {string | null} */ (null);
  for (let page = 0; page < PAGES; page++) {
    const found = await api.get("/schedules", { ...filter, limit: PAGE, cursor }, signal);
    items.push(...found.items);
    cursor = found.next ?? null;
    if (!cursor) break;
  }
  return { items, more: cursor !== null };
}

/**
 * @template {{tenant: string, schedule: string}} Item, T
 * @param {Item[]} items
 * @param {(one: Item) => T} value
 * @returns {Map<string, T[]>} by schedule
 */
function byKey(items, value) {
  /** @type {Map<string, T[]>} */
  const found = new Map();
  for (const one of items) {
    const list = found.get(keyOf(one)) ?? [];
    list.push(value(one));
    found.set(keyOf(one), list);
  }
  return found;
}

/**
 * The newest runs of every schedule: those of all schedules at once, then those of schedules that run rarely.
 * @param {ScheduleView[] | null} schedules
 * @returns {Map<string, Run[]> | null}
 */
function useRuns(schedules) {
  const rare = useRef(/** @type {Map<string, {fired: string, runs: Run[]}>} */ (new Map()));
  const load = async (/** @type {AbortSignal} */ signal) => {
    const newest = await api.get("/runs", { limit: PAGE }, signal);
    const found = byKey(newest.items, (run) => run);
    if (!newest.next) return found;
    const short = (schedules ?? []).filter((one) => one.last_fire_at && (found.get(keyOf(one))?.length ?? 0) < STRIP);
    await Promise.all(
      short.map(async (one) => {
        const known = rare.current.get(one.id);
        // No new run since the last load.
        if (known?.fired !== one.last_fire_at)
          rare.current.set(one.id, {
            fired: `${one.last_fire_at}`,
            runs: (await api.get(`/schedules/${one.id}/runs`, { limit: STRIP }, signal)).items,
          });
        found.set(keyOf(one), rare.current.get(one.id)?.runs ?? []);
      }),
    );
    return found;
  };
  return useLoad(load, [], { when: schedules !== null, on: ["schedule"], every: 15 }).data;
}

/** @param {ScheduleView[]} all */
function summary(all) {
  const on = all.filter((one) => one.enabled).length;
  const late = all.filter(isLate);
  const paused = all.filter((one) => one.gate).length;
  const counts = [
    `${count(on)} enabled`,
    ...(on < all.length ? [`${count(all.length - on)} disabled`] : []),
    ...(paused ? [`${count(paused)} paused`] : []),
  ];
  const first = `${counts.join(", ")}.`;
  if (!late.length) return `${first} None late.`;
  return html`
    ${first} <a href=${at("/schedules", { show: "late" })}>
      ${late.length === 1
        ? html`<code>${clean(late[0].name)}</code> is late`
        : `${plural(late.length, "schedule")} are late`}
    </a>.
  `;
}

/** @param {{all: ScheduleView[] | null, tenant: string, task: string, source: string}} props */
function Filters({ all, tenant, task, source }) {
  const known = (/** @type {"tenant" | "task" | "source"} */ key, /** @type {string} */ chosen) =>
    [...new Set([...(all ?? []).map((one) => one[key]), chosen])].filter(Boolean).sort();
  const select = (
    /** @type {string} */ key,
    /** @type {string} */ word,
    /** @type {string} */ chosen,
    /** @type {string[]} */ names,
  ) =>
    (names.length > 1 || chosen) &&
    html`<select
      class="slim"
      aria-label=${word}
      value=${chosen}
      onChange=${onValue((value) => refine({ [key]: value }))}
    >
      <option value="">${word}: all</option>
      ${names.map((name) => html`<option value=${name} selected=${name === chosen}>${line(name, 60)}</option>`)}
    </select>`;
  return html`
    ${select("tenant", "Tenant", tenant, known("tenant", tenant))}
    ${select("task", "Task", task, known("task", task))}
    ${select("source", "Source", source, known("source", source))}
  `;
}

function NoSchedule() {
  return html`<${Empty}
    title="No schedules yet"
    command="rota schedules create --name nightly --task cleanup --cron '0 3 * * *'"
    acts=${html`<${Button} need="operate" onClick=${() => go("/schedules/new")}>Create schedule<//>`}
  >
    A schedule creates jobs by a rule: every night, every 15 minutes, once on Friday. Declare one in code
    with <code>@app.cron</code>, or create one here or with this command:
  <//>`;
}
