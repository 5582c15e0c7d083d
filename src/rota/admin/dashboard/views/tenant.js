// @ts-check
// One tenant: why its jobs wait, whether it gets its share, what it spends of its budget, its quotas and limit.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { StateGlyph } from "../parts/base/badge.js";
import { Button } from "../parts/base/button.js";
import { WhenLoaded } from "../parts/base/empty.js";
import { Facts, PageHeader, Panel } from "../parts/base/panel.js";
import { When } from "../parts/base/time.js";
import { Fill } from "../parts/charts/fill.js";
import { LiveJobs } from "../parts/jobs/live-jobs.js";
import { LimitUse, limitAt } from "../parts/operate/limit-cells.js";
import { limitDialog } from "../parts/operate/limit-form.js";
import { GateBadge, PauseButton } from "../parts/operate/pause.js";
import { RunningShare, TenantBadge, isHeldUp } from "../parts/operate/tenant-cells.js";
import { pathOf, tenantDialog } from "../parts/operate/tenant-form.js";
import {
  NEARLY,
  QUOTA_WORDS,
  THIS_PERIOD,
  committed,
  forecast,
  money,
  percent,
  quotaUse,
  quotaWords,
} from "../parts/operate/tenant-words.js";
import {
  AllPausedNotice,
  OldestDue,
  pauseImpact,
  pauseSummary,
  useGlobalPause,
} from "../parts/operate/throughput-cells.js";
import { at, may, now } from "../state.js";
import { html } from "../ui.js";
import { clean, count, plural } from "../format.js";

/** @typedef {import("../types").TenantView} Tenant */
/** @typedef {{state: string, title: unknown, detail: unknown, help?: unknown}} Reason */

const CHANGE = "operate.shared";

/** @param {{name: string}} props */
export default function TenantPage({ name }) {
  const loaded = useLoad((signal) => api.get(pathOf(name), {}, signal), [name], {
    on: ["gate", "stats"],
    every: 10,
    minInterval: 2,
  });
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], {
    when: may("read.shared"),
    on: ["stats"],
    minInterval: 2,
  });
  const globalPause = useGlobalPause();
  const tenant = loaded.data;
  return html`
    <${PageHeader}
      mono
      title=${clean(name)}
      crumb=${html`<a href=${at("/tenants")}>Tenants</a>`}
      beside=${tenant && html`<${GateBadge}
        gate=${tenant.gate ?? globalPause.gate}
        otherwise=${html`<${TenantBadge} solid tenant=${tenant} />`}
      />`}
      acts=${tenant && html`<${Actions} tenant=${tenant} reload=${loaded.reload} />`}
    >
      ${tenant && html`
        <span>weight <b>${tenant.weight}</b></span>
        ${tenant.max_priority !== null && html`<span>priority up to <b>${tenant.max_priority}</b></span>`}
        ${tenant.retention_days !== null && html`<span>
          history kept <b>${plural(tenant.retention_days, "day")}</b>
        </span>`}
      `}
    <//>
    <${AllPausedNotice} globalPause=${globalPause} />
    <${WhenLoaded} of=${loaded} lines=${8}>
      ${(/** @type {Tenant} */ one) =>
        html`<${Known} tenant=${one} reload=${loaded.reload} running=${stats.data?.running ?? null} />`}
    <//>
  `;
}

