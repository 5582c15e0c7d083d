// @ts-check
// Audit: who did what to which object, newest first, and what it changed.

import { api } from "../api.js";
import { write } from "../exact.js";
import { Badge } from "../parts/base/badge.js";
import { Button } from "../parts/base/button.js";
import { Forbidden } from "../parts/base/forbidden.js";
import { show } from "../parts/base/dialog.js";
import { Diff, DiffTable, differences } from "../parts/base/diff.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { Field, onValue } from "../parts/base/form.js";
import { CopyJson } from "../parts/base/json.js";
import { usePages } from "../parts/base/pages.js";
import { Code, Facts, PageHeader } from "../parts/base/panel.js";
import { pageOf } from "../parts/schedules/schedule.js";
import { Table, byId } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { toast } from "../parts/base/toast.js";
import { AUDIT_RESULT_LABELS, labelOf, optionsOf } from "../labels.js";
import { at, may, now, path, query, refine } from "../state.js";
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { clean, count, parseTime, line, plural } from "../format.js";

/** @typedef {import("../types").AuditView} Entry */

const PAGE = 50;
const EXPORT_PAGE = 200;
const MOST_EXPORTED = 100_000;
const TEXTS = ["actor", "action", "object", "tenant"];
const TIMES = ["since", "until"];
const FILTERS = [...TEXTS, "result", ...TIMES];
/** @type {Record<string, string>} */
const HINTS = {
  actor: "name",
  action: "job.cancel",
  object: "queue:mail",
  tenant: "name",
  since: "24h, 2030-01-31",
  until: "1h, 2030-01-31",
};
const ACTIONS = [
  "job.",
  "job.enqueue",
  "job.retry",
  "job.cancel",
  "job.delete",
  "jobs.",
  "schedule.",
  "queue.",
  "task.",
  "tenant.",
  "all.",
  "token.",
  "user.",
  "calendar.",
  "session.",
];

/**
 * The filter in the URL, as the API expects it.
 * @param {URLSearchParams} params
 * @returns {Record<string, unknown>}
 */
function filterOf(params) {
  return Object.fromEntries(
    FILTERS.map((name) => {
      const text = params.get(name);
      return [name, text && TIMES.includes(name) ? parseTime(text, now.peek()) : text];
    }),
  );
}

export default function Audit() {
  if (!may("audit")) return html`<${PageHeader} title="Audit" /><${Forbidden} what="The audit log" role="operator" />`;
  return html`<${Log} />`;
}

function Log() {
  const params = query.value;
  const search = FILTERS.map((name) => `${name}=${params.get(name) ?? ""}`).join("&");
  const isFiltered = FILTERS.some((name) => params.get(name));
  const filter = useMemo(() => filterOf(params), [search]);
  const list = usePages((cursor, signal) => api.get("/audit", { ...filter, limit: PAGE, cursor }, signal), search, {
    on: ["audit"],
  });
  const columns = useMemo(columnsOf, []);
  return html`
    <${PageHeader} title="Audit" acts=${html`<${Export} filter=${filter} />`}>
      Who did what, newest first. Entries never change; secrets are masked.
    <//>
    <${Filters} params=${params} isFiltered=${isFiltered} />
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${list.rows?.length === 0 && !list.error && html`<${Nothing} isFiltered=${isFiltered} />`}
    ${(list.rows ? list.rows.length > 0 : !list.error) && html`<${Table}
      caption="Audit log"
      class="audit"
      columns=${columns}
      rows=${list.rows}
      skeleton=${8}
      id=${byId}
    />`}
    ${list.rows && list.rows.length > 0 && html`<div class="more-rows">
      ${list.next ? html`<${Button} onClick=${list.more}>Show ${PAGE} more<//>` : "End of list"}
      <span>${count(list.rows.length)} shown</span>
    </div>`}
  `;
}

/** @param {{isFiltered: boolean}} props */
function Nothing({ isFiltered }) {
  if (isFiltered)
    return html`<${Empty} title="No matching entries" acts=${html`<a class="button" href=${at("/audit")}>Show all</a>`}>
      Match one action (job.cancel) or a prefix ending in a dot (job.).
    <//>`;
  return html`<${Empty} title="No entries yet" command="rota queues pause mail --reason 'trying it out'">
    Every change by a user or a program is recorded here: who, what, before and after. To record one:
  <//>`;
}

// --- filters -------------------------------------------------------------------------------------

