// @ts-check
// Open sessions of the dashboard: one's own, and for admins all that they administer. And the own password.

import { api, signIn, signOut } from "../../api.js";
import { useLoad } from "../../load.js";
import { me } from "../../state.js";
import { html, useMemo, useState } from "../../ui.js";
import { line, plural } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Button } from "../base/button.js";
import { FormError, ask, show, useAct } from "../base/dialog.js";
import { ErrorNotice } from "../base/empty.js";
import { Field, onValue } from "../base/form.js";
import { Panel } from "../base/panel.js";
import { Table, byId } from "../base/table.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";

/** @typedef {import("../../types").OpenSession} OpenSession */

const SHORTEST = 12;
const BROWSERS = ["Firefox", "Edg", "OPR", "Chrome", "Safari", "curl"];
/** @type {Record<string, string>} */
const BROWSER_NAMES = { Edg: "Edge", OPR: "Opera" };
const SYSTEMS = ["Windows", "Android", "iPhone", "iPad", "Mac OS X", "Linux"];

export function Sessions() {
  const sessions = useLoad((signal) => api.get("/sessions", {}, signal), [], { on: ["audit"] });
  const columns = useMemo(() => columnsOf(sessions.reload), []);
  const rows = sessions.data?.items ?? null;
  return html`<${Panel}
    title="Sessions"
    note=${html`<${Button} onClick=${() => endOthers(sessions.reload)}>Sign out elsewhere<//>`}
  >
    ${sessions.error && html`<${ErrorNotice} error=${sessions.error} retry=${sessions.reload} />`}
    <${Table} caption="Sessions" columns=${columns} rows=${rows} skeleton=${1} id=${byId} />
  <//>`;
}

/** @param {() => Promise<void>} reload */
function columnsOf(reload) {
  return [
    {
      title: "Account",
      kind: "head",
      cell: (/** @type {OpenSession} */ one) =>
        html`
          <span class="name">${line(one.name)}</span>
          <span class="sub">${one.role}${one.tenant ? ` of ${line(one.tenant)}` : ""}</span>
        `,
    },
    {
      title: "Browser",
      width: "24%",
      cell: (/** @type {OpenSession} */ one) =>
        html`
          <span title=${line(one.agent ?? "")}>${browserOf(one.agent)}</span>
          ${one.address && html`<span class="sub">from ${line(one.address)}</span>`}
        `,
    },
    {
      title: "Signed in",
      width: "10rem",
      kind: "wide-only",
      cell: (/** @type {OpenSession} */ one) => html`<${When} at=${one.created_at} />`,
    },
    {
      title: "Last seen",
      width: "10rem",
      cell: (/** @type {OpenSession} */ one) =>
        one.current ? html`<${Badge} state="ok">this one<//>` : html`<${When} at=${one.seen_at} />`,
    },
    {
      title: "",
      kind: "act",
      width: "6rem",
      cell: (/** @type {OpenSession} */ one) =>
        html`<${Button} tiny label=${`End the session of ${line(one.name)}`} onClick=${() => end(one, reload)}>End<//>`,
    },
  ];
}

/** ``Firefox on Linux``, as far as the browser says so itself. @param {string | null} agent */
function browserOf(agent) {
  if (!agent) return html`<span class="soft">unknown</span>`;
  const browser = BROWSERS.find((one) => agent.includes(one));
  const system = SYSTEMS.find((one) => agent.includes(one));
  if (!browser) return line(agent, 40);
  return (BROWSER_NAMES[browser] ?? browser) + (system ? ` on ${system.replace("Mac OS X", "macOS")}` : "");
}

/** @param {OpenSession} one @param {() => Promise<void>} reload */
async function end(one, reload) {
  if (one.current) return signOut();
  await api.delete(`/sessions/${encodeURIComponent(one.id)}`);
  toast(html`Ended the session of ${line(one.name)}.`);
  await reload();
}

/** @param {() => Promise<void>} reload */
async function endOthers(reload) {
  const ended = await ask({
    title: "Sign out elsewhere?",
    body: html`<p>Your sessions in other browsers end within seconds. This one stays.</p>`,
    verb: "Sign out elsewhere",
    act: async () => /** @type {unknown} */ (await api.delete("/sessions", { keep_current: true })),
  });
  if (!ended) return;
  toast(`Ended ${plural(/** @type {{count: number}} */ (ended).count, "session")}.`);
  await reload();
}

/** For users, who have a password. */
export function ChangePassword() {
  if (!me.value?.name.startsWith("user:")) return null;
  return html`<${Button} onClick=${changePassword}>Change password<//>`;
}

async function changePassword() {
  if (await show(Form, {})) toast("Your password is changed. You are signed out everywhere else.");
}

/** @param {import("../base/dialog.js").DialogControls<true>} props */
function Form({ done, busy }) {
  const [values, setValues] = useState({ password: "", renewed: "" });
  const user = me.value?.name.replace(/^user:/, "") ?? "";
  const { submit, error, acting } = useAct({ done, busy }, async () => {
    await signIn({ user, password: values.password, new_password: values.renewed });
    return /** @type {const} */ (true);
  });
  const put = (/** @type {string} */ name) => onValue((value) => setValues({ ...values, [name]: value }));
  const isNew = error?.field === "new_password";
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Change password</h2>
    <input type="text" hidden autocomplete="username" value=${user} readonly />
    <${Field} label="Current password" error=${error?.status === 401 ? "This is not your password." : null}>
      <input
        type="password"
        required
        autofocus
        autocomplete="current-password"
        value=${values.password}
        onInput=${put("password")}
      />
    <//>
    <${Field}
      label="New password"
      hint=${`At least ${SHORTEST} characters. A passphrase works well.`}
      error=${isNew ? error?.message : null}
    >
      <input
        type="password"
        required
        minlength=${SHORTEST}
        maxlength="1000"
        autocomplete="new-password"
        value=${values.renewed}
        onInput=${put("renewed")}
      />
    <//>
    ${error && !isNew && error.status !== 401 && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Change password<//>
    </div>
  </form>`;
}
