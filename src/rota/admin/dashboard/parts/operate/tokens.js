// @ts-check
// API tokens. A token is shown once, when it is created.

import { api } from "../../api.js";
import { ROLE_LABELS, optionsOf } from "../../labels.js";
import { useLoad } from "../../load.js";
import { me, now } from "../../state.js";
import { html, useMemo, useState } from "../../ui.js";
import { clean, count, line } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Button } from "../base/button.js";
import { Copy } from "../base/copy.js";
import { FormError, ask, show, useAct } from "../base/dialog.js";
import { Empty, ErrorNotice } from "../base/empty.js";
import { Field, Options, onValue } from "../base/form.js";
import { Code, Panel } from "../base/panel.js";
import { Table, byId } from "../base/table.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";

/** @typedef {import("../../types").TokenView} Token */
/** @typedef {import("../../types").NewToken} NewToken */

const DAY = 86_400;
const LIFETIMES = [
  [`${DAY}`, "1 day"],
  [`${7 * DAY}`, "7 days"],
  [`${30 * DAY}`, "30 days"],
  [`${90 * DAY}`, "90 days"],
  [`${365 * DAY}`, "1 year"],
  ["", "never"],
];
const OVERLAPS = [
  ["3600", "1 hour"],
  [`${DAY}`, "1 day"],
  [`${7 * DAY}`, "7 days"],
  ["0", "not at all"],
];
/** @type {[string, string][]} */
export const PAYLOADS = [
  ["", "Default for the role"],
  ["yes", "Visible"],
  ["no", "Hidden"],
];

/** The roles that the user may grant: at most their own. */
export function grantable() {
  const roles = optionsOf(ROLE_LABELS);
  return roles.slice(0, roles.findIndex(([role]) => role === me.value?.role) + 1);
}

export function Tokens() {
  const tokens = useLoad((signal) => api.get("/tokens", {}, signal), [], { on: ["audit"] });
  const columns = useMemo(() => columnsOf(tokens.reload), []);
  const create = async () => {
    if (await createToken()) await tokens.reload();
  };
  const rows = tokens.data?.items ?? null;
  return html`<${Panel} title="API tokens" note=${html`<${Button} need="admin" onClick=${create}>Create token<//>`}>
    ${tokens.error && html`<${ErrorNotice} error=${tokens.error} retry=${tokens.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty} title="No API tokens yet" command="rota token create --role operator --expires 90d">
          An API token gives a person or a program access to this dashboard and the API, as far as its role allows.
        <//>`
      : html`<${Table}
          caption="API tokens"
          columns=${columns}
          rows=${rows}
          skeleton=${2}
          id=${byId}
          state=${(/** @type {Token} */ token) => (isOver(token) ? "is-off" : "")}
        />`}
  <//>`;
}

/** @param {Token} token */
function isOver(token) {
  return token.expires_at !== null && Date.parse(token.expires_at) <= now.peek();
}

