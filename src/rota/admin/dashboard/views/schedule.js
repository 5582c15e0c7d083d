// @ts-check
// One schedule: its rule, next runs, history and changes.

import { api } from "../api.js";
import { useEvents } from "../live.js";
import { useLoad } from "../load.js";
import { backfillDialog } from "../parts/schedules/backfill.js";
import { Badge } from "../parts/base/badge.js";
import { Button, Choice } from "../parts/base/button.js";
import { copyAs } from "../parts/base/copy.js";
import { Diff, differences } from "../parts/base/diff.js";
import { Skeleton, Empty, WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { FireTable, isShifted, sentence } from "../parts/schedules/fire-table.js";
import { JsonTree } from "../parts/base/json.js";
import { usePages } from "../parts/base/pages.js";
import { Code, Facts, PageHeader, Note, Panel } from "../parts/base/panel.js";
import { pauseDialog, resumeGate } from "../parts/operate/pause.js";
import { Figures, RunCharts, RunTable, runCount } from "../parts/schedules/runs.js";
import {
  ScheduleState,
  deleteDialog,
  disableDialog,
  keyOf,
  pageOf,
  trigger,
  setEnabled,
} from "../parts/schedules/schedule.js";
import { Table, byId } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { toast } from "../parts/base/toast.js";
import { AUDIT_RESULT_LABELS, CALENDAR_MODE_LABELS, MISSED_LABELS, OVERLAP_LABELS, labelOf } from "../labels.js";
import { at, may, query, refine } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, line, shellQuote, duration } from "../format.js";

/** @typedef {import("../types").ScheduleView} ScheduleView */

const FIRES = 10;
const PAGE = 25;

