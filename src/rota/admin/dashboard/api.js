// @ts-check
// Every request to the server. Knows sessions and errors; must never know a view.

import { parse, write } from "./exact.js";
import { clean } from "./format.js";
import { base, me, setClock } from "./state.js";
import { signal } from "./ui.js";

/** @type {Options} */
const SESSION = { root: "/api/session", quiet: true };
/** Kept for this origin, port included: unlike the cookie, no other server of this host gets it. */
const STORED = `rota-session:${base}`;
let csrf = storedProof();

function storedProof() {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} proof */
function keepProof(proof) {
  csrf = proof;
  try {
    if (proof) localStorage.setItem(STORED, proof);
    else localStorage.removeItem(STORED);
  } catch {
    // without storage the session lasts as long as the page
  }
}

/**
 * What went wrong, as far as a view needs to know. An ApiError is one, and so is every Error.
 * @typedef {{message: string, title?: string, code?: string, field?: string | null, status?: number,
 *   requestId?: string | null, done?: number | null}} Problem
 */
/** @typedef {Partial<import("./types").ProblemView>} ProblemBody */

/** An error answer of the server: its code, its message, the field it is about. */
export class ApiError extends Error {
  /** @param {ProblemBody} body @param {number} status */
  constructor(body, status) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.title = body.title ?? "";
    this.field = body.field ?? null;
    this.requestId = body.request_id ?? null;
    this.done = body.done ?? null;
  }
}

/** @param {unknown} error @returns {Problem} */
export function problemOf(error) {
  return error instanceof Error ? error : new Error(String(error));
}

/** @typedef {Record<string, unknown>} Query empty values are left out, lists are joined by commas */
/** @typedef {{query?: Query, body?: unknown, signal?: AbortSignal, root?: string, quiet?: boolean}} Options */

/**
 * @template T
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<T>}
 */
async function request(method, path, { query, body, signal, root = "/api/admin", quiet } = {}) {
  const search = query ? `${new URLSearchParams(searchParams(query))}` : "";
  const response = await fetch(base + root + path + (search && `?${search}`), {
    method,
    signal,
    credentials: "same-origin",
    headers: {
      Accept: "application/json",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...proof(),
    },
    body: body === undefined ? undefined : write(body),
  }).catch(unreachable);
  const text = await response.text();
  if (response.ok) return parse(text || "null");
  if (response.status === 401 && !quiet) me.value = null;
  const error = new ApiError(problemBody(text), response.status);
  if (error.code === "csrf") {
    const used = csrf;
    await identifyAgain(error);
    if (method === "GET" && csrf && csrf !== used) return request(method, path, { query, signal, root, quiet });
  }
  throw error;
}

/**
 * The session changed: another tab signed in. Before the next action the user must see which account is used.
 * @param {ApiError} error
 */
async function identifyAgain(error) {
  await whoAmI();
  if (!me.value) return;
  const account = `${clean(me.value.name)} (${me.value.role})`;
  error.message = `Another tab signed in as ${account}. Nothing was changed; try again to act as this account.`;
}

/** Shows that a request comes from the page that signed in: the cookie alone is not enough.
 * @returns {Record<string, string>} */
function proof() {
  return csrf ? { "X-CSRF-Token": csrf } : {};
}

/** A stream of events. @param {string} path @param {AbortSignal} signal */
export function openStream(path, signal) {
  return fetch(base + path, { signal, credentials: "same-origin", headers: proof() });
}

/** @param {unknown} error @returns {never} */
function unreachable(error) {
  if (error instanceof Error && error.name === "AbortError") throw error;
  const detail = "Can't reach the server; retrying. Running jobs are not affected.";
  throw new ApiError({ code: "unreachable", detail }, 0);
}

/** @param {string} text @returns {ProblemBody} */
function problemBody(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** @param {Query} query */
function searchParams(query) {
  return Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined && `${value}` !== "")
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : `${value}`]);
}

/** The admin API. Answers have the type that the path has in ``types.d.ts``. */
export const api = {
  /**
   * @template {string} P
   * @param {P} path
   * @param {Query} [query]
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./types").GetResponse<P>>}
   */
  get: (path, query, signal) => request("GET", path, { query, signal }),
  /**
   * @template {string} P
   * @param {P} path
   * @param {unknown} [body]
   * @returns {Promise<import("./types").PostResponse<P>>}
   */
  post: (path, body = {}) => request("POST", path, { body }),
  /**
   * @template {string} P
   * @param {P} path
   * @param {unknown} [body]
   * @returns {Promise<import("./types").PutResponse<P>>}
   */
  put: (path, body = {}) => request("PUT", path, { body }),
  /** @param {string} path @param {Query} [query] @returns {Promise<null>} */
  delete: (path, query) => request("DELETE", path, { query }),
};

// --- sessions ------------------------------------------------------------------------------------

/** Whether users can sign in with a password. */
export const passwords = signal(false);

/** Who is signed in? Sets ``me``; null if no one is. */
export async function whoAmI() {
  csrf = storedProof() || csrf; // another tab may have signed in
  applySession(await request("GET", "", SESSION));
}

/** @param {{token: string} | {user: string, password: string, new_password?: string} | {once: string}} credential */
export async function signIn(credential) {
  applySession(await request("POST", "", { ...SESSION, body: credential }));
}

/** Closes the view first: its requests must not meet the end of the session. */
export async function signOut() {
  const signedIn = me.value;
  me.value = undefined;
  try {
    await request("DELETE", "", SESSION);
  } catch (error) {
    me.value = signedIn;
    throw error;
  }
  applySession({ me: null });
}

/** @param {import("./types").SessionView} session */
function applySession(session) {
  keepProof(session.csrf ?? "");
  passwords.value = session.passwords ?? passwords.value;
  setClock(session.me?.now);
  me.value = session.me;
}
