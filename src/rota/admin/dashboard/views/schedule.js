// @ts-check
// One schedule: its rule, what comes next, how it went, who changed it.

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
  pageOf,
  trigger,
  setEnabled,
} from "../parts/schedules/schedule.js";
import { Table } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { toast } from "../parts/base/toast.js";
import { at, may, query, refine } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, line, shellQuote, duration } from "../format.js";

/** @typedef {import("../types").ScheduleView} ScheduleView */

const FIRES = 10;
const PAGE = 25;
const MISSED = {
  skip: "missed fires are left out",
  latest: "of missed fires the latest is made up",
  all: "all missed fires are made up",
};
const OVERLAP = {
  allow: "runs may overlap",
  skip: "no fire while a run goes on",
  queue: "a fire waits for the run before it",
  cancel_previous: "a fire stops the run before it",
};

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
      <${PageHeader} title="No such schedule" crumb=${crumb} />
      <${Empty}
        title="It is not here"
        command="rota schedules list"
        acts=${html`<a class="button" href=${at("/schedules")}>All schedules</a>`}
      >
        It was deleted or renamed, or it belongs to a tenant that is not yours.
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
      <p>${line(schedule.words, 400)}${schedule.cron && html` <${Code} class="faint">${schedule.cron}<//>`}</p>
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

/** @param {{schedule: ScheduleView, reload: () => any}} props */
function Acts({ schedule, reload }) {
  const disable = () =>
    disableDialog(schedule).then((done) => {
      if (!done) return;
      toast(html`<code>${clean(schedule.name)}</code> is off. Jobs it has made go on.`, {
        state: "off",
        undo: () => setEnabled(schedule, true, reload),
      });
      return reload();
    });
  const fill = () => backfillDialog(schedule).then((made) => made !== null && reload());
  const gate = schedule.gate?.scope === "schedule" ? schedule.gate : null;
  const pause = () => pauseDialog("schedule", schedule.name, schedule.tenant).then((made) => made && reload());
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

/** The act that programs want most. @param {ScheduleView} schedule */
function triggered(schedule) {
  const other = schedule.tenant === "default" ? "" : schedule.tenant;
  return {
    cli: `rota schedules trigger ${shellQuote(schedule.name)}${other && ` --tenant ${shellQuote(other)}`}`,
    method: "POST",
    path: `/schedules/${schedule.id}/trigger`,
    body: {},
    python: `from rota import Rota\n\napp = Rota()\njob = await app.schedules.trigger(${JSON.stringify(schedule.name)}${other && `, tenant=${JSON.stringify(other)}`})`,
  };
}

/** Why it does not fire, if it does not. @param {{schedule: ScheduleView}} props */
function WhyNotRunning({ schedule }) {
  const { enabled, reason, gate, late_s: late, next_run_at: next } = schedule;
  if (!enabled)
    return html`<${Note} state="cancelled">
      <p><b>It is off and does not fire.</b></p>
      <p>
        ${reason ? line(reason, 500) : "No reason was given."} ${may("operate")
          ? "Enable it to fire again, counted from then. Trigger works all the same."
          : ""}
      </p>
    <//>`;
  if (gate)
    return html`<${Note} state="held">
      <p>
        <b>
          It is
          paused${gate.scope === "schedule"
            ? ""
            : `, as ${gate.scope === "all" ? "everything" : `${gate.scope} ${clean(gate.name)}`} is`}.
        </b>
      </p>
      <p>
        By ${clean(gate.actor)} <${When} at=${gate.since_at} />
        ${gate.reason ? `: “${line(gate.reason)}”` : ", without a reason"}. ${gate.until_at
          ? html`Goes on by itself <${When} at=${gate.until_at} />.`
          : html`Until somebody resumes it, here or under <a href=${at("/gates")}>Gates</a>.`}
      </p>
    <//>`;
  if ((late ?? 0) > 60)
    return html`<${Note} state="held">
      <p><b>It is ${duration(late ?? 0)} late.</b></p>
      <p>
        Due <${When} at=${next} />. No scheduler has fired it. Is a worker with a scheduler
        alive? <a href=${at("/workers")}>See workers</a>
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
  const path = `/schedules/${schedule.id}`;
  const newest = useLoad((signal) => api.get(`${path}/runs`, { limit: 200 }, signal), [schedule.id], {
    on: ["schedule", "stats"],
    minInterval: 5,
    every: 15,
  });
  const list = usePages(
    async (cursor, signal) => {
      const page = await api.get(`${path}/runs`, { limit: PAGE, failed: failed || null, cursor }, signal);
      return { items: page.items.map((/** @type {any} */ run) => ({ ...run, id: run.job })), next: page.next };
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
    label="Which runs"
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
    note=${html`${choose}<a href=${at("/jobs", { schedule: schedule.name, tenant: schedule.tenant })}>Its jobs</a>`}
  >
    <${WhenLoaded} of=${newest} lines=${4}>
      ${(/** @type {any} */ page) => page.items.length > 0 && html`<${RunCharts} runs=${page.items} />`}
    <//>
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${none
      ? html`<${Empty}
          title=${failed ? "No run has failed" : "It has not run yet"}
          command=${failed ? undefined : `rota schedules trigger ${shellQuote(schedule.name)}`}
        >
          ${failed
            ? "Runs that were removed by retention are not counted."
            : "Each fire makes a job; its runs stand here, with what they said. To see one now:"}
        <//>`
      : html`<${RunTable} runs=${list.rows} />`}
    ${!none && list.rows && html`<div class="more-rows">
      ${list.next ? html`<${Button} onClick=${list.more}>Show ${PAGE} more<//>` : "That is all."}
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
    title=${schedule.enabled ? "Next fires" : "It would fire"}
    note=${schedule.jitter > 0 && `each up to ${duration(schedule.jitter)} later, by jitter`}
  >
    ${preview.error && html`<${ErrorNotice} error=${preview.error} retry=${preview.reload} />`}
    ${odd && html`<${Note} state="held">
      <p><b>A clock change meets a coming fire.</b></p>
      <p>${sentence(odd.note)}</p>
    <//>`}
    ${fires?.length === 0
      ? html`<p class="quiet">It will not fire again: its time is over.</p>`
      : html`<${FireTable} fires=${fires} timezone=${schedule.timezone} />`}
  <//>`;
}

/** @param {{schedule: ScheduleView}} props */
function Settings({ schedule }) {
  const own = (/** @type {any} */ value) =>
    value === null || value === undefined
      ? html`<span class="faint">as the task says</span>`
      : html`<${Code}>${value}<//>`;
  return html`<${Panel} title="Settings">
    <${Facts}
      items=${[
        ["Task", html`<a href=${at("/jobs", { task: schedule.task })}><${Code}>${schedule.task}<//></a>`],
        ["Tenant", clean(schedule.tenant)],
        ["Time zone", html`<${Code}>${schedule.timezone}<//>`],
        schedule.start_at && ["From", html`<${When} at=${schedule.start_at} />`],
        schedule.until && ["Until", html`<${When} at=${schedule.until} />`],
        ["Queue", own(schedule.queue)],
        ["Priority", own(schedule.priority)],
        ["Attempts", own(schedule.max_attempts)],
        ["Timeout", schedule.timeout === null ? own(null) : duration(schedule.timeout)],
        [
          "If missed",
          html`
            <${Code}>${schedule.missed}<//>, ${MISSED[/** @type {keyof typeof MISSED} */ (schedule.missed)] ?? ""}
            ${schedule.missed === "all" ? `, ${schedule.missed_cap} at most` : ""}
            ${schedule.missed_window ? `, none older than ${duration(schedule.missed_window)}` : ""}
          `,
        ],
        [
          "If busy",
          html`
            <${Code}>${schedule.overlap}<//>, ${OVERLAP[/** @type {keyof typeof OVERLAP} */ (schedule.overlap)] ?? ""}
          `,
        ],
        schedule.calendar && [
          "Calendar",
          html`
            <a href=${at("/calendars")}><${Code}>${schedule.calendar}<//></a>, ${schedule.calendar_mode === "skip"
              ? "leaves such days out"
              : "moves to the next working day"}
          `,
        ],
        ["Source", html`${clean(schedule.source)}${schedule.owner ? html`, of <${Code}>${schedule.owner}<//>` : ""}`],
        ["Last fire", html`<${When} at=${schedule.last_fire_at} none="never" />`],
        ["Made", html`<${When} at=${schedule.created_at} />`],
        ["Changed", html`<${When} at=${schedule.updated_at} />`],
      ]}
    />
    <h3 class="apart">Payload</h3>
    <${JsonTree} value=${schedule.payload} label="Payload" />
  <//>`;
}

