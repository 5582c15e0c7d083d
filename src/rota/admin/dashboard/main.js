// @ts-check
// Start: find out who is signed in, then show the view of the path.

import { problemOf, signIn, whoAmI } from "./api.js";
import { start } from "./live.js";
import { Dialogs } from "./parts/base/dialog.js";
import { Skeleton, ErrorNotice } from "./parts/base/empty.js";
import { Shell } from "./parts/shell/shell.js";
import { Toasts, showError } from "./parts/base/toast.js";
import { follow, go, me, path } from "./state.js";
import { html, render, signal, useEffect, useState } from "./ui.js";
import SignIn from "./views/signin.js";

/** Path and module in views/. The first that matches is shown. @type {[string, string][]} */
const ROUTES = [
  ["/", "overview"],
  ["/jobs", "jobs"],
  ["/jobs/:id", "job"],
  ["/queues", "queues"],
  ["/queues/:name", "queue"],
  ["/tasks", "tasks"],
  ["/schedules", "schedules"],
  ["/schedules/new", "schedule-edit"],
  ["/schedules/:name", "schedule"],
  ["/schedules/:name/edit", "schedule-edit"],
  ["/calendars", "calendars"],
  ["/workers", "workers"],
  ["/workers/:id", "worker"],
  ["/limits", "limits"],
  ["/tenants", "tenants"],
  ["/tenants/:name", "tenant"],
  ["/audit", "audit"],
  ["/gates", "gates"],
  ["/doctor", "doctor"],
  ["/settings", "settings"],
  ["/signin", "overview"],
];

/** @param {string} where */
function match(where) {
  for (const [pattern, view] of ROUTES) {
    const found = new RegExp(`^${pattern.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`).exec(where);
    if (found)
      return {
        view,
        params: Object.fromEntries(Object.entries(found.groups ?? {}).map(([key, text]) => [key, plain(text)])),
      };
  }
  return { view: "not-found", params: {} };
}

/** @param {string} text */
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The view of this path, its module loaded when first needed. */
function View() {
  const { view, params } = match(path.value);
  const [loaded, setLoaded] = useState(
    /** @type {{view: string, Body?: (props: object) => unknown, error?: unknown}} */ ({ view: "" }),
  );
  useEffect(() => {
    let current = true;
    import(`./views/${view}.js`).then(
      (module) => current && setLoaded({ view, Body: module.default }),
      (error) => current && setLoaded({ view, error }),
    );
    return () => (current = false);
  }, [view]);
  if (loaded.view !== view) return html`<${Skeleton} lines=${6} />`;
  if (loaded.error)
    return html`<${ErrorNotice}
      error=${{
        title: "This view could not be loaded",
        message: "Reload the page. If that doesn't help, check the server log.",
      }}
    />`;
  return html`<${loaded.Body} key=${path.value} ...${params} />`;
}

const failed = signal(/** @type {import("./api.js").Problem | null} */ (null));

function App() {
  if (failed.value)
    return html`<main class="alone"><h1>rota</h1><${ErrorNotice} error=${failed.value} retry=${boot} /></main>`;
  if (me.value === undefined) return html`<main class="alone"><${Skeleton} /></main>`;
  if (me.value === null) return html`<${SignIn} /><${Toasts} />`;
  return html`<${Shell}><${View} /><//><${Dialogs} /><${Toasts} />`;
}

async function boot() {
  failed.value = null;
  try {
    const once = /^#once=(.+)$/.exec(location.hash)?.[1];
    if (once) {
      history.replaceState(null, "", location.pathname + location.search);
      await signIn({ once: plain(once) }).catch(showError);
    }
    if (!me.value) await whoAmI();
    if (me.value && path.value === "/signin") go("/", { replace: true });
  } catch (error) {
    failed.value = problemOf(error);
  }
}

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("rota")));
document.addEventListener("click", follow);
start();
boot();
