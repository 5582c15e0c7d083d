// @ts-check
// Views of the jobs that this browser remembers: a name and a search.

import { at } from "../state.js";
import { html, signal } from "../ui.js";
import { line } from "../words.js";
import { ask } from "./dialog.js";
import { toast } from "./toast.js";

const KEY = "rota.views";
/** @type {[string, string][]} */
const GIVEN = [["failed today", "state=failed&since=24h"], ["running", "state=running"]];
const views = signal(load());

/** @returns {[string, string][]} */
function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "null");
    return Array.isArray(stored) ? /** @type {[string, string][]} */ (stored).filter((one) => Array.isArray(one) && one.every((part) => typeof part === "string")) : GIVEN;
  } catch {
    return GIVEN;
  }
}

/** @param {[string, string][]} next */
function keep(next) {
  views.value = next;
  localStorage.setItem(KEY, JSON.stringify(next));
}

/** @param {string} search */
function save(search) {
  return ask({
    title: "Save this view?",
    body: html`<p>This browser keeps it: <code>${search}</code></p>`,
    verb: "Save",
    safe: "Cancel",
    reason: "Name",
    act: async (name) => {
      if (!name) throw new Error("Give it a name.");
      keep([...views.value.filter(([one]) => one !== name), [name, search]]);
      toast(`View ${name} is saved.`);
    },
  });
}

/** @param {string} name */
function forget(name) {
  const before = views.value;
  keep(before.filter(([one]) => one !== name));
  toast(`View ${name} is forgotten.`, { undo: () => keep(before) });
}

/** @param {{search: string}} props */
export function SavedViews({ search }) {
  const current = views.value.find(([, one]) => one === search);
  return html`<div class="saved"><span>${views.value.length > 0 && html`Views: ${views.value.map(([name, one], i) => html`${i > 0 && ", "}<a href=${`${at("/jobs")}?${one}`} aria-current=${one === search ? "true" : undefined}>${line(name, 40)}</a>`)}`}</span>
    ${current ? html`<button type="button" class="link" onClick=${() => forget(current[0])}>Forget this view</button>` : search && html`<button type="button" class="link" onClick=${() => save(search)}>Save this view</button>`}</div>`;
}
