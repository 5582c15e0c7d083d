// @ts-check
// Every request to the server. It knows sessions and errors; it knows no view.

import { parse, write } from "./exact.js";
import { base, me, setClock } from "./state.js";
import { signal } from "./ui.js";
import { clean } from "./format.js";

/** @type {Options} */
const SESSION = { root: "/api/session", quiet: true };
let csrf = "";

/** What the server refused: its code, its words, the field it is about. */
export class ApiError extends Error {
  /** @param {any} problem @param {number} status */
  constructor(problem, status) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.status = status;
    this.code = problem.code ?? "";
    this.title = problem.title ?? "";
    this.field = problem.field ?? null;
    this.requestId = problem.request_id ?? null;
  }
}

/**
 * @typedef {{query?: Record<string, any>, body?: unknown, signal?: AbortSignal, root?: string, quiet?: boolean}}
 *   Options
 */

/** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
export async function request(method, path, { query, body, signal, root = "/api/admin", quiet } = {}) {
  const search = query ? `${new URLSearchParams(searchParams(query))}` : "";
  const response = await fetch(base + root + path + (search && `?${search}`), {
    method,
    signal,
    credentials: "same-origin",
    headers: {
      Accept: "application/json",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(method === "GET" ? {} : { "X-CSRF-Token": csrf }),
    },
    body: body === undefined ? undefined : write(body),
  }).catch(unreachable);
  const text = await response.text();
  if (response.ok) return text ? parse(text) : null;
  if (response.status === 401 && !quiet) me.value = null;
  const error = new ApiError(problemOf(text), response.status);
  if (error.code === "csrf") await identifyAgain(error);
  throw error;
}

/**
 * The session is not the one this page knew: somebody signed in from another tab. Whoever acts now must know in whose
 * name.
 * @param {ApiError} error
 */
async function identifyAgain(error) {
  await whoAmI();
  if (me.value)
    error.message = `Somebody signed in from another tab: you are ${clean(me.value.name)} now, ${me.value.role}. Nothing was done; press again to do it in that name.`;
}

/** @param {any} error @returns {never} */
function unreachable(error) {
  if (error.name === "AbortError") throw error;
  throw new ApiError(
    { code: "unreachable", detail: "The server does not answer. What runs goes on; this page tries again." },
    0,
  );
}

/** @param {string} text */
function problemOf(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** @param {Record<string, any>} query */
function searchParams(query) {
  return Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined && value !== "" && `${value}` !== "")
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : `${value}`]);
}

export const api = {
  /** @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
  get: (path, query, signal) => request("GET", path, { query, signal }),
  /** @param {string} path @param {unknown} [body] */
  post: (path, body = {}) => request("POST", path, { body }),
  /** @param {string} path @param {unknown} [body] */
  put: (path, body = {}) => request("PUT", path, { body }),
  /** @param {string} path @param {Record<string, any>} [query] */
  delete: (path, query) => request("DELETE", path, { query }),
};

// --- sessions ------------------------------------------------------------------------------------

/** Whether anybody can sign in with a password. */
export const passwords = signal(false);

/** Who am I? Sets ``me``; null if nobody is signed in. */
export async function whoAmI() {
  applySession(await request("GET", "", SESSION));
}

/** @param {{token: string} | {user: string, password: string} | {once: string}} credential */
export async function signIn(credential) {
  applySession(await request("POST", "", { ...SESSION, body: credential }));
}

export async function signOut() {
  await request("DELETE", "", SESSION);
  applySession({ me: null });
}

/** @param {{me: import("./types").Me | null, csrf?: string | null, passwords?: boolean}} session */
function applySession(session) {
  csrf = session.csrf ?? "";
  passwords.value = session.passwords ?? passwords.value;
  setClock(session.me?.now);
  me.value = session.me;
}
