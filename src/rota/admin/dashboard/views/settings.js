// @ts-check
// Settings: who looks and how, who may come in, what is kept and what is hidden, and every setting with its source.

import { api, signOut } from "../api.js";
import { write } from "../exact.js";
import { useLoad } from "../load.js";
import { Button, Choice } from "../parts/base/button.js";
import { Command } from "../parts/base/copy.js";
import { WhenLoaded, ErrorNotice } from "../parts/base/empty.js";
import { Code, Facts, PageHeader, Panel } from "../parts/base/panel.js";
import { Table } from "../parts/base/table.js";
import { Tokens } from "../parts/operate/tokens.js";
import { Users } from "../parts/operate/users.js";
import { may, me, ownZone, query, refine, theme, zone } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").Setting} Setting */

const MAY = {
  read: "look",
  operate: "operate jobs and schedules",
  audit: "read the audit log",
  admin: "make tokens and users",
  "read.shared": "see workers and tasks",
  "operate.shared": "pause what all share",
  "admin.shared": "see the settings",
};

export default function Settings() {
  const settings = useLoad((signal) => api.get("/settings", {}, signal), [], { when: may("admin.shared") });
  return html`
    <${PageHeader} title="Settings">Who you are, who else may come in, and how this installation is set up.<//>
    <div class="columns even"><${You} /><${Look} /></div>
    ${may("admin") && html`<${Tokens} /><${Users} />`}
    ${may("admin.shared") && html`<${Kept} settings=${settings} /><${All} settings=${settings} />`}
  `;
}

function You() {
  const who = me.value;
  if (!who) return null;
  return html`<${Panel} title="You" note=${html`<${Button} onClick=${signOut}>Sign out<//>`}>
    <${Facts}
      items=${[
        ["Name", html`<${Code}>${who.name}<//>`],
        ["Role", who.role],
        ["Tenant", who.tenant ? html`<${Code}>${who.tenant}<//>` : "all"],
        ["Payloads", who.payloads ? "shown, except secret fields" : "hidden: your token does not show them"],
        ["You may", who.permissions.map((one) => MAY[/** @type {keyof typeof MAY} */ (one)] ?? one).join(", ")],
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
  return html`<${Panel} title="Look">
    <${Facts}
      items=${[
        [
          "Colours",
          html`<${Choice}
            label="Colours"
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
    <p class="quiet">Remembered by this browser. Schedules also tell their own zone.</p>
  <//>`;
}

/** What is kept how long, what is never shown. @param {{settings: import("../load.js").Loaded<any>}} props */
function Kept({ settings }) {
  return html`<div class="columns even">
    <${Panel} title="Kept for">
      <${WhenLoaded} of=${settings}>
        ${(/** @type {{items: Setting[]}} */ { items }) => html`
          <${Facts} items=${["succeeded", "failed", "cancelled", "audit"].map((one) => retention(items, one))} />
          <p class="quiet">Workers remove what is older, a little at a time.</p>
        `}
      <//>
    <//>
    <${Panel} title="Never shown">
      <${WhenLoaded} of=${settings}>
        ${(/** @type {{items: Setting[]}} */ { items }) => html`
          <ul class="masks">
            ${named(items, "secret_fields").value.map(
              (/** @type {string} */ one) => html`<li><${Code}>${one}<//></li>`,
            )}
          </ul>
          <p class="quiet">
            Fields of these names are masked in payloads, outputs, errors, logs and the audit log, for every role.
          </p>
        `}
      <//>
    <//>
  </div>`;
}

/** @param {Setting[]} items @param {string} name @returns {any} */
function named(items, name) {
  return items.find((one) => one.name === name) ?? { value: [] };
}

/** @param {Setting[]} items @param {string} what @returns {[string, any]} */
function retention(items, what) {
  const days = Number(named(items, `retention_${what}_days`).value);
  return [what === "audit" ? "Audit log" : `${what[0].toUpperCase()}${what.slice(1)} jobs`, plural(days, "day")];
}

/** @param {{settings: import("../load.js").Loaded<any>}} props */
function All({ settings }) {
  const columns = useMemo(columnsOf, []);
  const which = query.value.get("settings") === "changed" ? "changed" : "all";
  const items = settings.data?.items ?? null;
  const changed = items?.filter((/** @type {Setting} */ one) => one.source !== "default") ?? null;
  return html`<${Panel}
    title="All settings"
    note=${html`<${Choice}
      label="Which settings"
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
      id=${(/** @type {Setting} */ one) => one.name}
    />
    <div class="how">
      <p class="quiet">
        Read when a process starts: a keyword or flag counts before the environment, that before rota.toml, that before
        the default. Here they can be read; to change one:
      </p>
      <${Command} text="rota config set retention_failed_days 60" />
    </div>
  <//>`;
}

function columnsOf() {
  return [
    {
      title: "Setting",
      kind: "head",
      width: "34%",
      cell: (/** @type {Setting} */ one) =>
        html`<span class="name">${clean(one.name)}</span><span class="sub">${clean(one.help)}</span>`,
    },
    { title: "Value", kind: "full", cell: (/** @type {Setting} */ one) => html`<${Value} value=${one.value} />` },
    {
      title: "Default",
      width: "16%",
      kind: "wide-only",
      cell: (/** @type {Setting} */ one) =>
        same(one) ? html`<span class="faint">the same</span>` : html`<${Value} value=${one.default} />`,
    },
    {
      title: "Source",
      width: "14%",
      cell: (/** @type {Setting} */ one) =>
        one.source === "default" ? html`<span class="soft">default</span>` : html`<b>${line(one.source)}</b>`,
    },
    {
      title: "Range",
      width: "9rem",
      kind: "wide-only",
      cell: (/** @type {Setting} */ one) =>
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

/** @param {{value: any}} props */
function Value({ value }) {
  if (value === null || (Array.isArray(value) && !value.length)) return html`<span class="faint">none</span>`;
  const text = Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : (write(value) ?? "");
  return html`<${Code}>${line(text, 600)}<//>`;
}
