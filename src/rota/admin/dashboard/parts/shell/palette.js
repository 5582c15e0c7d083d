// @ts-check
// The command palette and the keyboard shortcuts. A key never acts while the user types.

import { api } from "../../api.js";
import { go, may } from "../../state.js";
import { html, useEffect, useMemo, useState } from "../../ui.js";
import { clean, shortId } from "../../format.js";
import { Button } from "../base/button.js";
import { show } from "../base/dialog.js";
import { onValue } from "../base/form.js";
import { Glyph } from "../base/glyph.js";
import { pauseDialog, resumeGate } from "../operate/pause.js";
import { keyOf, pageOf } from "../schedules/schedule.js";
import { showError } from "../base/toast.js";

const PAUSE = 900; // milliseconds between the two keys of a sequence
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @typedef {[string, string, (event: KeyboardEvent) => unknown]} Key the key, its description, its action */

/** @param {Key[]} keys */
export function useKeys(keys) {
  useEffect(() => {
    let before = "";
    let since = 0;
    const press = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      const typing =
        target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]") ||
        (event.key === "Enter" && target.closest?.("a, button, summary"));
      const plain = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
      const name = (event.ctrlKey || event.metaKey ? "ctrl+" : "") + event.key.toLowerCase();
      if (event.isComposing || document.querySelector("dialog[open]") || (typing && name !== "ctrl+k")) return;
      const both = performance.now() - since < PAUSE ? `${before} ${name}` : "";
      const found = keys.find(([key]) => key === both) ?? keys.find(([key]) => key === name || key === event.key);
      before = plain ? name : "";
      since = performance.now();
      if (!found) return;
      event.preventDefault();
      found[2](event);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [keys]);
}

/** @param {Key[]} keys */
export function openKeys(keys) {
  const named = keys.map(([key, does]) => [key, does]);
  return show(Keys, { keys: [...named, ["j k", "Next and previous row"], ["x", "Select row"], ["Enter", "Open row"]] });
}

/** @param {import("../base/dialog.js").DialogControls<never> & {keys: string[][]}} props */
function Keys({ keys, done }) {
  return html`
    <h2 id="dialog-title">Keyboard shortcuts</h2>
    <dl class="keys">
      ${keys.map(
        ([key, does]) =>
          html`
            <dt>${key.split(/[ +]/).map((one) => html`<kbd>${one}</kbd> `)}</dt>
            <dd>${does}</dd>
          `,
      )}
    </dl>
    <div class="acts"><${Button} onClick=${() => done(null)}>Close<//></div>
  `;
}

export function openPalette() {
  return show(Palette, {}, { wide: true });
}

/**
 * @typedef {{kind: string, name: string, to?: string, act?: () => Promise<unknown>}} Place a page to open, or an
 *   action
 */
/** Name, path and needed permission. @type {[string, string, string?][]} */
const PAGES = [
  ["Overview", "/"],
  ["Jobs", "/jobs"],
  ["Failed jobs", "/jobs?state=failed"],
  ["Running jobs", "/jobs?state=running"],
  ["Queues", "/queues"],
  ["Tasks", "/tasks"],
  ["Schedules", "/schedules"],
  ["Create schedule", "/schedules/new", "operate"],
  ["Workers", "/workers", "read.shared"],
  ["Tenants", "/tenants"],
  ["Limits", "/limits"],
  ["Paused", "/gates"],
  ["Audit", "/audit", "audit"],
  ["Doctor", "/doctor", "operate.shared"],
  ["Settings", "/settings"],
];

/** @returns {Place[]} */
function pages() {
  return PAGES.filter(([, , need]) => may(need)).map(([name, to]) => ({ kind: "page", name, to }));
}

/** @returns {Promise<Place[]>} */
async function loadPlaces() {
  const shared = may("read.shared");
  const [queues, tasks, schedules, tenants, limits, gates] = await Promise.all([
    api.get("/queues"),
    shared ? api.get("/tasks") : { items: /** @type {{name: string}[]} */ ([]) },
    api.get("/schedules", { limit: 200 }),
    api.get("/tenants"),
    api.get("/limits"),
    api.get("/gates"),
  ]);
  const places = (
    /** @type {string} */ kind,
    /** @type {{name: string}[]} */ items,
    /** @type {(name: string) => string} */ to,
  ) => items.map(({ name }) => ({ kind, name, to: to(name) }));
  return [
    ...places("queue", queues.items, (name) => below("/jobs", { queue: name })),
    ...places("task", tasks.items, (name) => below("/jobs", { task: name })),
    ...schedules.items.map((one) => ({
      kind: "schedule",
      name: one.tenant === "default" ? one.name : keyOf(one),
      to: pageOf(one),
    })),
    ...places("tenant", tenants.items, (name) => `/tenants/${encodeURIComponent(name)}`),
    ...places("limit", limits.items, (name) => below("/limits", { edit: name })),
    ...(may("operate.shared")
      ? actionsOf({ queue: queues.items, task: tasks.items, tenant: tenants.items }, gates.items)
      : []),
  ];
}