/** @param {{name: string}} props */
export default function Schedule({ name }) {
  const tenant = query.value.get("tenant");
  const loaded = useLoad(
    (signal) => api.get(`/schedules/${encodeURIComponent(name)}`, { tenant }, signal),
    [name, tenant],
    { on: ["schedule", "gate"], every: 30 },
  );
  const schedule = /** @type {ScheduleView | null} */ (loaded.data);
  const crumb = html`<a href=${at("/schedules")}>Schedules</a> / ${clean(schedule?.name ?? name)}`;
  if (!schedule && loaded.error?.status === 404)
    return html`
      <${PageHeader} title="Schedule not found" crumb=${crumb} />
      <${Empty}
        title="This schedule does not exist"
        command="rota schedules list"
        acts=${html`<a class="button" href=${at("/schedules")}>View schedules</a>`}
      >
        It was deleted or renamed, or you have no access to its tenant.
      <//>
    `;
  if (!schedule)
    return html`
      <${PageHeader} title=${clean(name)} mono crumb=${crumb} />
      ${loaded.error
        ? html`<${ErrorNotice} error=${loaded.error} retry=${loaded.reload} />`
        : html`<${Skeleton} lines=${6} />`}
    `;
  return html`
    <${PageHeader}
      title=${clean(schedule.name)}
      mono
      crumb=${crumb}
      beside=${html`<${ScheduleState} schedule=${schedule} solid />`}
      acts=${html`<${Acts} schedule=${schedule} reload=${loaded.reload} />`}
    >
      <p>${line(schedule.rule_summary, 400)}${schedule.cron && html` <${Code} class="faint">${schedule.cron}<//>`}</p>
      ${schedule.description && html`<p>${line(schedule.description, 2000)}</p>`}
    <//>
    ${loaded.error && html`<${ErrorNotice} error=${loaded.error} retry=${loaded.reload} />`}
    <${WhyNotRunning} schedule=${schedule} />
    <${Summary} schedule=${schedule} />
    <div class="columns"><${Next} schedule=${schedule} /><${Settings} schedule=${schedule} /></div>
    <${History} schedule=${schedule} />
    ${may("audit") && html`<${Versions} schedule=${schedule} />`}
  `;
}

/** @param {{schedule: ScheduleView, reload: () => unknown}} props */
function Acts({ schedule, reload }) {
  const disable = () =>
    disableDialog(schedule).then((done) => {
      if (!done) return;
      toast(html`<code>${clean(schedule.name)}</code> is disabled. Existing jobs continue.`, {
        state: "off",
        undo: () => setEnabled(schedule, true, reload),
      });
      return reload();
    });
  const fill = () => backfillDialog(schedule).then((created) => created !== null && reload());
  const gate = schedule.gate?.scope === "schedule" ? schedule.gate : null;
  const pause = () => pauseDialog("schedule", schedule.name, schedule.tenant).then((created) => created && reload());
  const remove = () => void deleteDialog(schedule);
  return html`
    <${Button} kind="plain" glyph="copy" onClick=${() => void copyAs(triggered(schedule))}>Copy as<//>
    ${may("operate") && html`<a class="button" href=${at(pageOf(schedule, "/edit"))}>Edit</a>`}
    <${Button} need="operate" onClick=${() => void fill()}>Backfill<//>
    ${gate
      ? html`<${Button} need="operate" glyph="running" onClick=${() => resumeGate(gate).then(reload)}>Resume<//>`
      : html`<${Button} need="operate" glyph="paused" onClick=${() => void pause()}>Pause<//>`}
    ${schedule.enabled
      ? html`<${Button} need="operate" onClick=${() => void disable()}>Disable<//>`
      : html`<${Button} need="operate" onClick=${() => setEnabled(schedule, true, reload)}>Enable<//>`}
    <${Button} need="operate" kind="danger" onClick=${remove}>Delete<//>
    <${Button} need="operate" kind="main" onClick=${() => trigger(schedule, reload)}>Trigger<//>
  `;
}

/** The action that programs need most. @param {ScheduleView} schedule */
function triggered(schedule) {
  const other = schedule.tenant === "default" ? "" : schedule.tenant;
  const args = [JSON.stringify(schedule.name), ...(other ? [`tenant=${JSON.stringify(other)}`] : [])];
  return {
    cli: `rota schedules trigger ${shellQuote(schedule.name)}${other && ` --tenant ${shellQuote(other)}`}`,
    method: "POST",
    path: `/schedules/${schedule.id}/trigger`,
    body: {},
    python: `from rota import Rota\n\napp = Rota()\njob = await app.schedules.trigger(${args.join(", ")})`,
  };
}

/** Why it does not run, if it does not. @param {{schedule: ScheduleView}} props */
function WhyNotRunning({ schedule }) {
  const { enabled, reason, gate, late_s: late, next_run_at: next } = schedule;
  if (!enabled)
    return html`<${Note} state="cancelled">
      <p><b>Disabled: it creates no jobs.</b></p>
      <p>
        ${reason ? line(reason, 500) : "No reason given."} ${may("operate")
          ? "Enable it to run again. Trigger works while it is disabled."
          : ""}
      </p>
    <//>`;
  if (gate)
    return html`<${Note} state="attention">
      <p>
        <b>
          It is
          paused${gate.scope === "schedule"
            ? ""
            : `, because ${gate.scope === "all" ? "everything" : `${gate.scope} ${clean(gate.name)}`} is`}.
        </b>
      </p>
      <p>
        By ${clean(gate.actor)} <${When} at=${gate.since_at} />
        ${gate.reason ? `: “${line(gate.reason)}”` : ", no reason given"}. ${gate.until_at
          ? html`Resumes automatically <${When} at=${gate.until_at} />.`
          : html`Until resumed, here or under <a href=${at("/gates")}>Paused</a>.`}
      </p>
    <//>`;
  if ((late ?? 0) > 60)
    return html`<${Note} state="attention">
      <p><b>It is ${duration(late ?? 0)} late.</b></p>
      <p>
        Due <${When} at=${next} />. No scheduler has started it: check that a worker with a scheduler is
        running. <a href=${at("/workers")}>View workers</a>
      </p>
    <//>`;
  return null;
}

/** @param {{schedule: ScheduleView}} props */
function Summary({ schedule }) {
  const summary = useLoad((signal) => api.get(`/schedules/${schedule.id}/summary`, {}, signal), [schedule.id], {
    on: ["schedule", "stats"],
    minInterval: 5,
    every: 15,
  });
  return summary.error && !summary.data
    ? html`<${ErrorNotice} error=${summary.error} retry=${summary.reload} />`
    : html`<${Figures} summary=${summary.data} />`;
}

