// @ts-check
// Schedules: rules, next and last runs, and the next 24 hours.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { StateGlyph } from "../parts/base/badge.js";
import { Button, Switch } from "../parts/base/button.js";
import { Skeleton, Empty, ErrorNotice } from "../parts/base/empty.js";
import { FireMap, HOURS, FireTimeline, TimelineHours } from "../parts/schedules/fire-timeline.js";
import { ListFilters, isListFiltered, useFiltered } from "../parts/base/list-filters.js";
import { onValue } from "../parts/base/form.js";
import { PageHeader, Panel } from "../parts/base/panel.js";
import { NextFire, keyOf, pageOf, trigger, setEnabled } from "../parts/schedules/schedule.js";
import { Strip } from "../parts/charts/spark.js";
import { Table, byId } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { SOURCE_LABELS, labelOf } from "../labels.js";
import { at, go, may, now, query, refine, zone } from "../state.js";
import { html, useMemo, useRef } from "../ui.js";
import { clean, count, hourMinute, line, plural, duration } from "../format.js";

/** @typedef {import("../types").ScheduleView} ScheduleView */
/** @typedef {import("../types").ScheduleRun} Run */

const PAGE = 200;
const PAGES = 5;
const STRIP = 10; // runs to show
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

/**
 * The next 24 hours of all schedules, except those that run more often than is listed.
 * @param {{planned: Map<string, number[]> | null, cut: Set<string>, more: boolean,
 *   error: import("../load.js").Problem | null}} props more: the list of runs is not complete
 */
function Ahead({ planned, cut, more, error }) {
  const fires = useMemo(
    () =>
      planned &&
      [...planned].flatMap(([key, times]) =>
        cut.has(key) ? [] : times.map((time) => ({ at: time, name: nameIn(key) })),
      ),
    [planned, cut],
  );
  const [often] = cut;
  const note =
    cut.size > 0 &&
    planned &&
    html`<span>
      Not shown: ${cut.size === 1 ? html`<code>${clean(nameIn(often))}</code>` : plural(cut.size, "schedule")} (more
      than ${plural(planned.get(often)?.length ?? 0, "run")}
      ${cut.size > 1 ? " each" : ""})
    </span>`;
  return html`<${Panel} title="Next 24 hours" note=${note}>
    ${error && !planned
      ? html`<${ErrorNotice} error=${error} />`
      : fires
        ? html`
            <${FireMap} fires=${fires} />
            <p class="small soft">
              ${busiestTime(fires, cut.size > 0)}
              ${more && " There are too many runs to show: filter by tenant to see all of its runs."}
            </p>
          `
        : html`<${Skeleton} lines=${2} />`}
  <//>`;
}

/** @param {string} key of a schedule */
const nameIn = (key) => key.slice(key.indexOf("/") + 1);

/**
 * The time with the most runs at once.
 * @param {{at: number, name: string}[]} fires
 * @param {boolean} others whether some schedules are left out
 */
