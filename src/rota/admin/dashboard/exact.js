// @ts-check
// JSON in which integers stay exact: those beyond 2^53 become BigInt on the way in and digits on the way out.

// A mark that no stored text can contain: it cannot be guessed.
const MARK = `int:${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
const STRING_OR_LONG_INTEGER = /"(?:[^"\\]|\\.)*"|(?<![\w.+-])-?\d{16,}(?![\d.eE])/g;

/** @param {string} text */
export function parse(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(STRING_OR_LONG_INTEGER, (found) =>
    found[0] === '"' || Number.isSafeInteger(Number(found)) ? found : `"${MARK}${found}"`,
  );
  return JSON.parse(marked, (_key, value) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** @param {unknown} value @param {number} [indent] */
export function write(value, indent) {
  const text = JSON.stringify(value, (_key, one) => (typeof one === "bigint" ? `${MARK}${one}` : one), indent);
  return text?.replaceAll(new RegExp(`"${MARK}(-?\\d+)"`, "g"), "$1");
}
