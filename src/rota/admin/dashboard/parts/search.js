// @ts-check
// Search by tokens: "task:send_receipt -queue:bulk since:12h". Each becomes a chip, and a parameter of the URL.

import { api } from "../api.js";
import { go, may } from "../state.js";
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { clean } from "../words.js";
import { Glyph } from "./glyph.js";

/** Keys and where their values come from; "-" before a key excludes. */
export const KEYS = ["task", "queue", "tenant", "tag", "error", "payload", "worker", "since", "until", "schedule", "key", "parent", "-task", "-queue"];
const SPANS = ["15m", "1h", "12h", "24h", "7d", "30d"];
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a key may be said several times. @param {string} key */
export function isMany(key) {
  return key.startsWith("-") || key === "payload";
}

/** The URL's parameter of a token's key. @param {string} key */
export function parameter(key) {
  return key.startsWith("-") ? `not_${key.slice(1)}` : key;
}

/** Tokens of a line; words without a key stand alone. Quotes hold spaces together. @param {string} text @returns {[string, string][]} */
export function tokens(text) {
  return [...text.matchAll(/(?:(-?[\w.]+):)?(?:"([^"]*)"|(\S+))/g)].map(([, key = "", quoted, plain]) => [key, quoted ?? plain]);
}

/** Values to complete with, asked for once. @returns {Promise<Record<string, string[]>>} */
async function loadValues() {
  const names = (/** @type {any} */ page) => page.items.map((/** @type {any} */ one) => one.name);
  const shared = may("read.shared");
  const [queues, tenants, schedules, tasks, workers] = await Promise.all([
    api.get("/queues").then(names),
    api.get("/tenants").then(names),
    api.get("/schedules", { limit: 200 }).then(names),
    shared ? api.get("/tasks").then(names) : [],
    shared ? api.get("/workers").then((page) => page.items.map((/** @type {any} */ one) => one.id)) : [],
  ]);
  return { queue: queues, "-queue": queues, tenant: tenants, schedule: schedules, task: tasks, "-task": tasks, worker: workers, since: SPANS, until: SPANS };
}

/** @param {{chips: [string, string][], onAdd: (key: string, value: string) => void, onRemove: (key: string, value: string) => void}} props */
export function SearchTokens({ chips, onAdd, onRemove }) {
  const [text, setText] = useState("");
  const [values, setValues] = useState(/** @type {Record<string, string[]>} */ ({}));
  const [open, setOpen] = useState(false);
  const [index, setIndex] = useState(-1);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const offers = useMemo(() => (open ? offered(text, values) : []), [text, values, open]);
  useEffect(() => setIndex(-1), [text]);
  const focus = () => {
    setOpen(true);
    if (!Object.keys(values).length) loadValues().then(setValues, () => {});
  };
  const submit = (/** @type {string} */ said) => {
    const found = tokens(said);
    if (found.length === 1 && ID.test(found[0][1])) return go(`/jobs/${found[0][1]}`);
    for (const [key, value] of found) {
      if (key.startsWith("payload.")) onAdd("payload", `${key.slice(8)}=${value}`);
      else onAdd(KEYS.includes(key) ? key : "task", value);
    }
    setText("");
    return undefined;
  };
  const take = (/** @type {string} */ offer) => {
    if (/[:.]$/.test(offer)) setText(offer);
    else submit(offer);
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
      if (index >= 0 && offers[index]) take(offers[index]);
      else if (text.trim()) submit(text);
    } else if (event.key === "Backspace" && !text && chips.length) {
      const [key, value] = chips[chips.length - 1];
      onRemove(key, value);
    } else if (event.key === "Escape") {
      setOpen(false);
      setText("");
      field.current?.blur();
    }
  };
  return html`<div class="search" role="search">
    <${Glyph} name="find" />
    ${chips.map(([key, value]) => html`<span class="chip" key=${key + value}><i>${key}:</i><b>${clean(value)}</b><button type="button" aria-label=${`Remove ${key}:${value}`} onClick=${() => onRemove(key, value)}><${Glyph} name="close" /></button></span>`)}
    <input ref=${field} data-search type="text" role="combobox" aria-label="Search jobs" aria-expanded=${offers.length ? "true" : "false"} aria-controls="search-offers" aria-activedescendant=${index >= 0 ? `offer-${index}` : undefined} autocomplete="off" autocapitalize="off" spellcheck=${false}
      placeholder=${chips.length ? "" : "task: queue: tenant: tag: error: worker: since: payload.a.b: …"} value=${text}
      onFocus=${focus} onBlur=${() => setTimeout(() => setOpen(false), 150)} onInput=${(/** @type {any} */ event) => (setText(event.target.value), setOpen(true))} onKeyDown=${press} />
    <kbd>/</kbd>
    <ul id="search-offers" class="offers" role="listbox" aria-label="Completions" hidden=${!offers.length}>${offers.map((offer, i) => html`<li id=${`offer-${i}`} role="option" aria-selected=${i === index ? "true" : "false"} onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), take(offer))}>${clean(offer)}</li>`)}</ul>
  </div>`;
}

/** @param {string} text @param {Record<string, string[]>} values */
function offered(text, values) {
  const [, key, begun] = /^(-?[\w.]+):"?(.*)$/.exec(text) ?? [];
  if (key) return (values[key] ?? []).filter((value) => value.toLowerCase().includes(begun.toLowerCase())).slice(0, 8).map((value) => `${key}:${/\s/.test(value) ? `"${value}"` : value}`);
  const wanted = text.toLowerCase();
  const keys = KEYS.filter((one) => one.startsWith(wanted)).map((one) => (one === "payload" ? "payload." : `${one}:`));
  const named = wanted ? ["task", "queue", "tenant", "schedule"].flatMap((one) => (values[one] ?? []).filter((value) => value.toLowerCase().includes(wanted)).map((value) => `${one}:${value}`)) : [];
  return [...keys, ...named, ...(text && !keys.length ? [`error:${/\s/.test(text) ? `"${text}"` : text}`] : [])].slice(0, 13);
}
