// @ts-check
// Live updates, pushed by the server. On hold while the user pauses them, selects rows or hides the tab.
//
// An event is a hint to load again, never the data itself: a lost event costs a second and no more.

import { openStream, whoAmI } from "./api.js";
import { parse } from "./exact.js";
import { me, now } from "./state.js";
import { computed, effect, signal, useEffect } from "./ui.js";

const EVENT_NAMES = ["stats", "job", "gate", "schedule", "worker", "audit"];
/** Sent with all other names after a reconnect: what could not be loaded is worth another try. */
export const RECONNECTED = "reconnected";
const LONGEST_WAIT = 15_000;

/** @typedef {Partial<import("./types").JobView> & {object?: string | null}} EventData */
/** @typedef {(data: EventData | null) => void} Listener gets null if events were missed */

/** Why updates are on hold: "pause" (the button), "select", "hidden". */
const holds = signal(/** @type {string[]} */ ([]));
export const connected = signal(false);
/** When the last event arrived, by the server's clock. */
export const lastEventAt = signal(now.peek());
/** How many events arrived while on hold. */
export const pendingEvents = signal(0);
export const onHold = computed(() => holds.value.length > 0);
export const pausedByUser = computed(() => holds.value.includes("pause"));

/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();
/** @type {AbortController | null} */
let stream = null;
let lastId = "";
let opened = false;
/** @type {Set<string>} */
let missed = new Set();
let wait = 1000;
let timer = 0;

/** @param {string} reason */
export function holdUpdates(reason) {
  if (!holds.value.includes(reason)) holds.value = [...holds.value, reason];
}

/** @param {string} reason */
export function releaseUpdates(reason) {
  holds.value = holds.value.filter((one) => one !== reason);
}

/** @param {string} name @param {EventData | null} data */
function dispatch(name, data) {
  for (const listener of listeners.get(name) ?? []) listener(data);
}

/** @typedef {{id: string, name: string, data: string}} StreamEvent */

/** @param {StreamEvent} event */
function receive({ id, name, data }) {
  if (name === "reset") {
    lastId = id;
    return reloadAll();
  }
  lastId = id || lastId;
  if (!EVENT_NAMES.includes(name)) return;
  lastEventAt.value = now.peek();
  if (onHold.value) {
    missed.add(name);
    pendingEvents.value += 1;
    return;
  }
  dispatch(name, data ? parse(data) : null);
}

/** Read the stream until it ends. By fetch: an EventSource sends no headers, and so cannot prove who it is. */
async function open() {
  close();
  const own = (stream = new AbortController());
  const resume = lastId ? `?last_event_id=${encodeURIComponent(lastId)}` : "";
  try {
    const response = await openStream(`/api/admin/events${resume}`, own.signal);
    if (response.ok && response.body) {
      begun();
      for await (const event of eventsOf(response.body)) receive(event);
    }
  } catch {
    // reported below, as every end of the stream is
  }
  if (stream !== own) return;
  connected.value = false;
  reconnect();
}

function begun() {
  connected.value = true;
  lastEventAt.value = now.peek();
  wait = 1000;
  if (opened) reloadAll();
  opened = true;
}

/**
 * The events of a stream, as https://html.spec.whatwg.org describes its format.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = parts.pop() ?? "";
    yield* parts.map(eventOf);
  }
}

/** @param {string} text @returns {StreamEvent} */
function eventOf(text) {
  const event = { id: "", name: "message", data: "" };
  for (const line of text.split("\n")) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "id") event.id = value;
    else if (field === "event") event.name = value;
    else if (field === "data") event.data += value;
  }
  return event;
}

/** Events of the time without a connection are lost: every view loads again, at once or when the hold ends. */
function reloadAll() {
  for (const name of [...EVENT_NAMES, RECONNECTED]) missed.add(name);
  if (!onHold.value) flush();
}

function reconnect() {
  whoAmI().catch(() => {}); // if the session has ended, this leads to the sign-in page
  clearTimeout(timer);
  timer = setTimeout(open, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

function close() {
  clearTimeout(timer);
  stream?.abort();
  stream = null;
  connected.value = false;
}

/** Dispatch what arrived while on hold. */
function flush() {
  const names = missed;
  missed = new Set();
  pendingEvents.value = 0;
  for (const name of names) dispatch(name, null);
}

/** Start listening. Stops by itself when no one is signed in or the tab is hidden. */
export function start() {
  const followVisibility = () => (document.hidden ? holdUpdates("hidden") : releaseUpdates("hidden"));
  document.addEventListener("visibilitychange", followVisibility);
  followVisibility();
  addEventListener("pagehide", close);
  const wanted = computed(() => Boolean(me.value) && !holds.value.includes("hidden"));
  effect(() => (wanted.value ? open() : close()));
  effect(() => {
    if (!onHold.value) queueMicrotask(flush);
  });
}

/** @param {string[]} names @param {Listener} listener */
export function listen(names, listener) {
  for (const name of names) listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
  return () => names.forEach((name) => listeners.get(name)?.delete(listener));
}

/** The same for a component. @param {string[]} names @param {Listener} listener @param {unknown[]} deps */
export function useEvents(names, listener, deps = []) {
  useEffect(() => listen(names, listener), deps);
}

/** This page changed something: every listening view loads again at once, on hold or not. @param {string} name */
export function announce(name) {
  dispatch(name, null);
}
