// @ts-check
// Limits: how full each is, who holds its slots, what waits for them, and a change in place.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge } from "../parts/base/badge.js";
import { Button } from "../parts/base/button.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { isListFiltered, ListFilters, orderable, useFiltered } from "../parts/base/list-filters.js";
import { Code, PageHeader, Panel } from "../parts/base/panel.js";
import { Table, byName } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { HeldBy, Holders, LimitUse, Waiting, holdersOf, useRunningJobs } from "../parts/operate/limit-cells.js";
import { LimitEdit, limitDialog, sourceWords } from "../parts/operate/limit-form.js";
import { fullness, isFamily, limitWords, partsOf } from "../parts/operate/limit-words.js";
import { useKeys } from "../parts/shell/palette.js";
import { at, me, may, query, refine } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, plural, shortId } from "../format.js";

/** @typedef {import("../types").LimitView} Held */
/** @typedef {import("../parts/operate/limit-cells.js").RunningJobs} RunningJobs */

const CHANGE = "operate.shared";
const MOST_FAMILIES = 5; // whose keys are shown below the list

/** @type {import("../parts/base/list-filters.js").Kinds<Held>} */
const KINDS = {
  full: ["Full", (/** @type {Held} */ held) => held.is_full],
  chosen: ["Set at run time", (/** @type {Held} */ held) => held.source !== "code"],
  code: ["From code", (/** @type {Held} */ held) => held.source === "code"],
};
/** @type {import("../parts/base/list-filters.js").Orders<Held>} */
const ORDERS = { use: fullness, waiting: (held) => held.waiting_lanes };

export default function Limits() {
  const limits = useLoad((signal) => api.get("/limits", {}, signal), [], { on: ["stats"], every: 5, minInterval: 2 });
  const running = useRunningJobs(limits.data !== null && limits.data.items.length > 0);
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], {
    on: ["stats"],
    every: 10,
    minInterval: 2,
  });
  const queues = stats.data?.queues ?? null;
  const all = limits.data?.items;
  const rows = useFiltered(all, { kinds: KINDS, orders: ORDERS, name: byName });
  const open = ruleOf(query.value.get("edit"), all ?? []);
  const columns = useMemo(() => columnsOf(running, queues, open), [running, queues, query.value.get("by"), open]);
  useKeys(KEYS);
  const isNone = all?.length === 0;
  return html`
    <${PageHeader}
      title="Limits"
      acts=${!isNone && html`<${Button} kind="main" need=${CHANGE} onClick=${() => add(all ?? [], limits.reload)}>
        Set a limit
      <//>`}
    >
      <p>${all ? summary(all) : html`<span class="skeleton-line w2"></span>`}</p>
    <//>
    ${limits.error && html`<${ErrorNotice} error=${limits.error} retry=${limits.reload} />`}
    ${!isNone && html`<${ListFilters} what="limits" kinds=${KINDS} shown=${rows} of=${all} />`}
    ${rows?.length === 0
      ? html`<${NoLimits} done=${limits.reload} />`
      : (rows || !limits.error) &&
        html`<${Table}
          caption="Limits"
          class="limits"
          columns=${columns}
          rows=${rows}
          id=${byName}
          state=${(/** @type {Held} */ held) => (held.name === open ? "is-open" : "")}
          detail=${(/** @type {Held} */ held) =>
            held.name === open &&
            may(CHANGE) &&
            html`
              <${LimitEdit} key=${held.name} held=${held} close=${() => close(held.name)} done=${limits.reload} />
              ${!isFamily(held.name) && html`<${Holders} held=${held} />`}
            `}
        />`}
    ${(rows ?? [])
      .filter((held) => isFamily(held.name) && held.keys.length > 0)
      .slice(0, MOST_FAMILIES)
      .map((held) => html`<${Keys} key=${held.name} family=${held} running=${running} />`)}
    ${all && all.length > 0 && html`<p class="quiet">
      Limits are exact: what runs is counted when a job is to begin. A job under several begins when all admit it.
    </p>`}
  `;
}

/**
 * The limit in force for a name: itself, or for a key the family with the longest prefix.
 * @param {string | null} name
 * @param {Held[]} limits
 */
function ruleOf(name, limits) {
  if (!name || limits.some((held) => held.name === name)) return name;
  const families = limits.filter((held) => isFamily(held.name) && name.startsWith(held.name.slice(0, -1)));
  return families.sort((a, b) => b.name.length - a.name.length)[0]?.name ?? null;
}

/** E edits the limit of the row that has the focus. @type {import("../parts/shell/palette.js").Key[]} */
const KEYS = [["e", "Edit limit", () => rowAction()?.click()]];

/** @returns {HTMLElement | null | undefined} */
function rowAction() {
  return document.activeElement?.closest("tr")?.querySelector("td.act button");
}

/** The row's button gets the focus back. @param {string} name */
function close(name) {
  refine({ edit: "" }, { replace: true });
  requestAnimationFrame(() =>
    /** @type {HTMLElement | null} */ (document.querySelector(`[data-limit="${CSS.escape(name)}"] button`))?.focus(),
  );
}

/** @param {Held[]} known @param {() => unknown} done */
async function add(known, done) {
  if (await limitDialog({}, known)) await done();
}

/** @param {Held[]} limits */
function summary(limits) {
  if (!limits.length) return me.value?.tenant ? "Your tenant has none." : "None yet.";
  const full = limits.filter((one) => one.is_full);
  const held = limits.filter((one) => one.is_full && one.waiting_lanes > 0);
  return html`
    ${plural(limits.length, "limit")}. ${full.length === 0
      ? "None is full."
      : html`<b>${full.length === 1 ? "1 is full" : `${count(full.length)} are full`}</b>.`}
    ${" "}
    ${held.length > 0 ? `Jobs wait for ${held.length === 1 ? "1 of them" : `${count(held.length)} of them`}.` : ""}
  `;
}

/**
 * @param {RunningJobs | null} running
 * @param {Record<string, import("../types").QueueDepth> | null} queues
 * @param {string | null} open the limit that is being edited
 * @returns {import("../parts/base/table.js").Column<Held>[]}
 */
function columnsOf(running, queues, open) {
  return [
    {
      title: "Limit",
      kind: "head",
      width: "24%",
      cell: (held) =>
        html`
          <a class="name" href=${jobsAt(held.name)}>${clean(held.name)}</a>
          <span class="sub">
            ${held.is_full && html`<${Badge} state="full">full<//> `}
            ${remark(held)}
          </span>
        `,
    },
    orderable("use", {
      title: "In use",
      kind: "full",
      width: "15rem",
      cell: (held) => html`<${LimitUse} held=${held} />`,
    }),
    orderable("waiting", {
      title: "Waiting",
      width: "8rem",
      cell: (held) => html`<${Waiting} held=${held} queues=${queues} />`,
    }),
    {
      title: "Held by",
      kind: "full not-mid",
      cell: (held) => html`<${HeldBy} held=${held} running=${running} />`,
    },
    {
      title: "Set in",
      kind: "broad",
      width: "9rem",
      cell: (held) =>
        html`
          ${held.source === "code" ? "code" : "run time"}
          ${held.declared && html`<span class="sub" title=${sourceWords(held)}>
            code: ${limitWords(held.declared)}
          </span>`}
        `,
    },
    ...(may(CHANGE)
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "5rem",
            cell: (/** @type {Held} */ held) => html`<${EditButton} name=${held.name} isOpen=${held.name === open} />`,
          },
        ]
      : []),
  ];
}

/** @param {{name: string, isOpen: boolean}} props */
function EditButton({ name, isOpen }) {
  const press = () => (isOpen ? close(name) : refine({ edit: name }, { replace: true }));
  return html`<span data-limit=${name}>
    <${Button} tiny label=${`${isOpen ? "Close" : "Edit"} ${clean(name)}`} onClick=${press}>
      ${isOpen ? "Close" : "Edit"}
    <//>
  </span>`;
}

/** @param {Held} held */
function remark(held) {
  if (isFamily(held.name)) return `each key on its own${held.most === 1 ? ", in order" : ""}`;
  return held.strict ? "waits for retries" : "";
}

/** The jobs under a limit. @param {string} name */
function jobsAt(name) {
  const [scope, rest] = partsOf(name);
  const state = "queued,running";
  if (scope !== "key") return at("/jobs", { [scope]: rest, state });
  return at("/jobs", { concurrency_key: isFamily(name) ? "" : rest, state });
}

/**
 * The fullest keys of a family, with the job that holds each.
 * @param {{family: Held, running: RunningJobs | null}} props
 */
function Keys({ family, running }) {
  return html`<${Panel}
    title=${`Keys of ${clean(family.name)}`}
    note=${`the fullest ${count(family.keys.length)}; ${plural(family.running, "job")} of all keys running`}
  >
    <ul class="lanes">
      ${family.keys.map((key) => html`<${KeyLine} key=${key.name} held=${key} running=${running} />`)}
    </ul>
  <//>`;
}

