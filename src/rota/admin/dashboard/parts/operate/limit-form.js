// @ts-check
// Set a limit, change it in place, and remove it: the fields, and beside them what will happen.

import { api, problemOf } from "../../api.js";
import { announce } from "../../live.js";
import { useLoad } from "../../load.js";
import { html, useEffect, useRef, useState } from "../../ui.js";
import { clean } from "../../format.js";
import { Button } from "../base/button.js";
import { ask, show, useAct } from "../base/dialog.js";
import { Field, onValue } from "../base/form.js";
import { toast } from "../base/toast.js";
import { effectOf, limitWords, readRate, usualBurst } from "./limit-words.js";

/** @typedef {import("../../types").LimitView} Held */
/** @typedef {import("./limit-words.js").Draft} Draft */
/** @typedef {{running: string, rate: string, burst: string, strict: boolean}} Typed */
/** @typedef {import("../../api.js").Problem} Problem */

/** @type {[string, string, string][]} */
const SCOPES = [
  ["queue", "Queue", "mail"],
  ["task", "Task", "send_receipt"],
  ["tenant", "Tenant", "acme"],
  ["key", "Key", "openai, or account:* for each account"],
];

/** @param {string} name */
export function pathOf(name) {
  return /** @type {const} */ (`/limits/${encodeURIComponent(name)}`);
}

/** The limit in force, as it is set. @param {Held} held @returns {Draft} */
export function draftOf({ most, rate, burst, strict }) {
  return { running: most, rate, burst: rate === null ? null : burst, strict };
}

/** @param {Held} held @returns {Typed} */
function typedOf(held) {
  const read = readRate(held.rate);
  const isUsual = read && held.burst === usualBurst(read); // left to the rate, so that it follows it
  return {
    running: held.most === null ? "" : `${held.most}`,
    rate: held.rate ?? "",
    burst: held.burst === null || isUsual ? "" : `${held.burst}`,
    strict: held.strict,
  };
}

/** @param {Typed} typed @returns {Draft} */
function read({ running, rate, burst, strict }) {
  const number = (/** @type {string} */ text) => (text.trim() === "" ? null : Number(text));
  return { running: number(running), rate: rate.trim() || null, burst: number(burst), strict };
}

/** @param {string} name @param {Draft} draft */
export async function putLimit(name, draft) {
  const held = await api.put(pathOf(name), draft);
  announce("stats");
  return held;
}

/** @param {string} name */
async function dropLimit(name) {
  await api.delete(pathOf(name));
  announce("stats");
}

/** @param {Held} held */
function savedWords(held) {
  return `${clean(held.name)}: ${limitWords(draftOf(held))}.${held.warning ? ` Note: ${clean(held.warning)}.` : ""}`;
}

/** Set what was in force before. @param {Held} before */
function restore(before) {
  return before.source === "code" ? dropLimit(before.name) : putLimit(before.name, draftOf(before));
}

/**
 * @param {{typed: Typed, set: (patch: Partial<Typed>) => void, error: Problem | null, isKey: boolean,
 *   first?: boolean}} props first: the first field gets the focus
 */
function LimitFields({ typed, set, error, isKey, first = false }) {
  const about = (/** @type {string} */ field) => (error?.field === field ? error.message : null);
  const rate = readRate(typed.rate);
  return html`
    <div class="trio">
      <${Field} label="Running at once" error=${about("running")}>
        <input
          type="number"
          min="1"
          step="1"
          inputmode="numeric"
          placeholder="any number"
          data-first=${first ? "" : undefined}
          value=${typed.running}
          onInput=${onValue((running) => set({ running }))}
        />
      <//>
      <${Field} label="Rate" error=${about("rate")}>
        <input
          type="text"
          autocomplete="off"
          spellcheck=${false}
          placeholder="such as 100/m"
          value=${typed.rate}
          onInput=${onValue((text) => set({ rate: text }))}
        />
      <//>
      <${Field} label="Burst" error=${about("burst")}>
        <input
          type="number"
          min="1"
          step="1"
          inputmode="numeric"
          placeholder=${rate ? `${usualBurst(rate)}` : "of the rate"}
          disabled=${!typed.rate.trim()}
          value=${typed.burst}
          onInput=${onValue((burst) => set({ burst }))}
        />
      <//>
    </div>
    ${isKey && html`<label class="check">
      <input
        type="checkbox"
        checked=${typed.strict}
        onChange=${(/** @type {Event} */ event) =>
          set({ strict: /** @type {HTMLInputElement} */ (event.target).checked })}
      />
      Strict: wait for the retry of a failed job
    </label>`}
    ${error && !["running", "rate", "burst"].includes(error.field ?? "") && html`<p
      class="form-error tone-failed"
      role="alert"
    >
      ${clean(error.message)}
    </p>`}
  `;
}

/** @param {{sentences: string[]}} props */
export function Effect({ sentences }) {
  return html`<div class="effect" aria-live="polite">
    <h3>What will happen</h3>
    <ul>
      ${sentences.map((sentence) => html`<li key=${sentence}>${sentence}</li>`)}
    </ul>
  </div>`;
}

/**
 * Change a limit in place.
 * @param {{held: Held, close: () => void, done: () => unknown}} props
 */
