// @ts-check
// Sign-in: a token, or a user and a password.

import { passwords, problemOf, signIn } from "../api.js";
import { Button } from "../parts/base/button.js";
import { Command } from "../parts/base/copy.js";
import { Field, onValue } from "../parts/base/form.js";
import { Mark } from "../parts/base/glyph.js";
import { ClockFace } from "../parts/shell/wheel.js";
import { go, path } from "../state.js";
import { html, useEffect, useState } from "../ui.js";

export default function SignIn() {
  const [byPassword, setByPassword] = useState(false);
  const [values, setValues] = useState({ token: "", user: "", password: "", renewed: "" });
  const [mustChange, setMustChange] = useState(false);
  const [error, setError] = useState(/** @type {import("../api.js").Problem | null} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · rota";
  }, []);
  const field = (/** @type {"token" | "user" | "password" | "renewed"} */ name) => ({
    value: values[name],
    required: true,
    autocapitalize: "off",
    spellcheck: false,
    onInput: onValue((value) => setValues({ ...values, [name]: value })),
  });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await signIn(byPassword ? withPassword(values, mustChange) : { token: values.token.trim() });
      if (path.value === "/signin") go("/", { replace: true });
    } catch (problem) {
      const found = problemOf(problem);
      if (found.code === "must_change_password") setMustChange(true);
      else setError(found);
      setBusy(false);
    }
  };
  return html`<div class="sign-in">
    <main>
      <form onSubmit=${submit}>
        <span class="brand"><${Mark} size=${32} />rota</span>
        <h1>Sign in</h1>
        ${byPassword
          ? html`
              <${Field} key="user" label="User"><input type="text" autocomplete="username" ...${field("user")} /><//>
              <${Field} key="password" label="Password" error=${mustChange ? null : error?.message}>
                <input type="password" autocomplete="current-password" ...${field("password")} />
              <//>
              ${mustChange && html`<${Field}
                key="renewed"
                label="New password"
                hint="Your password must be changed. At least 12 characters."
                error=${error?.message}
              >
                <input type="password" autocomplete="new-password" minlength="12" autofocus ...${field("renewed")} />
              <//>`}
            `
          : html`<${Field} key="token" label="Token" error=${error?.message}>
              <input type="password" autocomplete="current-password" ...${field("token")} />
            <//>`}
        <${Button} type="submit" kind="main" disabled=${busy}>Sign in<//>
        ${(passwords.value || byPassword) && html`<p class="other">
          <button
            type="button"
            class="link"
            onClick=${() => (setByPassword(!byPassword), setMustChange(false), setError(null))}
          >
            ${byPassword ? "Use a token" : "Use a password"}
          </button>
        </p>`}
        <div class="first-step">
          <p class="hint">No token? Create one on the server, with its --app or --url:</p>
          <${Command} text="rota token create --role viewer --expires 30d" />
        </div>
      </form>
    </main>
    <aside><${ClockFace} /></aside>
  </div>`;
}

/** @param {{user: string, password: string, renewed: string}} values @param {boolean} mustChange */
function withPassword({ user, password, renewed }, mustChange) {
  return mustChange ? { user, password, new_password: renewed } : { user, password };
}