/** @param {() => Promise<void>} reload */
function columnsOf(reload) {
  return [
    {
      title: "Token",
      kind: "head",
      cell: (/** @type {Token} */ token) =>
        html`
          <span class="name">${line(token.name) || "no name"}</span>
          <span class="sub mono">${clean(token.id)}</span>
        `,
    },
    {
      title: "Role",
      width: "8rem",
      cell: (/** @type {Token} */ token) =>
        html`${token.role}<span class="sub" title=${scopeOf(token)}>${scopeOf(token)}</span>`,
    },
    {
      title: "Tenant",
      width: "14%",
      cell: (/** @type {Token} */ token) =>
        token.tenant ? html`<${Code} class="clip">${token.tenant}<//>` : html`<span class="soft">all</span>`,
    },
    {
      title: "Created",
      width: "10rem",
      kind: "wide-only",
      cell: (/** @type {Token} */ token) =>
        html`
          <${When} at=${token.created_at} />
          <span class="sub" title=${madeBy(token)}>${madeBy(token)}</span>
        `,
    },
    {
      title: "Last used",
      width: "8rem",
      cell: (/** @type {Token} */ token) =>
        html`
          <${When} at=${token.last_used_at} none="never" />
          ${token.last_used_from && html`<span class="sub">from ${line(token.last_used_from)}</span>`}
        `,
    },
    {
      title: "Expires",
      width: "10rem",
      cell: (/** @type {Token} */ token) =>
        isOver(token) ? html`<${Badge} state="off">expired<//>` : html`<${When} at=${token.expires_at} none="never" />`,
    },
    {
      title: "",
      kind: "act",
      width: "13rem",
      cell: (/** @type {Token} */ token) => {
        const name = line(token.name) || token.id;
        return html`<div class="acts">
          ${!isOver(token) && html`<${Button}
            tiny
            need="admin"
            label=${`Rotate ${name}`}
            onClick=${() => rotate(token, reload)}
          >
            Rotate
          <//>`}
          <${Button} tiny need="admin" label=${`Revoke ${name}`} onClick=${() => revoke(token, reload)}>Revoke<//>
        </div>`;
      },
    },
  ];
}

/** @param {Token} token */
function scopeOf(token) {
  const names = [...token.tasks, ...token.queues];
  if (token.role === "producer") return names.length ? line(names.join(", ")) : "all tasks";
  return token.payloads ? "payloads visible" : "payloads hidden";
}

/** @param {Token} token */
function madeBy(token) {
  return `by ${line(token.created_by)}${token.ends_with ? ", ends with it" : ""}`;
}

/** @param {Token} token @param {() => Promise<void>} reload */
async function rotate(token, reload) {
  const created = await show(RotateForm, { token }, { wide: true });
  if (!created) return;
  await show(NewTokenDialog, { created }, { wide: true });
  await reload();
}

/** @param {import("../base/dialog.js").DialogControls<NewToken> & {token: Token}} props */
function RotateForm({ token, done, busy }) {
  const [overlap, setOverlap] = useState("3600");
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.post(`/tokens/${encodeURIComponent(token.id)}/rotate`, { overlap_s: Number(overlap) }),
  );
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Rotate ${line(token.name) || token.id}?</h2>
    <div class="dialog-body">
      <p>It gets a new secret, shown once. Its role, tenant and end stay. Sessions that began with it end.</p>
    </div>
    <${Field} label="The old secret stays valid for">
      <select value=${overlap} onChange=${onValue(setOverlap)}>
        ${OVERLAPS.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
      </select>
    <//>
    ${error && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Rotate<//>
    </div>
  </form>`;
}

/** @param {Token} token @param {() => Promise<void>} reload */
async function revoke(token, reload) {
  const name = line(token.name) || token.id;
  const done = await ask({
    title: `Revoke ${name}?`,
    body: html`
      <p>
        Requests with it are denied from now on, and its sessions end within seconds. Tokens that end with it are
        revoked too. Jobs it enqueued continue.
      </p>
      <p>This cannot be undone.</p>
    `,
    verb: "Revoke",
    danger: true,
    act: async () => (await api.delete(`/tokens/${encodeURIComponent(token.id)}`), true),
  });
  if (!done) return;
  toast(html`Revoked API token ${name}.`);
  await reload();
}

/** Ask for its properties, create it, and show it once. @returns {Promise<Token | null>} */
async function createToken() {
  const created = await show(Form, {}, { wide: true });
  if (created) await show(NewTokenDialog, { created }, { wide: true });
  return created;
}

/** @param {import("../base/dialog.js").DialogControls<NewToken>} props */
function Form({ done, busy }) {
  const [values, setValues] = useState({
    name: "",
    role: "viewer",
    tenant: me.value?.tenant ?? "",
    length: `${30 * DAY}`,
    payloads: "",
    tasks: "",
    queues: "",
  });
  const isProducer = values.role === "producer";
  const body = {
    name: values.name.trim(),
    role: values.role,
    tenant: values.tenant.trim() || null,
    expires_s: values.length ? Number(values.length) : null,
    payloads: values.payloads ? values.payloads === "yes" : null,
    tasks: isProducer ? namesIn(values.tasks) : [],
    queues: isProducer ? namesIn(values.queues) : [],
  };
  const { submit, error, acting } = useAct({ done, busy }, () => api.post("/tokens", body));
  const put = (/** @type {string} */ name) => onValue((value) => setValues({ ...values, [name]: value }));
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Create API token</h2>
    <${Field}
      label="Name"
      hint="What it is for. Shown in lists and in the audit log."
      error=${error?.field === "name" ? error.message : null}
    >
      <input type="text" maxlength="200" autofocus value=${values.name} onInput=${put("name")} />
    <//>
    <${Options}
      legend="Role"
      name="token-role"
      value=${values.role}
      options=${grantable()}
      onChange=${(/** @type {string} */ role) => setValues({ ...values, role })}
    />
    ${isProducer && html`<div class="fields">
      <${Field} label="Tasks" hint="With commas between them. Leave empty for all.">
        <input type="text" value=${values.tasks} onInput=${put("tasks")} />
      <//>
      <${Field} label="Queues" hint="With commas between them. Leave empty for all.">
        <input type="text" value=${values.queues} onInput=${put("queues")} />
      <//>
    </div>`}
    <div class="fields">
      <${Field}
        label="Tenant"
        hint=${me.value?.tenant ? "Limited to your tenant." : "Leave empty for all tenants."}
        error=${error?.field === "tenant" ? error.message : null}
      >
        <input
          type="text"
          maxlength="200"
          readonly=${Boolean(me.value?.tenant)}
          value=${values.tenant}
          onInput=${put("tenant")}
        />
      <//>
      <${Field} label="Expires after">
        <select value=${values.length} onChange=${put("length")}>
          ${LIFETIMES.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
        </select>
      <//>
      <${Field} label="Payloads">
        <select value=${values.payloads} onChange=${put("payloads")}>
          ${PAYLOADS.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
        </select>
      <//>
    </div>
    ${error && !["name", "tenant"].includes(error.field ?? "") && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Create token<//>
    </div>
  </form>`;
}

/** @param {string} text */
function namesIn(text) {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
}

/** @param {import("../base/dialog.js").DialogControls<true> & {created: NewToken}} props */
function NewTokenDialog({ created, done }) {
  return html`
    <h2 id="dialog-title">Copy the API token now</h2>
    <div class="dialog-body">
      <p>
        Shown once; rota stores only a hash. Anyone who has it can act
        as ${/^[aeiou]/.test(created.role) ? "an" : "a"} ${created.role}
        ${created.tenant && html` in tenant <code>${clean(created.tenant)}</code>`}
        ${created.expires_at && html` until <${When} at=${created.expires_at} />`}.
      </p>
    </div>
    <div class="once">
      <code data-token>${created.token}</code>
      <${Copy} text=${created.token} kind="" label="Copy API token" />
    </div>
    <p class="hint">${count(created.token.length)} characters. Store it like a password.</p>
    <div class="acts"><${Button} kind="main" onClick=${() => done(true)}>Done<//></div>
  `;
}