/** @param {{held: Held, running: RunningJobs | null}} props */
function KeyLine({ held, running }) {
  const oldest = held.running > 0 ? holdersOf(held, running?.items ?? [])[0] : null; // both lists are moments apart
  return html`<li>
    <${Code}>${partsOf(held.name)[1]}<//>
    <span class="lane-use"><${LimitUse} held=${held} /></span>
    <span class="soft">
      ${oldest
        ? html`
            held by <a href=${at(`/jobs/${oldest.id}`)}>${clean(oldest.task)} ${shortId(oldest.id)}</a>
            ${" "}
            <${When} lead="started" at=${oldest.started_at} />
          `
        : ""}
    </span>
    <a class="button tiny" href=${jobsAt(held.name)}>View jobs</a>
  </li>`;
}

/** @param {{done: () => unknown}} props */
function NoLimits({ done }) {
  if (isListFiltered())
    return html`<${Empty}
      title="No matching limits"
      acts=${html`<a class="button" href=${at("/limits")}>Show all limits</a>`}
    >
      A part of the name is enough: queue, tenant, account.
    <//>`;
  return html`<${Empty}
    title="No limits yet"
    command="rota limits set queue:mail --running 40"
    acts=${html`<${Button} kind="main" need=${CHANGE} onClick=${() => add([], done)}>Set a limit<//>`}
  >
    A limit keeps a provider's quota, or one job at a time per account: at most 40 jobs of a queue at once, 100 a minute
    of a task, one of each key. Jobs over it wait, without using up an attempt, and delay no others. In code:
    ${" "}
    <${Code}>@app.task(limit=Limit(running=5, rate="100/m"))<//>.
  <//>`;
}