/** @param {{tenant: Tenant, reload: () => unknown}} props */
function Actions({ tenant, reload }) {
  const { name, limit, gate } = tenant;
  return html`
    ${!limit && html`<${Button} need=${CHANGE} onClick=${() => setLimit(name, reload)}>Set a limit<//>`}
    <${PauseButton}
      tiny=${false}
      scope="tenant"
      need="operate"
      name=${name}
      gate=${gate}
      done=${reload}
      impact=${pauseImpact(tenant)}
    />
    <${Button} need=${CHANGE} onClick=${() => tenantDialog(tenant, reload).then(() => {})}>Edit settings<//>
    ${may("audit") && html`<a class="button plain" href=${at("/audit", { tenant: name })}>Audit</a>`}
  `;
}

/** @param {string} name @param {() => unknown} done */
async function setLimit(name, done) {
  if (await limitDialog({ scope: "tenant", name })) await done();
}

/** @param {{tenant: Tenant, reload: () => unknown, running: number | null}} props running: of all tenants, if known */
function Known({ tenant, reload, running }) {
  return html`
    <${WhyWaiting} tenant=${tenant} reload=${reload} />
    <${Counts} tenant=${tenant} />
    <div class="columns even">
      <div>
        ${running !== null && html`<${Panel} title="Share" note="by weight">
          <${RunningShare} tenant=${tenant} running=${running} />
          <p class="quiet">
            ${shareWords(tenant)}
          </p>
        <//>`}
        <${Budget} tenant=${tenant} />
      </div>
      <div>
        <${Quotas} tenant=${tenant} />
        <${LimitPanel} tenant=${tenant} />
      </div>
    </div>
    <${LiveJobs} where=${{ tenant: tenant.name }} />
  `;
}

/** @param {Tenant} tenant */
function shareWords({ share }) {
  if (share === null) return "None of its jobs is due. What a tenant does not use, others get.";
  const fair = percent(share, 1);
  return `Of the tenants with due jobs it is entitled to ${fair} of a queue; what others do not use, it gets as well.`;
}

/** What keeps its jobs from starting, each with its remedy. @param {{tenant: Tenant, reload: () => unknown}} props */
function WhyWaiting({ tenant, reload }) {
  const reasons = reasonsOf(tenant, reload);
  if (!reasons.length) return null;
  return html`<${Panel}
    title="Why do its jobs wait?"
    tone="attention"
    note=${`${plural(tenant.due, "due job")} ${tenant.due === 1 ? "waits" : "wait"}`}
  >
    <ul class="lines">
      ${reasons.map(
        ({ state, title, detail, help }) => html`<li class="tone-attention">
          <${StateGlyph} state=${state} />
          <div><p><b>${title}</b></p><p>${detail}</p></div>
          ${help ?? html`<span></span>`}
        </li>`,
      )}
    </ul>
  <//>`;
}

/** @param {Tenant} tenant @param {() => unknown} reload @returns {Reason[]} */
function reasonsOf(tenant, reload) {
  const { name, gate, budget, limit } = tenant;
  /** @type {(Reason | false | null)[]} */
  const found = [
    gate && {
      state: "paused",
      title: `${pauseSummary(gate)}.`,
      detail: gate.until_at ? html`Resumes automatically <${When} at=${gate.until_at} />.` : "Until resumed.",
      help: html`<${PauseButton} scope="tenant" need="operate" name=${name} gate=${gate} done=${reload} />`,
    },
    budget?.level === "reached" && {
      state: "full",
      title: `${money(committed(budget))} of ${money(budget.cents)} spent ${THIS_PERIOD[budget.period]}.`,
      detail: html`
        Nothing of it begins until the period ends <${When} at=${budget.ends_at} />, or the budget is raised.
      `,
      help: html`<${Button} tiny need=${CHANGE} onClick=${() => tenantDialog(tenant, reload).then(() => {})}>
        Raise budget…
      <//>`,
    },
    limit !== null &&
      isHeldUp({ ...tenant, budget: null }) && {
        state: "full",
        title: html`
          Limit <code>tenant:${clean(name)}</code> is
          full: ${`${count(limit.running)} of ${count(limit.most ?? 0)} running.`}
        `,
        detail: "The next job of it starts when one of these ends.",
        help: html`<span class="acts">
          ${may(CHANGE) && html`<a class="button tiny" href=${limitAt(`tenant:${name}`)}>Change limit</a>`}
          <a class="button tiny" href=${at("/jobs", { tenant: name, state: "running" })}>See holders</a>
        </span>`,
      },
  ];
  return tenant.due ? /** @type {Reason[]} */ (found.filter(Boolean)) : [];
}

/** @param {{tenant: Tenant}} props */
function Counts({ tenant }) {
  const { name, limit, budget } = tenant;
  const jobs = (/** @type {string} */ state) => at("/jobs", { tenant: name, state });
  return html`<div class="counts five">
    <${Counted}
      to=${jobs("running")}
      state="running"
      word="Running"
      value=${count(tenant.running)}
      clause=${limit?.most != null ? `of ${count(limit.most)} at most` : "no limit"}
    />
    <${Counted}
      to=${jobs("queued")}
      state="queued"
      word="Waiting"
      value=${`${tenant.estimated ? "≈ " : ""}${count(tenant.waiting)}`}
      clause=${tenant.due
        ? html`${count(tenant.due)} due, the oldest for <${OldestDue} seconds=${tenant.oldest_due_s} />`
        : "none due"}
    />
    <${Counted}
      to=${jobs("succeeded")}
      state="succeeded"
      word="Succeeded"
      value=${count(tenant.done)}
      clause="of its newest 1,000 jobs"
    />
    <${Counted}
      to=${jobs("failed")}
      state="failed"
      word="Failed"
      value=${count(tenant.failed)}
      loud=${tenant.failed > 0}
      clause=${tenant.failed + tenant.done
        ? `${percent(tenant.failed, tenant.failed + tenant.done)} of those finished`
        : "of its newest 1,000 jobs"}
    />
    <${Counted}
      to=${at("/jobs", { tenant: name })}
      state="queued"
      bare
      word=${`Spent ${THIS_PERIOD[budget?.period ?? "day"]}`}
      value=${money(tenant.spent_cents)}
      clause=${budget ? `of ${money(budget.cents)}` : "no budget"}
    />
  </div>`;
}