/** Every act on it, with what it changed. @param {{schedule: ScheduleView}} props */
function Versions({ schedule }) {
  const object = `schedule:${schedule.tenant}/${schedule.name}`;
  const list = usePages((cursor, signal) => api.get("/audit", { object, limit: 20, cursor }, signal), object, {
    on: ["audit"],
  });
  const columns = useMemo(
    () =>
      /** @type {import("../parts/base/table.js").Column[]} */ ([
        { title: "When", width: "10rem", cell: (one) => html`<${When} at=${one.at} />` },
        {
          title: "Act",
          kind: "head",
          width: "14rem",
          cell: (one) =>
            html`
              <span class="name">${clean(one.action.replace(/^schedule\./, ""))}</span>
              <span class="sub">${clean(one.actor)}${one.via ? ` by ${clean(one.via)}` : ""}</span>
            `,
        },
        { title: "Result", width: "7rem", cell: (one) => html`<${Badge} state=${one.result} />` },
        { title: "What changed", kind: "full", cell: (one) => html`<${Changed} entry=${one} />` },
      ]),
    [],
  );
  return html`<${Panel} title="Versions" note=${html`<a href=${at("/audit", { object })}>In the audit log</a>`}>
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${list.rows?.length === 0
      ? html`<p class="quiet">Nobody has changed it since it was declared.</p>`
      : html`<${Table}
          caption="Versions"
          class="versions"
          columns=${columns}
          rows=${list.rows}
          skeleton=${3}
          id=${(/** @type {any} */ one) => one.id}
        />`}
    ${list.next && html`<div class="more-rows"><${Button} onClick=${list.more}>Show older<//></div>`}
  <//>`;
}

/** @param {{entry: any}} props */
function Changed({ entry }) {
  if (entry.message) return html`<span class="sub bad">${line(entry.message, 400)}</span>`;
  const changes = differences(entry.before, entry.after);
  if (!entry.before && entry.action === "schedule.create") return html`<span class="soft">made</span>`;
  return changes.length ? html`<${Diff} changes=${changes} most=${8} />` : html`<span class="faint">nothing</span>`;
}
