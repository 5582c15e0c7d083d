// @ts-check
// A payload as text. Pure.

import { parse, write } from "../../exact.js";

const MASK = "•••"; // what the server writes in place of a secret

/** Whether a payload is complete: neither hidden nor with a mask in it. @param {unknown} payload */
export function isWhole(payload) {
  return typeof payload !== "string" && !(write(payload) ?? "").includes(MASK);
}

/**
 * The payload in a text, and what is wrong with it.
 * @param {string} text
 * @returns {{value: unknown, error: string | null}}
 */
export function payloadOf(text) {
  try {
    const value = text.trim() ? parse(text) : {};
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    if (!isObject) return { value: null, error: 'A payload is a JSON object, such as {"days": 30}.' };
    return {
      value,
      error: isWhole(value) ? null : `Replace each ${MASK} with the secret itself: the mask would be stored as text.`,
    };
  } catch (problem) {
    return { value: null, error: `This is not valid JSON. ${/** @type {Error} */ (problem).message}` };
  }
}