/** @param {{params: URLSearchParams, isFiltered: boolean}} props */
function Filters({ params, isFiltered }) {
  return html`<form
    class="filters"
    role="search"
    aria-label="Filter audit entries"
    onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}
  >
    ${TEXTS.map((name) => html`<${Filter} key=${name} name=${name} value=${params.get(name) ?? ""} />`)}
    <${Field} label="Result">
      <select value=${params.get("result") ?? ""} onChange=${onValue((result) => refine({ result }))}>
        <option value="">any</option>
        ${optionsOf(AUDIT_RESULT_LABELS).map(([one, label]) => html`<option value=${one}>${label}</option>`)}
      </select>
    <//>
    ${TIMES.map((name) => html`<${Filter} key=${name} name=${name} value=${params.get(name) ?? ""} />`)}
    ${isFiltered && html`<a class="button plain" href=${at("/audit")}>Clear filters</a>`}
    <datalist id="audit-actions">${ACTIONS.map((one) => html`<option value=${one}></option>`)}</datalist>
    <datalist id="audit-times">
      ${["1h", "24h", "7d", "30d"].map((one) => html`<option value=${one}></option>`)}
    </datalist>
  </form>`;
}

/** A text that becomes part of the URL when it is complete. @param {{name: string, value: string}} props */
function Filter({ name, value }) {
  const isTime = TIMES.includes(name);
  const error = isTime && value && !parseTime(value, now.peek()) ? "Use 24h, 7d or 2030-01-31T08:00Z." : null;
  return html`<${Field} label=${name[0].toUpperCase() + name.slice(1)} error=${error}>
    <input
      type="text"
      maxlength="500"
      autocomplete="off"
      spellcheck=${false}
      placeholder=${HINTS[name]}
      value=${value}
      list=${isTime ? "audit-times" : name === "action" ? "audit-actions" : undefined}
      onChange=${onValue((value) => refine({ [name]: value.trim() }))}
    />
  <//>`;
}

// --- rows ----------------------------------------------------------------------------------------

/** @returns {import("../parts/base/table.js").Column<Entry>[]} */
function columnsOf() {
  return [
    { title: "Time", width: "8rem", cell: (entry) => html`<${When} at=${entry.at} />` },
    {
      title: "Action",
      kind: "head",
      width: "22%",
      cell: (entry) =>
        html`
          <button type="button" class="name link" onClick=${() => showEntry(entry)}>${line(entry.action)}</button>
          <span class="sub">${entry.object ? html`<${ObjectLink} object=${entry.object} />` : "no single object"}</span>
        `,
    },
    {
      title: "By",
      width: "18%",
      cell: (entry) =>
        html`
          <a
            class="clip mono plain-link"
            href=${withFilter({ actor: entry.actor })}
            title=${`Only entries by ${clean(entry.actor)}`}
          >
            ${line(entry.actor)}
          </a>
          <span class="sub">
            ${line(
              [entry.role, entry.via && `via ${entry.via}`, entry.tenant && `tenant ${entry.tenant}`]
                .filter(Boolean)
                .join(", "),
            )}
          </span>
        `,
    },
    { title: "Result", width: "6.5rem", cell: (entry) => html`<${Result} entry=${entry} />` },
    { title: "Change", kind: "full", cell: (entry) => html`<${Change} entry=${entry} />` },
  ];
}

/**
 * What the system records by itself is neither good nor bad: a tick beside "exhausted" would mislead.
 * @param {{entry: Entry}} props
 */
function Result({ entry }) {
  const isNote = entry.via === "system" && !entry.role && entry.result === "done";
  return isNote
    ? html`<span class="soft">recorded</span>`
    : html`<${Badge} state=${entry.result}>${labelOf(AUDIT_RESULT_LABELS, entry.result)}<//>`;
}

/** @param {{entry: Entry}} props */
function Change({ entry }) {
  const changes = differences(entry.before, entry.after).filter(({ path }) => path !== "id"); // part of the object
  if (!changes.length && !entry.message) return html`<span class="faint">—</span>`;
  return html`
    ${entry.message && html`<span class="clip">${line(entry.message)}</span>`}
    ${changes.length > 0 && html`<${Diff} changes=${changes} most=${entry.message ? 1 : 2} />`}
  `;
}

/** This list with another filter. @param {Record<string, string>} patch */
function withFilter(patch) {
  return at(path.value, { ...Object.fromEntries(query.peek()), ...patch });
}

