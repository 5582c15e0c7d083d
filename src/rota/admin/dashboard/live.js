// @ts-check
// Live updates, pushed by the server. On hold while the user pauses them, selects rows or hides the tab.
//
// An event is a hint to load again, never the data itself: a lost event costs a second and no more.

import { whoAmI } from "./api.js";
import { parse } from "./exact.js";
import { base, me, now } from "./state.js";
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
/** @type {EventSource | null} */
let source = null;
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

/** @param {string} name @param {MessageEvent} event */
function receive(name, event) {
  lastId = event.lastEventId || lastId;
  lastEventAt.value = now.peek();
  if (onHold.value) {
    missed.add(name);
    pendingEvents.value += 1;
    return;
  }
  dispatch(name, event.data ? parse(event.data) : null);
}

function open() {
  close();
  const resume = lastId ? `?last_event_id=${encodeURIComponent(lastId)}` : "";
  source = new EventSource(`${base}/api/admin/events${resume}`);
  source.onopen = () => {
    connected.value = true;
    lastEventAt.value = now.peek();
    wait = 1000;
    if (opened) reloadAll();
    opened = true;
  };
  source.onerror = () => {
    connected.value = false;
    // A closed stream does not reopen by itself: the server rejected it, or is unavailable.
    if (source?.readyState === EventSource.CLOSED) reconnect();
  };
  for (const name of EVENT_NAMES)
    source.addEventListener(name, (event) => receive(name, /** @type {MessageEvent} */ (event)));
  source.addEventListener("reset", (event) => {
    lastId = /** @type {MessageEvent} */ (event).lastEventId || "";
    reloadAll();
  });
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
  source?.close();
  source = null;
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
