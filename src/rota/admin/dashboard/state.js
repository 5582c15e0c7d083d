// @ts-check
// What the whole page knows: the address, who is signed in, the time, the theme.

import { computed, signal } from "./ui.js";

// --- address ---------------------------------------------------------------------------------------

const meta = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="rota-base"]'));
/** The path that rota is mounted under, without a slash at the end. */
export const base = (meta?.content ?? "").replace(/\/+$/, "");

const place = signal(here());

function here() {
  const { pathname, search } = location;
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  return { path: path.replace(/\/+$/, "") || "/", search };
}

/** The page's path below the base. */
export const path = computed(() => place.value.path);
/** The part after the question mark: every filter is kept here. */
export const query = computed(() => new URLSearchParams(place.value.search));

/** A link inside the dashboard. @param {string} to @param {Record<string, unknown>} [params] */
export function at(to, params) {
  const search = params ? `${new URLSearchParams(pruned(params))}` : "";
  return base + to + (search ? `?${search}` : "");
}

/** @param {string} to a path below the base, with its query @param {{replace?: boolean}} [how] */
export function go(to, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", base + to);
  place.value = here();
}

/**
 * Change some filters of this page; null, undefined and "" remove one.
 * @param {Record<string, unknown>} patch
 * @param {{replace?: boolean}} [how]
 */
export function refine(patch, how) {
  const next = pruned({ ...Object.fromEntries(query.value), ...patch });
  const search = `${new URLSearchParams(next)}`;
  go(path.value + (search ? `?${search}` : ""), how);
}

/** @param {Record<string, unknown>} params */
function pruned(params) {
  return Object.entries(params)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [name, `${value}`]);
}

addEventListener("popstate", () => (place.value = here()));

/** Links below the base change the view without loading the page again. @param {MouseEvent} event */
export function follow(event) {
  const link = /** @type {Element} */ (event.target).closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.download || event.defaultPrevented) return;
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${base}/`)) return;
  if (link.pathname.startsWith(`${base}/api/`)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname.slice(base.length) + link.search);
  scrollTo(0, 0);
  document.getElementById("main")?.focus({ preventScroll: true });
}

// --- user -----------------------------------------------------------------------------------------

/** Who is signed in; null: no one; undefined: not known yet. */
export const me = signal(/** @type {import("./types").CurrentActor | null | undefined} */ (undefined));

/** Whether the user has a permission. Buttons without it are not shown. @param {string | undefined} permission */
export function may(permission) {
  return !permission || (me.value?.permissions ?? []).includes(permission);
}

// --- time ----------------------------------------------------------------------------------------

let skew = 0; // the server's time minus the browser's, in milliseconds
/** The server's time in milliseconds; moves once a second. */
export const now = signal(Date.now());

/** @param {string | undefined} instant the server's time, just received */
export function setClock(instant) {
  if (instant) skew = Date.parse(instant) - Date.now();
  now.value = Date.now() + skew;
}
setInterval(() => (now.value = Date.now() + skew), 1000);
/** The same, to the minute. */
export const minute = computed(() => Math.floor(now.value / 60_000) * 60_000);

const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
/** The user's own time zone. */
export const ownZone = own;
/** The time zone that times are shown in. */
export const zone = remembered("rota.zone", "UTC", ["UTC", own]);

// --- theme ----------------------------------------------------------------------------------------

export const theme = remembered("rota.theme", "system", ["system", "light", "dark"]);
theme.subscribe((chosen) => {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
});

/** A signal that this browser remembers. @param {string} key @param {string} otherwise @param {string[]} allowed */
function remembered(key, otherwise, allowed) {
  const stored = localStorage.getItem(key) ?? otherwise;
  const kept = signal(allowed.includes(stored) ? stored : otherwise);
  kept.subscribe((value) => localStorage.setItem(key, value));
  return kept;
}