/** @param {{schedule: ScheduleView}} props */
function History({ schedule }) {
  const failed = query.value.get("failed") === "1";
  const path = /** @type {const} */ (`/schedules/${schedule.id}/runs`);
  const newest = useLoad((signal) => api.get(path, { limit: 200 }, signal), [schedule.id], {
    on: ["schedule", "stats"],
    minInterval: 5,
    every: 15,
  });
  const list = usePages(
    async (cursor, signal) => {
      const page = await api.get(path, { limit: PAGE, failed: failed || null, cursor }, signal);
      return { items: page.items.map((run) => ({ ...run, id: run.job })), next: page.next };
    },
    `${schedule.id} ${failed}`,
    { on: ["schedule", "stats"], minInterval: 3 },
  );
  useEvents(
    ["job"],
    (job) => {
      if (job && job.schedule === schedule.name && job.tenant === schedule.tenant) list.reload();
    },
    [schedule.id, failed],
  );
  const choose = html`<${Choice}
    label="Runs to show"
    value=${failed ? "1" : ""}
    options=${[
      ["", "All runs"],
      ["1", "Failed only"],
    ]}
    onChange=${(/** @type {string} */ one) => refine({ failed: one }, { replace: true })}
  />`;
  const none = list.rows?.length === 0;
  return html`<${Panel}
    title="History"
    note=${html`${choose}<a href=${at("/jobs", { schedule: schedule.name, tenant: schedule.tenant })}>View jobs</a>`}
  >
    <${WhenLoaded} of=${newest} lines=${4}>
      ${(/** @type {import("../types").Page_ScheduleRun} */ page) =>
        page.items.length > 0 && html`<${RunCharts} runs=${page.items} />`}
    <//>
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${none
      ? html`<${Empty}
          title=${failed ? "No failed runs" : "No runs yet"}
          command=${failed ? undefined : `rota schedules trigger ${shellQuote(schedule.name)}`}
        >
          ${failed
            ? "Runs deleted by retention are not counted."
            : "Each run is a job and appears here with its result. To start one now:"}
        <//>`
      : html`<${RunTable} runs=${list.rows} />`}
    ${!none && list.rows && html`<div class="more-rows">
      ${list.next ? html`<${Button} onClick=${list.more}>Show ${PAGE} more<//>` : "End of list"}
      <span>${runCount(list.rows)}</span>
    </div>`}
  <//>`;
}

/** @param {{schedule: ScheduleView}} props */
function Next({ schedule }) {
  const preview = useLoad(
    (signal) => api.get(`/schedules/${schedule.id}/preview`, { n: FIRES }, signal),
    [schedule.id, schedule.version],
    { on: ["schedule"] },
  );
  const fires = preview.data?.fires ?? null;
  const odd = fires?.find(isShifted);
  return html`<${Panel}
    title=${schedule.enabled ? "Next runs" : "Runs if enabled"}
    note=${schedule.jitter > 0 && `each up to ${duration(schedule.jitter)} later (jitter)`}
  >
    ${preview.error && html`<${ErrorNotice} error=${preview.error} retry=${preview.reload} />`}
    ${odd && html`<${Note} state="attention">
      <p><b>A clock change affects an upcoming run.</b></p>
      <p>${sentence(odd.note)}</p>
    <//>`}
    ${fires?.length === 0
      ? html`<p class="quiet">No more runs: its end date has passed.</p>`
      : html`<${FireTable} fires=${fires} timezone=${schedule.timezone} />`}
  <//>`;
}

