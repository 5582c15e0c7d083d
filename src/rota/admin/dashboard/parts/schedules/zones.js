// @ts-check
// Wall times in other time zones, and back. Pure.

const DAY = 86_400_000;
const formats = new Map();

/** Names of time zones, for completion. @returns {string[]} */
export function zones() {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((name) => name !== "UTC")];
}

/** Whether this browser has the time zone. @param {string} zone */
export function isZone(zone) {
  return format(zone, {}) !== null;
}

/** @param {string} zone @param {Intl.DateTimeFormatOptions} options @returns {Intl.DateTimeFormat | null} */
function format(zone, options) {
  const key = `${zone} ${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, formatFor(zone, options));
  return formats.get(key);
}

/** @param {string} zone @param {Intl.DateTimeFormatOptions} options */
function formatFor(zone, options) {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options });
  } catch {
    return null;
  }
}

/** "Tue 17 Nov". @param {string | number} instant @param {string} zone */
export function dayIn(instant, zone) {
  return (
    format(zone, { weekday: "short", day: "numeric", month: "short" })?.format(new Date(instant)).replace(",", "") ?? ""
  );
}

/**
 * "02:30", with seconds if there are any, and the short name of the zone.
 * @param {string | number} instant
 * @param {string} zone
 * @param {boolean} [named]
 */
export function timeIn(instant, zone, named = false) {
  const second = Math.floor(new Date(instant).getTime() / 1000) % 60 ? /** @type {const} */ ("2-digit") : undefined;
  return (
    format(zone, { hour: "2-digit", minute: "2-digit", second, timeZoneName: named ? "short" : undefined })?.format(
      new Date(instant),
    ) ?? ""
  );
}

/** "Stockholm". @param {string} zone */
export function placeOf(zone) {
  return zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ");
}

/** The zone's offset from UTC at a time, in milliseconds. @param {number} at @param {string} zone */
function offset(at, zone) {
  const second = Math.floor(at / 1000) * 1000;
  return Date.parse(`${wallIn(second, zone, true)}Z`) - second;
}

/**
 * The wall time as a form field has it: 2026-11-16T06:30.
 * @param {string | number} instant
 * @param {string} zone
 * @param {boolean} [seconds]
 */
export function wallIn(instant, zone, seconds = false) {
  const parts =
    format(zone, {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    })?.formatToParts(new Date(instant)) ?? [];
  const of = Object.fromEntries(parts.map((part) => [part.type, part.value]));
  return `${of.year}-${of.month}-${of.day}T${of.hour}:${of.minute}${seconds ? `:${of.second}` : ""}`;
}

/**
 * The time of a wall time; one that does not exist is moved past the gap.
 * @param {string} wall
 * @param {string} zone
 * @returns {string | null}
 */
export function instantIn(wall, zone) {
  const plain = Date.parse(`${wall}Z`);
  if (Number.isNaN(plain) || !isZone(zone)) return null;
  const guess = plain - offset(plain, zone);
  return new Date(plain - offset(guess, zone)).toISOString();
}

/**
 * The days of the next year on which the zone's clocks change.
 * @param {string} zone
 * @param {number} from
 * @returns {number[]}
 */
export function clockChanges(zone, from) {
  if (!isZone(zone)) return [];
  const first = Math.floor(from / DAY) * DAY;
  const days = Array.from({ length: 367 }, (_, i) => first + i * DAY);
  return days.filter((day, i) => i > 0 && offset(day, zone) !== offset(days[i - 1], zone));
}
