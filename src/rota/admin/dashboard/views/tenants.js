// @ts-check
// Tenants: their share of live jobs, cost, schedules and pauses.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge } from "../parts/base/badge.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import {
  AllPausedNotice,
  LONG_S,
  pauseSummary,
  useGlobalPause,
  OldestDue,
  pauseImpact,
} from "../parts/operate/throughput-cells.js";
import { isListFiltered, ListFilters, orderable, useFiltered } from "../parts/base/list-filters.js";
import { Code, PageHeader } from "../parts/base/panel.js";
import { GateBadge, PauseButton } from "../parts/operate/pause.js";
import { Table, byName } from "../parts/base/table.js";
import { at, may, me, query } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, plural } from "../format.js";

/** @typedef {import("../types").TenantView} Tenant */

/** @type {import("../parts/base/list-filters.js").Kinds<Tenant>} */
const KINDS = {
  live: ["Live", (/** @type {Tenant} */ tenant) => liveOf(tenant) > 0],
  behind: ["Behind", (/** @type {Tenant} */ tenant) => (tenant.oldest_due_s ?? 0) > LONG_S],
  paused: ["Paused", (/** @type {Tenant} */ tenant) => tenant.gate !== null],
};
/** @type {import("../parts/base/list-filters.js").Orders<Tenant>} */
const ORDERS = {
  share: (tenant) => liveOf(tenant),
  due: (tenant) => tenant.due,
  later: (tenant) => tenant.due_later,
  running: (tenant) => tenant.running,
  oldest: (tenant) => tenant.oldest_due_s ?? -1,
  schedules: (tenant) => tenant.schedules,
  cost: (tenant) => tenant.cost_cents,
};
const COST = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export default function Tenants() {
  const tenants = useLoad((signal) => api.get("/tenants", {}, signal), [], { on: ["gate"], every: 10 });
  const globalPause = useGlobalPause();
  const all = tenants.data?.items;
  const rows = useFiltered(all, { kinds: KINDS, orders: ORDERS, name: byName });
  const whole = useMemo(
    () => (all ?? []).reduce((/** @type {number} */ sum, /** @type {Tenant} */ tenant) => sum + liveOf(tenant), 0),
    [all],
  );
  const columns = useMemo(
    () => columnsOf(whole, globalPause.gate, tenants.reload),
    [whole, globalPause.gate, query.value.get("by")],
  );
  return html`
    <${PageHeader} title="Tenants">
      <p>${all ? summary(all, whole) : html`<span class="skeleton-line w2"></span>`}</p>
    <//>
    <${AllPausedNotice} globalPause=${globalPause} />
    ${tenants.error && html`<${ErrorNotice} error=${tenants.error} retry=${tenants.reload} />`}
    ${(all?.length ?? 0) > 1 && html`<${ListFilters} what="tenants" kinds=${KINDS} shown=${rows} of=${all} />`}
    ${rows?.length === 0
      ? html`<${NoTenants} />`
      : (rows || !tenants.error) &&
        html`<${Table} caption="Tenants" class="tenants" columns=${columns} rows=${rows} id=${byName} />`}
  `;
}

/** Jobs that are not finished. @param {Tenant} tenant */
function liveOf({ due, due_later: later, running }) {
  return due + later + running;
}

/** @param {Tenant[]} tenants @param {number} whole */
function summary(tenants, whole) {
  if (me.value?.tenant) return "Your access is limited to this tenant.";
  if (!tenants.length) return "None yet.";
  const rough = tenants.some((tenant) => tenant.estimated) ? "≈ " : "";
  if (!whole) return `${plural(tenants.length, "tenant")}. No live jobs.`;
  const most = tenants.reduce((a, b) => (liveOf(b) > liveOf(a) ? b : a));
  const share = Math.round((100 * liveOf(most)) / whole);
  return html`
    ${plural(tenants.length, "tenant")} with ${rough}
    ${plural(whole, "live job")}. ${share === 100 ? "All" : "Most"} belong to <${Code}>${most.name}<//>
    ${share === 100 ? "" : `: ${share} %`}.
  `;
}

/**
 * @param {number} whole
 * @param {import("../types").GateView | null} globalPause
 * @param {() => unknown} done
 * @returns {import("../parts/base/table.js").Column<Tenant>[]}
 */