/** @param {{object: string}} props */
function ObjectLink({ object }) {
  const to = placeOf(object);
  return to ? html`<a class="mono" href=${to}>${line(object)}</a>` : html`<${Code}>${line(object)}<//>`;
}

/** The page of an object; null if it has none. @param {string} object @returns {string | null} */
function placeOf(object) {
  const [, kind, name] = /^(\w+):(.+)$/s.exec(object) ?? [];
  const [tenant, ...rest] = (name ?? "").split("/");
  switch (kind) {
    case "job":
      return at(`/jobs/${encodeURIComponent(name)}`);
    case "queue":
      return at("/jobs", { queue: name });
    case "task":
      return at("/jobs", { task: name });
    case "tenant":
      return at("/jobs", { tenant: name });
    case "schedule":
      return at(pageOf({ tenant, name: rest.join("/") }));
    case "token":
    case "user":
      return at("/settings");
    default:
      return null;
  }
}

// --- one entry -----------------------------------------------------------------------------

/** @param {Entry} entry */
function showEntry(entry) {
  return show(EntryDialog, { entry }, { wide: true });
}

/** @param {import("../parts/base/dialog.js").DialogControls<never> & {entry: Entry}} props */
function EntryDialog({ entry, done }) {
  const changes = differences(entry.before, entry.after);
  const close = () => done(null);
  return html`
    <h2 id="dialog-title"><code>${line(entry.action)}</code></h2>
    <${Facts}
      items=${[
        ["Time", html`<${When} at=${entry.at} />`],
        [
          "By",
          html`
            <a href=${at("/audit", { actor: entry.actor })} onClick=${close}>${line(entry.actor)}</a> ${line(
              [entry.role, entry.via && `via ${entry.via}`].filter(Boolean).join(", "),
            )}
          `,
        ],
        entry.object && [
          "Object",
          html`
            <span onClick=${close}><${ObjectLink} object=${entry.object} /></span> <a
              class="nowrap"
              href=${at("/audit", { object: entry.object })}
              onClick=${close}
            >
              view history
            </a>
          `,
        ],
        entry.tenant && ["Tenant", html`<${Code}>${entry.tenant}<//>`],
        ["Result", html`<${Result} entry=${entry} />`],
        entry.message && ["Message", line(entry.message, 1000)],
        entry.address && ["Address", html`<${Code}>${entry.address}<//>`],
        entry.request_id && ["Request", html`<${Code}>${entry.request_id}<//>`],
      ]}
    />
    ${changes.length ? html`<${DiffTable} changes=${changes} />` : html`<p class="quiet">No field changed.</p>`}
    <div class="acts"><${CopyJson} value=${entry} /><${Button} onClick=${close}>Close<//></div>
  `;
}

// --- export --------------------------------------------------------------------------------------

/** All matching entries, as JSON lines. @param {{filter: Record<string, unknown>}} props */
function Export({ filter }) {
  const [lines, setLines] = useState(-1);
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const run = async () => {
    try {
      save(await gather(filter, stop.current.signal, setLines));
    } finally {
      setLines(-1);
    }
  };
  return html`<${Button} glyph="copy" onClick=${run}>
    ${lines < 0 ? "Export as JSON lines" : `${plural(lines, "entry", "entries")} so far`}
  <//>`;
}

/**
 * @param {Record<string, unknown>} filter
 * @param {AbortSignal} signal
 * @param {(n: number) => void} report
 * @returns {Promise<string[]>}
 */
async function gather(filter, signal, report) {
  /** @type {string[]} */
  const lines = [];
  let cursor = /** @type {string | null} */ (null);
  do {
    report(lines.length);
    const page = await api.get("/audit", { ...filter, limit: EXPORT_PAGE, cursor }, signal);
    lines.push(...page.items.map((/** @type {Entry} */ entry) => `${write(entry)}\n`));
    cursor = page.next ?? null;
  } while (cursor && lines.length < MOST_EXPORTED);
  toast(
    cursor
      ? `Exported ${count(lines.length)} entries, but there are more: limit the time, or use rota audit export.`
      : `Exported ${plural(lines.length, "entry", "entries")}.`,
    { state: cursor ? "warn" : "succeeded" },
  );
  return lines;
}

/** @param {string[]} lines */
function save(lines) {
  const address = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  const stamp = new Date(now.peek()).toISOString().slice(0, 19).replaceAll(":", "");
  Object.assign(document.createElement("a"), { href: address, download: `rota-audit-${stamp}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
