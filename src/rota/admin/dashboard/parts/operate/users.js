// @ts-check
// People who sign in with a password.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { me } from "../../state.js";
import { html, useMemo, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, ask, show, useAct } from "../base/dialog.js";
import { Empty, ErrorNotice } from "../base/empty.js";
import { Field, Options } from "../base/form.js";
import { Code, Panel } from "../base/panel.js";
import { Table } from "../base/table.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";
import { PAYLOADS, grantable } from "./tokens.js";

/** @typedef {import("../../types").UserView} User */

const SHORTEST = 12;

export function Users() {
  const users = useLoad((signal) => api.get("/users", {}, signal), [], { on: ["audit"] });
  const columns = useMemo(() => columnsOf(users.reload), []);
  const rows = users.data?.items ?? null;
  return html`<${Panel}
    title="Users"
    note=${html`<${Button} need="admin" onClick=${() => edit(null, users.reload)}>Add user<//>`}
  >
    ${users.error && html`<${ErrorNotice} error=${users.error} retry=${users.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty} title="Nobody signs in with a password" command="rota users set ada --role operator">
          Tokens are enough for programs; a name and a password are easier for people.
        <//>`
      : html`<${Table}
          caption="Users"
          columns=${columns}
          rows=${rows}
          skeleton=${1}
          id=${(/** @type {User} */ user) => user.name}
        />`}
  <//>`;
}

/** @param {() => Promise<void>} reload */
function columnsOf(reload) {
  return [
    {
      title: "User",
      kind: "head",
      cell: (/** @type {User} */ user) => html`<span class="name">${line(user.name)}</span>`,
    },
    {
      title: "Role",
      width: "8rem",
      cell: (/** @type {User} */ user) =>
        html`${user.role}<span class="sub">${user.payloads ? "sees payloads" : "sees no payloads"}</span>`,
    },
    {
      title: "Tenant",
      width: "20%",
      cell: (/** @type {User} */ user) =>
        user.tenant ? html`<${Code} class="clip">${user.tenant}<//>` : html`<span class="soft">all</span>`,
    },
    { title: "Since", width: "10rem", cell: (/** @type {User} */ user) => html`<${When} at=${user.created_at} />` },
    {
      title: "",
      kind: "act",
      width: "13rem",
      cell: (/** @type {User} */ user) =>
        html`<div class="acts">
          <${Button} tiny need="admin" label=${`Change ${line(user.name)}`} onClick=${() => edit(user, reload)}>
            Change
          <//>
          <${Button} tiny need="admin" label=${`Remove ${line(user.name)}`} onClick=${() => remove(user, reload)}>
            Remove
          <//>
        </div>`,
    },
  ];
}

/** @param {User} user @param {() => Promise<void>} reload */
async function remove(user, reload) {
  const done = await ask({
    title: `Remove ${line(user.name)}?`,
    body: html`<p>
      Nobody signs in by this name any more, and whoever is signed in by it is signed out within seconds. What they did
      stays in the audit log.
    </p>`,
    verb: "Remove",
    danger: true,
    act: async () => (await api.delete(`/users/${encodeURIComponent(user.name)}`), true),
  });
  if (!done) return;
  toast(html`${line(user.name)} is removed.`);
  await reload();
}

/** @param {User | null} user null: a new one @param {() => Promise<void>} reload */
async function edit(user, reload) {
  const made = await show(Form, { user }, { wide: true });
  if (!made) return;
  toast(html`${line(made.name)} can sign in.`);
  await reload();
}

/** @param {any} props */
function Form({ user, done, busy }) {
  const [values, setValues] = useState({
    name: user?.name ?? "",
    password: "",
    role: user?.role ?? "viewer",
    tenant: user?.tenant ?? me.value?.tenant ?? "",
    payloads: "",
  });
  const body = {
    password: values.password,
    role: values.role,
    tenant: values.tenant.trim() || null,
    payloads: values.payloads ? values.payloads === "yes" : null,
    new: !user,
  };
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.put(`/users/${encodeURIComponent(values.name.trim())}`, body),
  );
  const taken = error?.code === "already_registered";
  const put = (/** @type {string} */ name) => (/** @type {any} */ event) =>
    setValues({ ...values, [name]: event.target.value });
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${user ? html`Change <code>${line(user.name)}</code>` : "Add user"}</h2>
    ${user && html`<div class="dialog-body"><p>All is set anew, the password too. Their sessions end.</p></div>`}
    ${!user && html`<${Field} label="Name" error=${taken ? error.message : null}>
      <input
        type="text"
        required
        maxlength="200"
        autocomplete="off"
        autofocus
        value=${values.name}
        onInput=${put("name")}
      />
    <//>`}
    <${Field}
      label=${user ? "New password" : "Password"}
      hint=${`At least ${SHORTEST} characters; a sentence is good.`}
      error=${error?.field === "password" ? error.message : null}
    >
      <input
        type="password"
        required
        minlength=${SHORTEST}
        maxlength="1000"
        autocomplete="new-password"
        value=${values.password}
        onInput=${put("password")}
      />
    <//>
    <${Options}
      legend="Role"
      name="user-role"
      value=${values.role}
      options=${grantable()}
      onChange=${(/** @type {string} */ role) => setValues({ ...values, role })}
    />
    <div class="fields">
      <${Field} label="Tenant" hint=${me.value?.tenant ? "Yours, as you belong to it." : "Empty: all tenants."}>
        <input
          type="text"
          maxlength="200"
          readonly=${Boolean(me.value?.tenant)}
          value=${values.tenant}
          onInput=${put("tenant")}
        />
      <//>
      <${Field} label="Payloads">
        <select value=${values.payloads} onChange=${put("payloads")}>
          ${PAYLOADS.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
        </select>
      <//>
    </div>
    ${error && !taken && error.field !== "password" && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Keep as it is<//>
      <${Button} type="submit" kind="main" disabled=${acting}>${user ? "Change" : "Add user"}<//>
    </div>
  </form>`;
}
