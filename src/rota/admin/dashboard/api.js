// @ts-check
// Every request to the server. It knows sessions and errors; it knows no view.

import { parse, write } from "./exact.js";
import { base, me, setClock } from "./state.js";
import { signal } from "./ui.js";
import { clean } from "./words.js";

/** @type {Options} */
const SESSION = { root: "/api/session", quiet: true };
let csrf = "";

/** What the server refused: its code, its words, the field it is about. */
export class Refusal extends Error {
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

/** @typedef {{query?: Record<string, any>, body?: unknown, signal?: AbortSignal, root?: string, quiet?: boolean}} Options */

/** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
export async function request(method, path, { query, body, signal, root = "/api/admin", quiet } = {}) {
  const search = query ? `${new URLSearchParams(searchable(query))}` : "";
  const answer = await fetch(base + root + path + (search && `?${search}`), {
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
  const text = await answer.text();
  if (answer.ok) return text ? parse(text) : null;
  if (answer.status === 401 && !quiet) me.value = null;
  const refusal = new Refusal(readable(text), answer.status);
  if (refusal.code === "csrf") await meetAnew(refusal);
  throw refusal;
}

/** The session is not the one this page knew: somebody signed in from another tab. Whoever acts now must know in whose name. @param {Refusal} refusal */
async function meetAnew(refusal) {
  await whoAmI();
  if (me.value) refusal.message = `Somebody signed in from another tab: you are ${clean(me.value.name)} now, ${me.value.role}. Nothing was done; press again to do it in that name.`;
}

/** @param {any} error @returns {never} */
function unreachable(error) {
  if (error.name === "AbortError") throw error;
  throw new Refusal({ code: "unreachable", detail: "The server does not answer. What runs goes on; this page tries again." }, 0);
}

/** @param {string} text */
function readable(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** @param {Record<string, any>} query */
function searchable(query) {
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
  adopt(await request("GET", "", SESSION));
}

/** @param {{token: string} | {user: string, password: string} | {once: string}} credential */
export async function signIn(credential) {
  adopt(await request("POST", "", { ...SESSION, body: credential }));
}

export async function signOut() {
  await request("DELETE", "", SESSION);
  adopt({ me: null });
}

/** @param {{me: import("./types").CurrentActor | null, csrf?: string | null, passwords?: boolean}} session */
function adopt(session) {
  csrf = session.csrf ?? "";
  passwords.value = session.passwords ?? passwords.value;
  setClock(session.me?.now);
  me.value = session.me;
}
