// @ts-check
// Users who sign in with a password.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { me } from "../../state.js";
import { html, useMemo, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, ask, show, useAct } from "../base/dialog.js";
import { Empty, ErrorNotice } from "../base/empty.js";
import { Field, Options, onValue } from "../base/form.js";
import { Code, Panel } from "../base/panel.js";
import { Table, byName } from "../base/table.js";
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
    note=${html`<${Button} need="admin" onClick=${() => edit(null, users.reload)}>Create user<//>`}
  >
    ${users.error && html`<${ErrorNotice} error=${users.error} retry=${users.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty} title="No password users yet" command="rota users set ada --role operator">
          API tokens suit programs; a name and a password are easier for people.
        <//>`
      : html`<${Table} caption="Users" columns=${columns} rows=${rows} skeleton=${1} id=${byName} />`}
  <//>`;
}

/** @param {() => Promise<void>} reload */
function columnsOf(reload) {
  return [
    {
      title: "User",
      kind: "head",
      cell: (/** @type {User} */ user) => html`
        <span class="name">${line(user.name)}</span>
        ${user.must_change && html`<span class="sub">must change the password</span>`}
      `,
    },
    {
      title: "Role",
      width: "8rem",
      cell: (/** @type {User} */ user) =>
        html`${user.role}<span class="sub">${user.payloads ? "payloads visible" : "payloads hidden"}</span>`,
    },
    {
      title: "Tenant",
      width: "20%",
      cell: (/** @type {User} */ user) =>
        user.tenant ? html`<${Code} class="clip">${user.tenant}<//>` : html`<span class="soft">all</span>`,
    },
    { title: "Created", width: "10rem", cell: (/** @type {User} */ user) => html`<${When} at=${user.created_at} />` },
    {
      title: "",
      kind: "act",
      width: "13rem",
      cell: (/** @type {User} */ user) =>
        html`<div class="acts">
          <${Button} tiny need="admin" label=${`Edit ${line(user.name)}`} onClick=${() => edit(user, reload)}>
            Edit
          <//>
          <${Button} tiny need="admin" label=${`Delete ${line(user.name)}`} onClick=${() => remove(user, reload)}>
            Delete
          <//>
        </div>`,
    },
  ];
}

/** @param {User} user @param {() => Promise<void>} reload */
async function remove(user, reload) {
  const done = await ask({
    title: `Delete ${line(user.name)}?`,
    body: html`<p>
      The user can no longer sign in, and open sessions end within seconds. Audit entries stay.
    </p>`,
    verb: "Delete",
    danger: true,
    act: async () => (await api.delete(`/users/${encodeURIComponent(user.name)}`), true),
  });
  if (!done) return;
  toast(html`Deleted user ${line(user.name)}.`);
  await reload();
}

/** @param {User | null} user null: a new one @param {() => Promise<void>} reload */
async function edit(user, reload) {
  const saved = await show(Form, { user }, { wide: true });
  if (!saved) return;
  toast(html`Saved user ${line(saved.name)}.`);
  await reload();
}

/** @param {import("../base/dialog.js").DialogControls<User> & {user: User | null}} props */
function Form({ user, done, busy }) {
  const [values, setValues] = useState({
    name: user?.name ?? "",
    password: "",
    role: user?.role ?? "viewer",
    tenant: user?.tenant ?? me.value?.tenant ?? "",
    payloads: "",
    change: "next",
  });
  const body = {
    must_change: values.change === "next",
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
  const put = (/** @type {string} */ name) => onValue((value) => setValues({ ...values, [name]: value }));
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${user ? html`Edit <code>${line(user.name)}</code>` : "Create user"}</h2>
    ${user && html`<div class="dialog-body">
      <p>Saving replaces the role, tenant and password and signs the user out everywhere.</p>
    </div>`}
    ${!user && html`<${Field} label="Name" error=${taken ? error?.message : null}>
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
      hint=${`At least ${SHORTEST} characters. A passphrase works well.`}
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
      options=${grantable().filter(([role]) => role !== "producer")}
      onChange=${(/** @type {string} */ role) => setValues({ ...values, role })}
    />
    <div class="fields">
      <${Field} label="Tenant" hint=${me.value?.tenant ? "Limited to your tenant." : "Leave empty for all tenants."}>
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
      <${Field} label="Changed by the user">
        <select value=${values.change} onChange=${put("change")}>
          <option value="next">At the next sign-in</option>
          <option value="never">If they like</option>
        </select>
      <//>
    </div>
    ${error && !taken && error.field !== "password" && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>${user ? "Save user" : "Create user"}<//>
    </div>
  </form>`;
}
