// @ts-check
// Tenants: what each gets beside its fair share, what waits, what it spends, and its fullest quota.

import { api } from "../api.js";
import { useLoad } from "../load.js";
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
import { QuotaUse, RunningShare, Spent, TenantBadge, isHeldUp } from "../parts/operate/tenant-cells.js";
import { committed, fullest, quotaUse } from "../parts/operate/tenant-words.js";
import { Table, byName } from "../parts/base/table.js";
import { at, may, me, query } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, plural } from "../format.js";

/** @typedef {import("../types").TenantView} Tenant */

/** @type {import("../parts/base/list-filters.js").Kinds<Tenant>} */
const KINDS = {
  live: ["Live", (/** @type {Tenant} */ tenant) => liveOf(tenant) > 0],
  behind: ["Behind", (/** @type {Tenant} */ tenant) => (tenant.oldest_due_s ?? 0) > LONG_S],
  full: ["At a limit", isHeldUp],
  paused: ["Paused", (/** @type {Tenant} */ tenant) => tenant.gate !== null],
};
/** @type {import("../parts/base/list-filters.js").Orders<Tenant>} */
const ORDERS = {
  share: (tenant) => tenant.running,
  due: (tenant) => tenant.due,
  later: (tenant) => tenant.due_later,
  running: (tenant) => tenant.running,
  oldest: (tenant) => tenant.oldest_due_s ?? -1,
  schedules: (tenant) => tenant.schedules,
  spent: (tenant) => (tenant.budget ? committed(tenant.budget) / tenant.budget.cents : tenant.spent_cents / 1e9),
  quota: (tenant) => Math.max(0, ...tenant.quotas.map(quotaUse)),
};

export default function Tenants() {
  const tenants = useLoad((signal) => api.get("/tenants", {}, signal), [], {
    on: ["gate", "stats"],
    every: 10,
    minInterval: 5,
  });
  const globalPause = useGlobalPause();
  const all = tenants.data?.items;
  const rows = useFiltered(all, { kinds: KINDS, orders: ORDERS, name: byName });
  const whole = useMemo(
    () => (all ?? []).reduce((/** @type {number} */ sum, /** @type {Tenant} */ tenant) => sum + liveOf(tenant), 0),
    [all],
  );
  const running = useMemo(
    () => (all ?? []).reduce((/** @type {number} */ sum, /** @type {Tenant} */ tenant) => sum + tenant.running, 0),
    [all],
  );
  const columns = useMemo(
    () => columnsOf(running, globalPause.gate, tenants.reload),
    [running, globalPause.gate, query.value.get("by")],
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
        html`
          <${Table} caption="Tenants" class="tenants" columns=${columns} rows=${rows} id=${byName} />
          <p class="quiet">
            Tenants share each queue by weight; what one does not use, others get. The tick is the fair share of the
            tenants that wait now, and on a budget the alert. Counts of quotas may lag by a second.
          </p>
        `}
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
    ${plural(whole, "live job")}. ${share === 100 ? "All" : "Most"} jobs belong to <${Code}>${most.name}<//>
    ${share === 100 ? "" : `: ${share} %`}.
  `;
}

/**
 * @param {number} running of all tenants
 * @param {import("../types").GateView | null} globalPause
 * @param {() => unknown} done
 * @returns {import("../parts/base/table.js").Column<Tenant>[]}
 */
function columnsOf(running, globalPause, done) {
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
          <a class="name" href=${at(`/tenants/${encodeURIComponent(tenant.name)}`)}>${clean(tenant.name)}</a>
          <span class="sub">${tenant.gate ? pauseSummary(tenant.gate) : `weight ${tenant.weight}`}</span>
        `,
    },
    {
      title: "State",
      width: "9rem",
      kind: "not-mid",
      cell: (tenant) =>
        html`<${GateBadge}
          gate=${tenant.gate ?? globalPause}
          otherwise=${html`<${TenantBadge} tenant=${tenant} />`}
        />`,
    },
    orderable("share", {
      title: "Share of running",
      width: "12.5rem",
      kind: "full not-mid",
      cell: (tenant) => html`<${RunningShare} tenant=${tenant} running=${running} />`,
    }),
    orderable("due", {
      title: "Due",
      kind: "num",
      width: "4.5rem",
      cell: (tenant) => jobs(tenant, tenant.due, "queued"),
    }),
    orderable("later", {
      title: "Later",
      kind: "num vast",
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
    orderable("spent", {
      title: "Spent",
      width: "10rem",
      kind: "full",
      cell: (tenant) => html`<${Spent} tenant=${tenant} />`,
    }),
    orderable("quota", {
      title: "Fullest quota",
      kind: "broad",
      width: "9.5rem",
      cell: (tenant) => {
        const quota = fullest(tenant.quotas);
        return quota ? html`<${QuotaUse} quota=${quota} />` : html`<span class="faint small">no quota</span>`;
      },
    }),
    orderable("schedules", {
      title: "Schedules",
      kind: "num vast",
      width: "5.5rem",
      cell: (tenant) =>
        tenant.schedules
          ? html`<a href=${at("/schedules", { tenant: tenant.name })}>${count(tenant.schedules)}</a>`
          : html`<span class="faint">0</span>`,
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
