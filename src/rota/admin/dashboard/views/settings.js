// @ts-check
// Settings: account, appearance, sessions, API tokens, users, retention, masked fields, and every setting with
// its source.

import { api, signOut } from "../api.js";
import { write } from "../exact.js";
import { useLoad } from "../load.js";
import { Button, Choice } from "../parts/base/button.js";
import { Command } from "../parts/base/copy.js";
import { WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { Code, Facts, PageHeader, Panel } from "../parts/base/panel.js";
import { Table, byName } from "../parts/base/table.js";
import { Tokens } from "../parts/operate/tokens.js";
import { ChangePassword, Sessions } from "../parts/operate/sessions.js";
import { Users } from "../parts/operate/users.js";
import { PERMISSION_LABELS, labelOf } from "../labels.js";
import { may, me, ownZone, query, refine, theme, zone } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").Setting} Setting */

export default function Settings() {
  const settings = useLoad((signal) => api.get("/settings", {}, signal), [], { when: may("admin.shared") });
  return html`
    <${PageHeader} title="Settings">Your account, access for others, and configuration.<//>
    <div class="columns even"><${You} /><${Look} /></div>
    <${Sessions} />
    ${may("admin") && html`<${Tokens} /><${Users} />`}
    ${may("admin.shared") && html`<${Kept} settings=${settings} /><${All} settings=${settings} />`}
  `;
}

function You() {
  const who = me.value;
  if (!who) return null;
  return html`<${Panel} title="Account" note=${html`<${ChangePassword} /><${Button} onClick=${signOut}>Sign out<//>`}>
    <${Facts}
      items=${[
        ["Name", html`<${Code}>${who.name}<//>`],
        ["Role", who.role],
        ["Tenant", who.tenant ? html`<${Code}>${who.tenant}<//>` : "all"],
        ["Payloads", who.payloads ? "shown, except secret fields" : "hidden: your account has no access to them"],
        ["Permissions", who.permissions.map((one) => labelOf(PERMISSION_LABELS, one)).join(", ")],
        who.store && ["Store", html`<${Code}>${who.store}<//>`],
        ["Version", `rota ${who.version}`],
      ]}
    />
  <//>`;
}

function Look() {
  /** @type {[string, string][]} */
  const zones =
    ownZone === "UTC"
      ? [["UTC", "UTC"]]
      : [
          ["UTC", "UTC"],
          [ownZone, ownZone],
        ];
  return html`<${Panel} title="Appearance">
    <${Facts}
      items=${[
        [
          "Theme",
          html`<${Choice}
            label="Theme"
            value=${theme.value}
            options=${[
              ["system", "System"],
              ["light", "Light"],
              ["dark", "Dark"],
            ]}
            onChange=${(/** @type {string} */ one) => (theme.value = one)}
          />`,
        ],
        [
          "Times in",
          html`<${Choice}
            label="Time zone"
            value=${zone.value}
            options=${zones}
            onChange=${(/** @type {string} */ one) => (zone.value = one)}
          />`,
        ],
      ]}
    />
    <p class="quiet">Stored in this browser. Schedules also show their own time zone.</p>
  <//>`;
}

/**
 * Retention, and fields that are never shown.
 * @param {{settings: import("../load.js").Loaded<{items: Setting[]}>}} props
 */
function Kept({ settings }) {
  return html`<div class="columns even">
    <${Panel} title="Retention">
      <${WhenLoaded} of=${settings}>
        ${(/** @type {{items: Setting[]}} */ { items }) => html`
          <${Facts} items=${["succeeded", "failed", "cancelled", "audit"].map((one) => retention(items, one))} />
          <p class="quiet">Workers delete older jobs and audit entries in small steps.</p>
        `}
      <//>
    <//>
    <${Panel} title="Masked fields">
      <${WhenLoaded} of=${settings}>
        ${(/** @type {{items: Setting[]}} */ { items }) => html`
          <ul class="masks">
            ${/** @type {string[]} */ (valueOf(items, "secret_fields") ?? []).map(
              (/** @type {string} */ one) => html`<li><${Code}>${one}<//></li>`,
            )}
          </ul>
          <p class="quiet">
            Fields with these names are masked in payloads, outputs, errors, logs and the audit log, for every role.
          </p>
        `}
      <//>
    <//>
  </div>`;
}

/** @param {Setting[]} items @param {string} name */
function valueOf(items, name) {
  return items.find((one) => one.name === name)?.value;
}

/** @param {Setting[]} items @param {string} what @returns {[string, unknown]} */
function retention(items, what) {
  const days = Number(valueOf(items, `retention_${what}_days`));
  return [what === "audit" ? "Audit log" : `${what[0].toUpperCase()}${what.slice(1)} jobs`, plural(days, "day")];
}

/** @param {{settings: import("../load.js").Loaded<{items: Setting[]}>}} props */
function All({ settings }) {
  const columns = useMemo(columnsOf, []);
  const which = query.value.get("settings") === "changed" ? "changed" : "all";
  const items = settings.data?.items ?? null;
  const changed = items?.filter((/** @type {Setting} */ one) => one.source !== "default") ?? null;
  return html`<${Panel}
    title="All settings"
    note=${html`<${Choice}
      label="Settings to show"
      value=${which}
      options=${[
        ["all", items ? `All ${count(items.length)}` : "All"],
        ["changed", changed ? `Changed ${count(changed.length)}` : "Changed"],
      ]}
      onChange=${(/** @type {string} */ one) => refine({ settings: one === "all" ? null : one }, { replace: true })}
    />`}
  >
    ${settings.error && html`<${ErrorNotice} error=${settings.error} retry=${settings.reload} />`}
    <${Table}
      caption="Settings"
      class="settings"
      columns=${columns}
      rows=${which === "all" ? items : changed}
      skeleton=${8}
      id=${byName}
    />
    <div class="how">
      <p class="quiet">
        Read when a process starts. Precedence: flag or keyword argument, environment, rota.toml, default. To change a
        setting:
      </p>
      <${Command} text="rota config set retention_failed_days 60" />
    </div>
  <//>`;
}

/** @returns {import("../parts/base/table.js").Column<Setting>[]} */
function columnsOf() {
  return [
    {
      title: "Setting",
      kind: "head",
      width: "34%",
      cell: (one) => html`<span class="name">${clean(one.name)}</span><span class="sub">${clean(one.help)}</span>`,
    },
    { title: "Value", kind: "full", cell: (one) => html`<${Value} value=${one.value} />` },
    {
      title: "Default",
      width: "16%",
      kind: "wide-only",
      cell: (one) => (same(one) ? html`<span class="faint">default</span>` : html`<${Value} value=${one.default} />`),
    },
    {
      title: "Source",
      width: "14%",
      cell: (one) =>
        one.source === "default" ? html`<span class="soft">default</span>` : html`<b>${line(one.source)}</b>`,
    },
    {
      title: "Range",
      width: "9rem",
      kind: "wide-only",
      cell: (one) =>
        one.range
          ? html`<span class="nowrap">${count(one.range[0])} – ${count(one.range[1])}</span>`
          : html`<span class="faint">—</span>`,
    },
  ];
}

/** @param {Setting} one */
function same(one) {
  return write(one.value) === write(one.default);
}

/** @param {{value: unknown}} props */
function Value({ value }) {
  if (value === null || (Array.isArray(value) && !value.length)) return html`<span class="faint">none</span>`;
  const text = Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : (write(value) ?? "");
  return html`<${Code}>${line(text, 600)}<//>`;
}
