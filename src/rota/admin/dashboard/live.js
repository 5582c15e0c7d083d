// @ts-check
// News from the server, pushed. Held while somebody pauses it, selects rows, or does not look.
//
// News is a hint to look again, never the truth itself: views answer it by loading anew, so that a
// lost event costs a second and no more.

import { whoAmI } from "./api.js";
import { parse } from "./exact.js";
import { base, me, now } from "./state.js";
import { computed, effect, signal, useEffect } from "./ui.js";

const EVENT_NAMES = ["stats", "job", "gate", "schedule", "worker", "audit"];
/** Told when the line is there again, and with it all names: what could not be loaded is worth another try. */
export const RECONNECTED = "back";
const LONGEST_WAIT = 15_000;

/** Who holds the news: "pause" (the button), "select", "hidden". */
const holders = signal(/** @type {string[]} */ ([]));
export const connected = signal(false);
/** When news was last heard, by the server's clock. */
export const lastEventAt = signal(now.peek());
/** How many pieces of news wait while held. */
export const pendingEvents = signal(0);
export const onHold = computed(() => holders.value.length > 0);
export const pausedByUser = computed(() => holders.value.includes("pause"));

/** @type {Map<string, Set<(data: any) => void>>} */
const listeners = new Map();
/** @type {EventSource | null} */
let source = null;
let lastId = "";
let opened = false;
/** @type {Set<string>} */
let missed = new Set();
let wait = 1000;
let timer = 0;

/** @param {string} who */
export function holdUpdates(who) {
  if (!holders.value.includes(who)) holders.value = [...holders.value, who];
}

/** @param {string} who */
export function releaseUpdates(who) {
  holders.value = holders.value.filter((one) => one !== who);
}

/** @param {string} name @param {any} data */
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
    // A closed stream does not come back by itself: the server refused it, or went away.
    if (source?.readyState === EventSource.CLOSED) reconnect();
  };
  for (const name of EVENT_NAMES)
    source.addEventListener(name, (event) => receive(name, /** @type {MessageEvent} */ (event)));
  source.addEventListener("reset", (event) => {
    lastId = /** @type {MessageEvent} */ (event).lastEventId || "";
    reloadAll();
  });
}

/**
 * What happened while nobody listened may never be told: everybody looks again, or will when news is no longer held.
 */
function reloadAll() {
  for (const name of [...EVENT_NAMES, RECONNECTED]) missed.add(name);
  if (!onHold.value) flush();
}

function reconnect() {
  whoAmI().catch(() => {}); // if it was refused because the session has ended, this leads to the door
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

/** Tell what was missed while held. */
function flush() {
  const names = missed;
  missed = new Set();
  pendingEvents.value = 0;
  for (const name of names) dispatch(name, null);
}

/** Begin to listen; stops by itself when nobody is signed in, rests while the tab is hidden. */
export function start() {
  const followVisibility = () => (document.hidden ? holdUpdates("hidden") : releaseUpdates("hidden"));
  document.addEventListener("visibilitychange", followVisibility);
  followVisibility();
  addEventListener("pagehide", close);
  const wanted = computed(() => Boolean(me.value) && !holders.value.includes("hidden"));
  effect(() => (wanted.value ? open() : close()));
  effect(() => {
    if (!onHold.value) queueMicrotask(flush);
  });
}

/**
 * Call back on news of these names; with null when some was missed.
 * @param {string[]} names
 * @param {(data: any) => void} listener
 */
export function listen(names, listener) {
  for (const name of names) listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
  return () => names.forEach((name) => listeners.get(name)?.delete(listener));
}

/** The same for a component. @param {string[]} names @param {(data: any) => void} listener @param {any[]} deps */
export function useEvents(names, listener, deps = []) {
  useEffect(() => listen(names, listener), deps);
}

/** Something was changed from this page: those who listen look again at once, held or not. @param {string} name */
export function announce(name) {
  dispatch(name, null);
}
