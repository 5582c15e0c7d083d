// @ts-check
// Saved views of the jobs list, kept in this browser: a name and a search.

import { at } from "../../state.js";
import { html, signal } from "../../ui.js";
import { line } from "../../format.js";
import { ask } from "../base/dialog.js";
import { toast } from "../base/toast.js";

const KEY = "rota.views";
/** @type {[string, string][]} */
const DEFAULTS = [
  ["failed today", "state=failed&since=24h"],
  ["running", "state=running"],
];
const views = signal(load());

/** @returns {[string, string][]} */
function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "null");
    return Array.isArray(stored)
      ? /** @type {[string, string][]} */ (stored).filter(
          (one) => Array.isArray(one) && one.every((part) => typeof part === "string"),
        )
      : DEFAULTS;
  } catch {
    return DEFAULTS;
  }
}

/** @param {[string, string][]} next */
function store(next) {
  views.value = next;
  localStorage.setItem(KEY, JSON.stringify(next));
}

/** @param {string} search */
function save(search) {
  return ask({
    title: "Save view",
    body: html`<p>Kept in this browser: <code>${search}</code></p>`,
    verb: "Save",

    reason: "Name",
    act: async (name) => {
      if (!name) throw new Error("Enter a name.");
      store([...views.value.filter(([one]) => one !== name), [name, search]]);
      toast(`Saved view ${name}.`);
    },
  });
}

/** @param {string} name */
function remove(name) {
  const before = views.value;
  store(before.filter(([one]) => one !== name));
  toast(`Deleted view ${name}.`, { undo: () => store(before) });
}

/** @param {{search: string}} props */
export function SavedViews({ search }) {
  const current = views.value.find(([, one]) => one === search);
  return html`<div class="saved">
    <span>
      ${views.value.length > 0 && html`
        Views: ${views.value.map(
          ([name, one], i) =>
            html`
              ${i > 0 && ", "}
              <a href=${`${at("/jobs")}?${one}`} aria-current=${one === search ? "true" : undefined}>
                ${line(name, 40)}
              </a>
            `,
        )}
      `}
    </span>
    ${current
      ? html`<button type="button" class="link" onClick=${() => remove(current[0])}>Delete this view</button>`
      : search && html`<button type="button" class="link" onClick=${() => save(search)}>Save this view</button>`}
  </div>`;
}