/** @param {{schedule: ScheduleView}} props */
function Settings({ schedule }) {
  const own = (/** @type {unknown} */ value) =>
    value === null || value === undefined
      ? html`<span class="faint">the task's setting</span>`
      : html`<${Code}>${value}<//>`;
  return html`<${Panel} title="Settings">
    <${Facts}
      items=${[
        ["Task", html`<a href=${at("/jobs", { task: schedule.task })}><${Code}>${schedule.task}<//></a>`],
        ["Tenant", clean(schedule.tenant)],
        ["Time zone", html`<${Code}>${schedule.timezone}<//>`],
        schedule.start_at && ["Start", html`<${When} at=${schedule.start_at} />`],
        schedule.until && ["End", html`<${When} at=${schedule.until} />`],
        ["Queue", own(schedule.queue)],
        ["Priority", own(schedule.priority)],
        ["Attempts", own(schedule.max_attempts)],
        ["Timeout", schedule.timeout === null ? own(null) : duration(schedule.timeout)],
        [
          "If missed",
          html`
            <${Code}>${schedule.missed}<//>: ${labelOf(MISSED_LABELS, schedule.missed)}
            ${schedule.missed === "all" ? ` At most ${schedule.missed_cap}.` : ""}
            ${schedule.missed_window ? ` None older than ${duration(schedule.missed_window)}.` : ""}
          `,
        ],
        [
          "If still running",
          html`
            <${Code}>${schedule.overlap}<//>: ${labelOf(OVERLAP_LABELS, schedule.overlap)}
          `,
        ],
        schedule.calendar && [
          "Calendar",
          html`
            <a href=${at("/calendars")}><${Code}>${schedule.calendar}<//></a>, ${labelOf(
              CALENDAR_MODE_LABELS,
              schedule.calendar_mode,
            ).toLowerCase()}
          `,
        ],
        ["Source", html`${clean(schedule.source)}${schedule.owner ? html`, of <${Code}>${schedule.owner}<//>` : ""}`],
        ["Last run", html`<${When} at=${schedule.last_fire_at} none="never" />`],
        ["Created", html`<${When} at=${schedule.created_at} />`],
        ["Updated", html`<${When} at=${schedule.updated_at} />`],
      ]}
    />
    <h3 class="apart">Payload</h3>
    <${JsonTree} value=${schedule.payload} label="Payload" />
  <//>`;
}

/** Every action on it, with its changes. @param {{schedule: ScheduleView}} props */
function Versions({ schedule }) {
  const object = `schedule:${keyOf(schedule)}`;
  const list = usePages((cursor, signal) => api.get("/audit", { object, limit: 20, cursor }, signal), object, {
    on: ["audit"],
  });
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column<import("../types").AuditView>[]} */ ([
        { title: "Time", width: "10rem", cell: (one) => html`<${When} at=${one.at} />` },
        {
          title: "Action",
          kind: "head",
          width: "14rem",
          cell: (one) =>
            html`
              <span class="name">${clean(one.action.replace(/^schedule\./, ""))}</span>
              <span class="sub">${clean(one.actor)}${one.via ? ` via ${clean(one.via)}` : ""}</span>
            `,
        },
        {
          title: "Result",
          width: "7rem",
          cell: (one) => html`<${Badge} state=${one.result}>${labelOf(AUDIT_RESULT_LABELS, one.result)}<//>`,
        },
        { title: "Changes", kind: "full", cell: (one) => html`<${Changed} entry=${one} />` },
      ]),
    [],
  );
  return html`<${Panel} title="Changes" note=${html`<a href=${at("/audit", { object })}>View in audit log</a>`}>
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${list.rows?.length === 0
      ? html`<p class="quiet">No changes since it was declared.</p>`
      : html`<${Table}
          caption="Changes"
          class="versions"
          columns=${columns}
          rows=${list.rows}
          skeleton=${3}
          id=${byId}
        />`}
    ${list.next && html`<div class="more-rows"><${Button} onClick=${list.more}>Show older<//></div>`}
  <//>`;
}

/** @param {{entry: import("../types").AuditView}} props */
function Changed({ entry }) {
  if (entry.message) return html`<span class="sub bad">${line(entry.message, 400)}</span>`;
  const changes = differences(entry.before, entry.after);
  if (!entry.before && entry.action === "schedule.create") return html`<span class="soft">created</span>`;
  return changes.length ? html`<${Diff} changes=${changes} most=${8} />` : html`<span class="faint">—</span>`;
}
