// @ts-check
// The command palette and the keys. A key never acts while somebody types.

import { api } from "../../api.js";
import { go, may } from "../../state.js";
import { html, useEffect, useMemo, useState } from "../../ui.js";
import { clean, shortId } from "../../format.js";
import { Button } from "../base/button.js";
import { show } from "../base/dialog.js";
import { Glyph } from "../base/glyph.js";
import { pauseDialog, resumeGate } from "../operate/pause.js";
import { keyOf, pageOf } from "../schedules/schedule.js";
import { showError } from "../base/toast.js";

const PAUSE = 900; // between the two keys of one
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @param {[string, string, (event: KeyboardEvent) => any][]} keys key, what it does, the act */
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

/** @param {[string, string, any][]} keys */
export function openKeys(keys) {
  return show(Keys, {
    keys: [...keys, ["j k", "Next and previous row"], ["x", "Select the row"], ["Enter", "Open the row"]],
  });
}

/** @param {any} props */
function Keys({ keys, done }) {
  return html`
    <h2 id="dialog-title">Keys</h2>
    <dl class="keys">
      ${keys.map(
        (/** @type {any} */ [key, does]) =>
          html`
            <dt>${key.split(/[ +]/).map((/** @type {string} */ one) => html`<kbd>${one}</kbd> `)}</dt>
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

/** @typedef {{kind: string, name: string, to?: string, act?: () => Promise<any>}} Place where to go, or what to do */
/** Name, path, and what one must be allowed to have a use for it. @type {[string, string, string?][]} */
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
  ["Gates", "/gates"],
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
  const [queues, tasks, schedules, tenants, gates] = await Promise.all([
    api.get("/queues"),
    shared ? api.get("/tasks") : { items: [] },
    api.get("/schedules", { limit: 200 }),
    api.get("/tenants"),
    api.get("/gates"),
  ]);
  const places = (/** @type {string} */ kind, /** @type {any[]} */ items, /** @type {(name: string) => string} */ to) =>
    items.map(({ name }) => ({ kind, name, to: to(name) }));
  return [
    ...places("queue", queues.items, (name) => below("/jobs", { queue: name })),
    ...places("task", tasks.items, (name) => below("/jobs", { task: name })),
    ...schedules.items.map((/** @type {any} */ one) => ({
      kind: "schedule",
      name: one.tenant === "default" ? one.name : keyOf(one),
      to: pageOf(one),
    })),
    ...places("tenant", tenants.items, (name) => below("/jobs", { tenant: name })),
    ...(may("operate.shared")
      ? actionsOf({ queue: queues.items, task: tasks.items, tenant: tenants.items }, gates.items)
      : []),
  ];
}

/**
 * What can be done by name: pause what runs, resume what is paused.
 * @param {Record<string, any[]>} lists by scope
 * @param {import("../../types").GateView[]} gates
 * @returns {Place[]}
 */
function actionsOf(lists, gates) {
  const isOpen = (/** @type {string} */ scope, /** @type {string | null} */ name) =>
    !gates.some((gate) => gate.scope === scope && gate.name === name);
  const pause = (/** @type {any} */ scope, /** @type {string | null} */ name) => ({
    kind: "act",
    name: `Pause ${name === null ? "everything" : `${scope} ${name}`} …`,
    act: () => pauseDialog(scope, name),
  });
  return [
    ...(isOpen("all", null) ? [pause("all", null)] : []),
    ...Object.entries(lists).flatMap(([scope, items]) =>
      items.filter(({ name }) => isOpen(scope, name)).map(({ name }) => pause(scope, name)),
    ),
    ...gates
      .filter((gate) => gate.scope !== "schedule")
      .map((gate) => ({
        kind: "act",
        name: `Resume ${gate.name === null ? "everything" : `${gate.scope} ${gate.name}`}`,
        act: () => resumeGate(gate),
      })),
  ];
}

const SHORT_ID = /^[0-9a-f]{4,12}$/i; // pages show the last six signs of an id
const NEWEST = 200; // jobs whose ids' ends are known: all that one answer holds

/** Jobs whose id ends like this, among the newest. @param {string} text @returns {Place[]} */
function useJobsLike(text) {
  const [jobs, setJobs] = useState(/** @type {any[] | null} */ (null));
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

/** @param {{done: (value: any) => void}} props */
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
    <h2 id="dialog-title" class="visually-hidden">Search, or jump to</h2>
    <div class="palette">
      <label class="palette-field">
        <${Glyph} name="find" />
        <span class="visually-hidden">Search, or jump to</span>
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant=${found.length ? `palette-${index}` : undefined}
          autocomplete="off"
          spellcheck=${false}
          placeholder="A page, a queue, a task, a schedule, a tenant, a job's id or its end, “pause”, words of an error"
          value=${text}
          autofocus
          onInput=${(/** @type {any} */ event) => (setText(event.target.value), setIndex(0))}
          onKeyDown=${press}
        />
      </label>
      <ul id="palette-list" role="listbox" aria-label="Places and acts">
        ${found.map(
          (place, i) => html`<li
            id=${`palette-${i}`}
            role="option"
            aria-selected=${i === index ? "true" : "false"}
            onClick=${() => take(place)}
            onMouseMove=${() => setIndex(i)}
          >
            <span class="faint">${place.kind}</span>
            <span class=${["page", "act"].includes(place.kind) ? "" : "mono"}>${clean(place.name)}</span>
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
    ? [...found, { kind: "search", name: `jobs whose error says “${text}”`, to: below("/jobs", { error: text }) }]
    : found;
}