function columnsOf(whole, globalPause, done) {
  const jobs = (/** @type {Tenant} */ tenant, /** @type {number} */ n, /** @type {string} */ state) =>
    n
      ? html`<a href=${at("/jobs", { tenant: tenant.name, state })}>${tenant.estimated ? "≈ " : ""}${count(n)}</a>`
      : html`<span class="faint">0</span>`;
  return [
    {
      title: "Tenant",
      kind: "head",
      cell: (tenant) =>
        html`
          <a class="name" href=${at("/jobs", { tenant: tenant.name })}>${clean(tenant.name)}</a>
          <span class="sub">
            ${tenant.gate
              ? pauseSummary(tenant.gate)
              : may("audit") &&
                html`<a href=${at("/audit", { tenant: tenant.name })} aria-label=${`Audit of ${clean(tenant.name)}`}>
                  Audit
                </a>`}
          </span>
        `,
    },
    {
      title: "State",
      width: "10rem",
      kind: "not-mid",
      cell: (tenant) =>
        html`<${GateBadge}
          gate=${tenant.gate ?? globalPause}
          otherwise=${html`<${Badge} state="running">active<//>`}
        />`,
    },
    orderable("share", {
      title: "Share of live jobs",
      width: "12rem",
      kind: "full",
      cell: (tenant) => html`<${Share} tenant=${tenant} whole=${whole} />`,
    }),
    orderable("due", {
      title: "Due",
      kind: "num",
      width: "4.5rem",
      cell: (tenant) => jobs(tenant, tenant.due, "queued"),
    }),
    orderable("later", {
      title: "Later",
      kind: "num broad",
      width: "4.5rem",
      cell: (tenant) => jobs(tenant, tenant.due_later, "queued"),
    }),
    orderable("running", {
      title: "Running",
      kind: "num broad",
      width: "5rem",
      cell: (tenant) => jobs(tenant, tenant.running, "running"),
    }),
    orderable("oldest", {
      title: "Oldest due",
      kind: "num",
      width: "7.5rem",
      cell: (tenant) => html`<${OldestDue} seconds=${tenant.oldest_due_s} />`,
    }),
    orderable("schedules", {
      title: "Schedules",
      kind: "num broad",
      width: "5.5rem",
      cell: (tenant) =>
        tenant.schedules
          ? html`<a href=${at("/schedules", { tenant: tenant.name })}>${count(tenant.schedules)}</a>`
          : html`<span class="faint">0</span>`,
    }),
    orderable("cost", {
      title: "Cost (cents)",
      kind: "num broad",
      width: "6rem",
      cell: (tenant) =>
        html`<span title="Cost of the newest thousand jobs, in cents">
          ${tenant.cost_cents ? COST.format(tenant.cost_cents) : html`<span class="faint">—</span>`}
        </span>`,
    }),
    ...(may("operate")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "5.5rem",
            cell: (/** @type {Tenant} */ tenant) =>
              html`<${PauseButton}
                scope="tenant"
                name=${tenant.name}
                gate=${tenant.gate}
                need="operate"
                done=${done}
                impact=${pauseImpact(tenant)}
              />`,
          },
        ]
      : []),
  ];
}

/** A tenant's share of all live jobs: running, due, due later. @param {{tenant: Tenant, whole: number}} props */
function Share({ tenant, whole }) {
  const WIDTH = 128;
  if (!whole) return html`<span class="faint">no live jobs</span>`;
  let x = 0;
  const parts = /** @type {[string, number][]} */ ([
    ["running", tenant.running],
    ["due", tenant.due],
    ["later", tenant.due_later],
  ]).map(([kind, n]) => {
    const width = (n / whole) * WIDTH;
    x += width;
    return { kind, x: x - width, width };
  });
  const percent = (100 * liveOf(tenant)) / whole;
  const text = percent > 0 && percent < 1 ? "< 1 %" : `${Math.round(percent)} %`;
  const [running, due, later] = [tenant.running, tenant.due, tenant.due_later].map(count);
  const counts = `${running} running, ${due} due, ${later} due later`;
  return html`<span class="share">
    <svg width=${WIDTH} height="12" role="img" aria-label=${`${text} of live jobs: ${counts}`}>
      <rect class="rail" width=${WIDTH} height="12" rx="1" />
      ${parts.map(
        ({ kind, x, width }) =>
          width > 0 && html`<rect class=${kind} x=${x.toFixed(2)} width=${width.toFixed(2)} height="12" />`,
      )}
    </svg>
    ${text}
  </span>`;
}

function NoTenants() {
  if (isListFiltered())
    return html`<${Empty}
      title="No matching tenants"
      acts=${html`<a class="button" href=${at("/tenants")}>Show all tenants</a>`}
    >
      A part of the name is enough.
    <//>`;
  return html`<${Empty}
    title="No tenants yet"
    command=${`rota jobs enqueue demo.greet --payload '{"name": "Ada"}' --tenant acme`}
  >
    Jobs and schedules belong to a tenant: a customer, a team, an environment. It appears with its first job. An API
    token can be limited to one tenant.
  <//>`;
}
