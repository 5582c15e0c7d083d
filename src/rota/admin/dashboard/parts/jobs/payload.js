// @ts-check
// A payload as somebody writes it. Pure.

import { parse, write } from "../../exact.js";

const MASK = "•••"; // what the server writes in place of a secret

/** Whether a payload is told whole: neither hidden from this reader nor with a mask in it. @param {unknown} payload */
export function isWhole(payload) {
  return typeof payload !== "string" && !(write(payload) ?? "").includes(MASK);
}

/**
 * What a text says, and what is wrong with it as a payload.
 * @param {string} text
 * @returns {{value: any, error: string | null}}
 */
export function payloadOf(text) {
  try {
    const value = text.trim() ? parse(text) : {};
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    if (!isObject)
      return { value: null, error: 'A payload is an object: names and values in braces, such as {"days": 30}.' };
    return {
      value,
      error: isWhole(value)
        ? null
        : `Write each secret in full in place of ${MASK}: a mask would be stored as it stands.`,
    };
  } catch (problem) {
    return { value: null, error: `This is no JSON yet. ${/** @type {Error} */ (problem).message}` };
  }
}
