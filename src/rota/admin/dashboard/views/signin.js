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
  const [values, setValues] = useState({ token: "", user: "", password: "" });
  const [error, setError] = useState(/** @type {import("../api.js").Problem | null} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · rota";
  }, []);
  const field = (/** @type {"token" | "user" | "password"} */ name) => ({
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
      await signIn(byPassword ? { user: values.user, password: values.password } : { token: values.token.trim() });
      if (path.value === "/signin") go("/", { replace: true });
    } catch (problem) {
      setError(problemOf(problem));
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
              <${Field} key="password" label="Password" error=${error?.message}>
                <input type="password" autocomplete="current-password" ...${field("password")} />
              <//>
            `
          : html`<${Field} key="token" label="Token" error=${error?.message}>
              <input type="password" autocomplete="current-password" ...${field("token")} />
            <//>`}
        <${Button} type="submit" kind="main" disabled=${busy}>Sign in<//>
        ${(passwords.value || byPassword) && html`<p class="other">
          <button type="button" class="link" onClick=${() => (setByPassword(!byPassword), setError(null))}>
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
