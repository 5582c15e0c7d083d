// @ts-check
// Search with filters: "task:send_receipt -queue:bulk since:12h". Each becomes a chip and a parameter of the URL.

import { api } from "../../api.js";
import { JOB_STATE_LABELS, valuesOf } from "../../labels.js";
import { go, may, now } from "../../state.js";
import { html, useMemo, useRef, useState } from "../../ui.js";
import { clean } from "../../format.js";
import { onValue } from "../base/form.js";
import { Glyph } from "../base/glyph.js";
import { ID, completions, interpret, tokens } from "./search-query.js";

const DURATIONS = ["15m", "1h", "12h", "24h", "7d", "30d"];

/** Whether a key may be used several times. @param {string} key */
export function isRepeatable(key) {
  return key.startsWith("-") || key === "payload";
}

/** The URL's parameter of a token's key. @param {string} key */
export function parameter(key) {
  return key.startsWith("-") ? `not_${key.slice(1)}` : key;
}

/** Values to complete with, loaded once. @returns {Promise<Record<string, string[]>>} */
async function loadValues() {
  const names = (/** @type {{items: {name: string}[]}} */ page) => page.items.map((one) => one.name);
  const shared = may("read.shared");
  const [queues, tenants, schedules, tasks, workers] = await Promise.all([
    api.get("/queues").then(names),
    api.get("/tenants").then(names),
    api.get("/schedules", { limit: 200 }).then(names),
    shared ? api.get("/tasks").then(names) : [],
    shared ? api.get("/workers").then((page) => page.items.map((one) => one.id)) : [],
  ]);
  return {
    state: valuesOf(JOB_STATE_LABELS),
    queue: queues,
    "-queue": queues,
    tenant: tenants,
    schedule: schedules,
    task: tasks,
    "-task": tasks,
    worker: workers,
    since: DURATIONS,
    until: DURATIONS,
  };
}

/**
 * @param {{chips: [string, string][], onAdd: (key: string, value: string) => void, onRemove: (key: string, value:
 *   string) => void}} props
 */
export function SearchTokens({ chips, onAdd, onRemove }) {
  const [text, setText] = useState("");
  const [values, setValues] = useState(/** @type {Record<string, string[]>} */ ({}));
  const [open, setOpen] = useState(false);
  const [index, setIndex] = useState(-1);
  const [message, setMessage] = useState("");
  const loading = useRef(/** @type {ReturnType<typeof loadValues> | null} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const offers = useMemo(() => (open ? completions(text, values) : []), [text, values, open]);
  const known = () => (loading.current ??= loadValues().then((found) => (setValues(found), found)));
  const focus = () => {
    setOpen(true);
    known().catch(() => (loading.current = null));
  };
  const type = (/** @type {string} */ typed) => (setText(typed), setMessage(""), setOpen(true), setIndex(-1));
  const submit = async (/** @type {string} */ typed) => {
    const found = tokens(typed);
    if (found.length === 1 && ID.test(found[0][1])) return go(`/jobs/${found[0][1]}`);
    const meant = interpret(typed, await known().catch(() => ({ state: valuesOf(JOB_STATE_LABELS) })), now.peek());
    meant.sure.forEach(([key, value]) => onAdd(key, value));
    type(meant.rest);
    setOpen(meant.rest !== "");
    setIndex(meant.rest ? 0 : -1); // a second Enter takes the first completion
    return setMessage(meant.message);
  };
  const take = (/** @type {string} */ offer) => {
    if (/[:.]$/.test(offer)) type(offer);
    else void submit(offer);
    field.current?.focus();
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const most = offers.length || 1;
      setIndex((Math.max(index, step < 0 ? 0 : -1) + step + most) % most);
    } else if (event.key === "Enter" || (event.key === "Tab" && index >= 0)) {
      event.preventDefault();
      if (offers[index]) take(offers[index].line);
      else if (text.trim()) void submit(text);
    } else if (event.key === "Backspace" && !text && chips.length) {
      const [key, value] = chips[chips.length - 1];
      onRemove(key, value);
    } else if (event.key === "Escape") {
      type("");
      setOpen(false);
      field.current?.blur();
    }
  };
  return html`<div class="search" role="search" data-wrong=${message ? "" : undefined}>
    <${Glyph} name="find" />
    ${chips.map(
      ([key, value]) =>
        html`<span class="chip" key=${key + value}>
          <i>${key}:</i>
          <b>${clean(value)}</b>
          <button type="button" aria-label=${`Remove ${key}:${value}`} onClick=${() => onRemove(key, value)}>
            <${Glyph} name="close" />
          </button>
        </span>`,
    )}
    <input
      ref=${field}
      data-search
      type="text"
      role="combobox"
      aria-label="Search jobs"
      aria-expanded=${offers.length ? "true" : "false"}
      aria-controls="search-offers"
      aria-activedescendant=${offers[index] ? `offer-${index}` : undefined}
      autocomplete="off"
      autocapitalize="off"
      spellcheck=${false}
      aria-invalid=${message ? "true" : undefined}
      aria-describedby="search-message"
      placeholder=${chips.length ? "" : "state: task: queue: tenant: tag: error: worker: since: payload.a.b: …"}
      value=${text}
      onFocus=${focus}
      onBlur=${() => setTimeout(() => setOpen(false), 150)}
      onInput=${onValue(type)}
      onKeyDown=${press}
    />
    <kbd>/</kbd>
    <ul id="search-offers" class="offers" role="listbox" aria-label="Completions" hidden=${!offers.length}>
      ${offers.map(
        (offer, i) =>
          html`<li
            id=${`offer-${i}`}
            role="option"
            aria-selected=${i === index ? "true" : "false"}
            onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), take(offer.line))}
          >
            ${clean(offer.line)}
            ${offer.message && html` <span class="faint">${offer.message}</span>`}
          </li>`,
      )}
    </ul>
    <p id="search-message" class="search-message" role="status">
      ${message && html`<${Glyph} name="warn" />${clean(message)}`}
    </p>
  </div>`;
}