export function LimitEdit({ held, close, done }) {
  const [typed, setTyped] = useState(() => typedOf(held));
  const [error, setError] = useState(/** @type {Problem | null} */ (null));
  const [busy, setBusy] = useState(false);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => /** @type {HTMLElement | null} */ (place.current?.querySelector("[data-first]"))?.focus(), []);
  const draft = read(typed);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const saved = await putLimit(held.name, draft);
      toast(savedWords(saved), { undo: () => restore(held).then(done) });
      close();
      await done();
    } catch (problem) {
      setError(problemOf(problem));
    }
    setBusy(false);
  };
  return html`<form
    class="inline-edit"
    ref=${place}
    aria-label=${`Edit ${clean(held.name)}`}
    onSubmit=${save}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close()}
  >
    <div>
      <h3>Edit <span class="mono">${clean(held.name)}</span></h3>
      <${LimitFields}
        first
        typed=${typed}
        set=${(/** @type {Partial<Typed>} */ patch) => setTyped((old) => ({ ...old, ...patch }))}
        error=${error}
        isKey=${held.name.startsWith("key:")}
      />
      <p class="hint">Now ${limitWords(draftOf(held))}, ${sourceWords(held)}.</p>
      <div class="acts">
        <${Button} type="submit" kind="main" disabled=${busy}>Save<//>
        <${Button} onClick=${close}>Cancel<//>
        ${held.source !== "code" && html`<${Button} kind="plain" onClick=${() => removeLimit(held, done)}>
          ${held.declared ? "Use the code's" : "Remove limit"}
        <//>`}
      </div>
    </div>
    <${Effect} sentences=${effectOf(held, draft)} />
  </form>`;
}

/** Where it was set, and what the code says. @param {Held} held */
export function sourceWords({ source, declared }) {
  if (source === "code") return "set in the code";
  return `set at run time; the code ${declared ? `says ${limitWords(declared)}` : "has none"}`;
}

/** @param {Held} held @param {() => unknown} done */
export async function removeLimit(held, done) {
  const removed = await ask({
    title: held.declared ? `Return ${clean(held.name)} to the code's limit?` : `Remove the limit ${clean(held.name)}?`,
    body: html`
      <p>
        ${held.declared
          ? `Then it is ${limitWords(held.declared)}, as the code says.`
          : "Then nothing limits its jobs here; other limits still hold. Waiting jobs start as workers have room."}
      </p>
      <p>Running jobs continue.</p>
    `,
    verb: held.declared ? "Use the code's" : "Remove limit",
    act: async () => (await dropLimit(held.name), true),
  });
  if (!removed) return;
  toast(held.declared ? `${clean(held.name)} is as in the code.` : `Removed ${clean(held.name)}.`, {
    undo: () => putLimit(held.name, draftOf(held)).then(done),
  });
  await done();
}

/**
 * Set a limit that may not exist yet; resolves to it, or null.
 * @param {Partial<{scope: string, name: string}>} [given]
 * @param {Held[]} [known] those in force, to say what runs
 */
export async function limitDialog(given = {}, known = []) {
  const held = await show(NewLimit, { given, known }, { wide: true });
  if (held) toast(savedWords(held), { undo: () => dropLimit(held.name) });
  return held;
}

/** @typedef {{given: {scope?: string, name?: string}, known: Held[]}} NewLimitProps */
/** @param {import("../base/dialog.js").DialogControls<Held> & NewLimitProps} props */
function NewLimit({ done, busy, given, known }) {
  const [scope, setScope] = useState(given.scope ?? "queue");
  const [rest, setRest] = useState(given.name ?? "");
  const [typed, setTyped] = useState({ running: "", rate: "", burst: "", strict: false });
  const name = `${scope}:${rest.trim()}`;
  const draft = read(typed);
  const { submit, error, acting } = useAct({ done, busy }, () => putLimit(name, draft));
  const now = known.find((one) => one.name === name);
  const running = useRunning(scope, rest.trim());
  const sentences = now
    ? [`It replaces the one in force: ${limitWords(draftOf(now))}.`, ...effectOf(now, draft)]
    : effectOf({ ...UNLIMITED, name, rule: name, running }, draft, { isNew: true });
  const placeholder = SCOPES.find(([value]) => value === scope)?.[2] ?? "";
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Set a limit</h2>
    <div class="fields">
      <${Field} label="For">
        <select value=${scope} onChange=${onValue(setScope)} disabled=${Boolean(given.name)}>
          ${SCOPES.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
        </select>
      <//>
      <${Field} label="Name" error=${error?.field === "name" ? error.message : null}>
        <input
          type="text"
          class="mono"
          required
          maxlength="200"
          autocomplete="off"
          spellcheck=${false}
          placeholder=${placeholder}
          value=${rest}
          onInput=${onValue(setRest)}
          disabled=${Boolean(given.name)}
          autofocus=${!given.name}
        />
      <//>
    </div>
    <${LimitFields}
      typed=${typed}
      set=${(/** @type {Partial<Typed>} */ patch) => setTyped((old) => ({ ...old, ...patch }))}
      error=${error?.field === "name" ? null : error}
      isKey=${scope === "key"}
    />
    <${Effect} sentences=${rest.trim() ? sentences : ["Name what it limits."]} />
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Set limit<//>
    </div>
  </form>`;
}

/**
 * How many jobs run that a new limit would concern; null: not known.
 * @param {string} scope
 * @param {string} name
 */
function useRunning(scope, name) {
  const counted = useLoad(
    (signal) => api.get("/jobs/count", { state: "running", [scope]: name }, signal),
    [scope, name],
    { when: scope !== "key" && name !== "" },
  );
  return counted.busy ? null : (counted.data?.count ?? null);
}

/** What nothing limits yet. */
const UNLIMITED = {
  most: null,
  rate: null,
  burst: null,
  tokens: null,
  next_token_at: null,
  waiting_lanes: 0,
  scope: "",
  is_full: false,
  strict: false,
  source: "run time",
  declared: null,
  keys: [],
};