/**
 * @param {{to: string, state: string, word: string, value: string, clause: unknown, loud?: boolean,
 *   bare?: boolean}} props
 *   bare: without a glyph
 */
function Counted({ to, state, word, value, clause, loud = false, bare = false }) {
  return html`<a href=${to} class=${`tone-${state} ${loud ? "loud" : ""}`}>
    <span class="word">${!bare && html`<${StateGlyph} state=${state} />`}${word}</span>
    <span class="value">${value}</span>
    <span class="clause">${clause}</span>
  </a>`;
}

/** @param {{tenant: Tenant}} props */
function Budget({ tenant: { budget, name } }) {
  if (!budget)
    return html`<${Panel} title="Budget">
      <p class="quiet">None. With one, nothing of ${clean(name)} begins beyond it until the period ends.</p>
    <//>`;
  const guess = forecast(budget, now.value);
  return html`<${Panel}
    title=${`Spent ${THIS_PERIOD[budget.period]}`}
    note=${`${money(budget.spent)} of ${money(budget.cents)}`}
  >
    <${Fill}
      part=${committed(budget)}
      whole=${budget.cents}
      isFull=${budget.level !== null}
      tick=${budget.alert === null ? null : budget.alert * budget.cents}
      label=${`${money(budget.spent)} of ${money(budget.cents)} spent, ${money(budget.reserved)} reserved`}
    />
    <${Facts}
      items=${[
        budget.reserved > 0 && ["Reserved", `${money(budget.reserved)} by the prices of running jobs`],
        budget.alert !== null && [
          "Alert",
          `at ${money(budget.alert * budget.cents)} (${percent(budget.alert, 1)})${budget.level ? ", passed" : ""}`,
        ],
        guess !== null && [
          "Forecast",
          html`<span class=${guess > budget.cents ? "over" : ""}>
            ≈ ${money(guess)} by the end, at the pace of ${THIS_PERIOD[budget.period]}
          </span>`,
        ],
        ["Ends", html`<${When} at=${budget.ends_at} />`],
      ]}
    />
    <p class="quiet">At the budget nothing more of ${clean(name)} begins; what runs continues.</p>
  <//>`;
}

/** @param {{tenant: Tenant}} props */
function Quotas({ tenant }) {
  return html`<${Panel} title="Quotas">
    <ul class="quotas">
      ${tenant.quotas.map(
        (quota) => html`<li key=${quota.name} class=${quotaUse(quota) >= NEARLY ? "tone-attention" : ""}>
          <span>${QUOTA_WORDS[quota.name] ?? quota.name}</span>
          ${quota.most === null
            ? html`<span class="faint">no quota</span>`
            : html`<${Fill}
                part=${quota.used}
                whole=${quota.most || 1}
                isFull=${quotaUse(quota) >= NEARLY}
                label=${quotaWords(quota)}
              />`}
          <span class="num">${quotaWords(quota)}</span>
        </li>`,
      )}
    </ul>
    <p class="quiet">
      Over a quota, enqueueing is refused with the reason; other tenants are not affected. Counts may lag by a second.
    </p>
  <//>`;
}

/** @param {{tenant: Tenant}} props */
function LimitPanel({ tenant }) {
  const { name, limit } = tenant;
  const held = limit && { ...limit, is_full: isHeldUp({ ...tenant, budget: null }) };
  return html`<${Panel}
    title="Limit"
    note=${limit && may(CHANGE) && html`<a href=${limitAt(`tenant:${name}`)}>Change limit</a>`}
  >
    ${held
      ? html`<${LimitUse} held=${held} />`
      : html`<p class="quiet">None for this tenant. Limits of queues, tasks and keys hold for its jobs as well.</p>`}
  <//>`;
}