function busiestTime(fires, others) {
  /** @type {Map<number, string[]>} */
  const at = new Map();
  for (const fire of fires) at.set(fire.at, [...(at.get(fire.at) ?? []), fire.name]);
  const [time, names] = [...at].reduce(
    (a, b) => (b[1].length > a[1].length ? b : a),
    [0, /** @type {string[]} */ ([])],
  );
  const when = hourMinute(time, zone.value);
  if (!fires.length) return others ? "No other runs." : "No runs.";
  if (fires.length === 1) return `1 run, at ${when}.`;
  if (fires.length === 2) return names.length === 2 ? `2 runs, both at ${when}.` : "2 runs, one after the other.";
  if (names.length < 3) return `${plural(fires.length, "run")}. No three of them at the same time.`;
  const shown = names.slice(0, 4).map(clean).join(", ") + (names.length > 4 ? " …" : "");
  const most = `${count(names.length)} at once at ${when}: ${shown}.`;
  return `${plural(fires.length, "run")}. ${most} Jitter would spread them.`;
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

/** Whether its next run is within 24 hours. @param {ScheduleView} schedule */
function isSoon({ enabled, next_run_at: next }) {
  return enabled && next !== null && Date.parse(next) < now.peek() + HOURS * 3_600_000;
}

/**
 * @param {Map<string, Run[]> | null} runs
 * @param {Map<string, number[]> | null} planned
 * @param {Set<string>} cut
 * @param {boolean} more there are more runs than listed
 * @param {() => unknown} reload
 * @returns {import("../parts/base/table.js").Column<ScheduleView>[]}
 */
function columnsOf(runs, planned, cut, more, reload) {
  return [
    {
      title: "On",
      kind: "pick",
      width: "3.75rem",
      cell: (one) =>
        html`<${Switch}
          on=${one.enabled}
          need="operate"
          label=${`${clean(one.name)} enabled`}
          onChange=${(/** @type {boolean} */ on) => setEnabled(one, on, reload)}
        />`,
    },
    {
      title: "Schedule",
      kind: "head",
      cell: (one) =>
        html`
          <a class="name" href=${at(pageOf(one))}>
            ${clean(one.name)}
            ${one.tenant !== "default" && html` <span class="id">${clean(one.tenant)}</span>`}
          </a>
          <span class="sub">
            ${line(one.rule_summary)}
            ${one.cron && html` <code class="faint">${clean(one.cron)}</code>`}
          </span>
          ${!one.enabled && one.reason && html`<span class="sub">disabled: ${line(one.reason)}</span>`}
        `,
    },
    {
      title: html`<${TimelineHours} />`,
      card: "Next 24 hours",
      kind: "full wide-only",
      cell: (one) =>
        planned
          ? html`<${FireTimeline}
              name=${one.name}
              fires=${planned.get(keyOf(one)) ?? []}
              cut=${cut.has(keyOf(one))}
              more=${more && isSoon(one)}
              gate=${one.enabled ? one.gate : null}
            />`
          : html`<span class="skeleton-line"></span>`,
    },
    { title: "Next run", width: "11rem", cell: (one) => html`<${NextFire} schedule=${one} />` },
    {
      title: `Last ${STRIP} runs`,
      width: "11.5rem",
      cell: (one) =>
        runs ? html`<${LastRuns} runs=${runs.get(keyOf(one)) ?? []} />` : html`<span class="skeleton-line"></span>`,
    },
    {
      title: "Source",
      width: "5rem",
      kind: "wide-only",
      cell: (one) =>
        html`<span title=${`${labelOf(SOURCE_LABELS, one.source)}${one.owner ? ` of ${clean(one.owner)}` : ""}`}>
          ${clean(one.source)}
        </span>`,
    },
    ...(may("operate")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "8rem",
            cell: (/** @type {ScheduleView} */ one) =>
              html`<div class="acts">
                <${Button} tiny label=${`Trigger ${clean(one.name)}`} onClick=${() => trigger(one, reload)}>Trigger<//>
                <a class="button plain tiny" aria-label=${`Edit ${clean(one.name)}`} href=${at(pageOf(one, "/edit"))}>
                  Edit
                </a>
              </div>`,
          },
        ]
      : []),
  ];
}

/** @param {{runs: Run[]}} props newest first */
function LastRuns({ runs }) {
  const [last] = runs;
  if (!last) return html`<span class="faint">no runs yet</span>`;
  const shown = runs.slice(0, STRIP).reverse();
  const failed = shown.filter((run) => run.success === false).length;
  const caughtUp = shown.filter((run) => run.triggered_by === "catchup").length;
  const label = `Last ${plural(shown.length, "run")}, ${failed} failed${caughtUp ? `, ${caughtUp} caught up` : ""}`;
  return html`
    <${Strip} results=${shown.map(resultOf)} label=${label} />
    <span class="sub">
      ${last.success === null
        ? html`<${StateGlyph} state=${last.state} /> ${last.state}`
        : html`
            <${When} at=${last.finished_at} />
            ${last.duration_ms !== null && `, ${duration(last.duration_ms / 1000)}`}
          `}
    </span>
  `;
}

/**
 * One run as a mark: a failed one is taller, a catch-up run is hollow in the colour for late runs.
 * @param {Run} run
 */
function resultOf(run) {
  const caughtUp = run.triggered_by === "catchup";
  const time = hourMinute(run.finished_at ?? run.created_at, zone.value);
  const state =
    run.success === false
      ? run.state === "cancelled"
        ? "cancelled"
        : "failed"
      : run.success
        ? caughtUp
          ? "missed"
          : "succeeded"
        : run.state === "running"
          ? "running"
          : "none";
  const how =
    run.success === null ? run.state : run.success ? "succeeded" : run.state === "cancelled" ? "cancelled" : "failed";
  return {
    state,
    label: `${time} ${how}${caughtUp ? ", caught up" : ""}${run.message ? `: ${line(run.message, 120)}` : ""}`,
  };
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