/**
 * Actions by name: pause, or resume what is paused.
 * @param {Record<"queue" | "task" | "tenant", {name: string}[]>} lists by scope
 * @param {import("../../types").GateView[]} gates
 * @returns {Place[]}
 */
function actionsOf(lists, gates) {
  const isOpen = (/** @type {string} */ scope, /** @type {string | null} */ name) =>
    !gates.some((gate) => gate.scope === scope && gate.name === name);
  const pause = (/** @type {import("../../choices.js").GateScope} */ scope, /** @type {string | null} */ name) => ({
    kind: "action",
    name: `Pause ${name === null ? "everything" : `${scope} ${name}`}…`,
    act: () => pauseDialog(scope, name),
  });
  return [
    ...(isOpen("all", null) ? [pause("all", null)] : []),
    .../** @type {const} */ (["queue", "task", "tenant"]).flatMap((scope) =>
      lists[scope].filter(({ name }) => isOpen(scope, name)).map(({ name }) => pause(scope, name)),
    ),
    ...gates
      .filter((gate) => gate.scope !== "schedule")
      .map((gate) => ({
        kind: "action",
        name: `Resume ${gate.name === null ? "everything" : `${gate.scope} ${gate.name}`}`,
        act: () => resumeGate(gate),
      })),
  ];
}

const SHORT_ID = /^[0-9a-f]{4,12}$/i; // pages show the last six characters of an id
const NEWEST = 200; // jobs searched by the end of their id: as many as one response holds

/** The newest jobs whose id ends with a text. @param {string} text @returns {Place[]} */
function useJobsLike(text) {
  const [jobs, setJobs] = useState(/** @type {import("../../types").JobView[] | null} */ (null));
  const wanted = SHORT_ID.test(text);
  useEffect(() => {
    if (!wanted || jobs) return;
    const load = (/** @type {string} */ state) => api.get("/jobs", { limit: NEWEST, state });
    Promise.all([load(""), load("failed"), load("queued")]).then(
      (pages) => setJobs(pages.flatMap((page) => page.items)),
      () => {},
    );
  }, [wanted]);
  const found = new Map(
    (wanted ? (jobs ?? []) : []).filter(({ id }) => id.endsWith(text.toLowerCase())).map((job) => [job.id, job]),
  );
  return [...found.values()].map((job) => ({
    kind: "job",
    name: `${job.task} ${shortId(job.id)}, ${job.state}`,
    to: `/jobs/${job.id}`,
  }));
}

/** @param {string} to @param {Record<string, string>} params */
function below(to, params) {
  return `${to}?${new URLSearchParams(params)}`;
}

/** @param {import("../base/dialog.js").DialogControls<never>} props */
function Palette({ done }) {
  const [text, setText] = useState("");
  const [places, setPlaces] = useState(/** @type {Place[]} */ ([]));
  const [index, setIndex] = useState(0);
  useEffect(() => void loadPlaces().then(setPlaces, () => {}), []);
  const named = useMemo(() => suggestions(text.trim(), [...pages(), ...places]), [text, places]);
  const found = [...useJobsLike(text.trim()), ...named];
  const take = (/** @type {Place | undefined} */ place) => {
    if (!place) return;
    done(null);
    if (place.act) place.act().catch(showError);
    else go(place.to ?? "/");
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setIndex((index + (event.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length));
    }
    if (event.key === "Enter") take(found[index]);
  };
  return html`
    <h2 id="dialog-title" class="visually-hidden">Search or jump to</h2>
    <div class="palette">
      <label class="palette-field">
        <${Glyph} name="find" />
        <span class="visually-hidden">Search or jump to</span>
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant=${found.length ? `palette-${index}` : undefined}
          autocomplete="off"
          spellcheck=${false}
          placeholder="Page, queue, task, schedule, tenant, limit, job id or its end, “pause”, text of an error"
          value=${text}
          autofocus
          onInput=${onValue((value) => (setText(value), setIndex(0)))}
          onKeyDown=${press}
        />
      </label>
      <ul id="palette-list" role="listbox" aria-label="Results">
        ${found.map(
          (place, i) => html`<li
            id=${`palette-${i}`}
            role="option"
            aria-selected=${i === index ? "true" : "false"}
            onClick=${() => take(place)}
            onMouseMove=${() => setIndex(i)}
          >
            <span class="faint">${place.kind}</span>
            <span class=${["page", "action"].includes(place.kind) ? "" : "mono"}>${clean(place.name)}</span>
          </li>`,
        )}
      </ul>
    </div>
  `;
}

/** @param {string} text @param {Place[]} places @returns {Place[]} */
function suggestions(text, places) {
  if (ID.test(text)) return [{ kind: "job", name: text, to: `/jobs/${text}` }];
  const wanted = text.toLowerCase();
  const found = places.filter(({ name, kind }) => `${kind} ${name}`.toLowerCase().includes(wanted)).slice(0, 10);
  return text
    ? [...found, { kind: "search", name: `jobs whose error contains “${text}”`, to: below("/jobs", { error: text }) }]
    : found;
}
