// @ts-check
// Numbers, durations and times as people read them. Pure.

const GROUPED = new Intl.NumberFormat("en");
// Control characters and those that change the direction of text: stored text must not disguise itself.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Stored text, safe to show. @param {unknown} text */
export function clean(text) {
  return String(text ?? "").replace(UNSEEN, "\ufffd");
}

/** The same on one line, cut to a length. @param {unknown} text */
export function line(text, most = 240) {
  const flat = clean(text).replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}

/** @param {number | bigint} value */
export function count(value) {
  return GROUPED.format(value);
}

/** A short count: 92k, 1.2M. @param {number} value */
export function compact(value) {
  if (value < 10_000) return count(value);
  if (value < 999_500) return `${Math.round(value / 1000)}k`;
  return `${(value / 1e6).toFixed(1)}M`;
}

/** "1 job", "3 jobs". @param {number} n @param {string} one @param {string} [plural] */
export function plural(n, one, plural = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : plural}`;
}

/** A duration: 0.4 s, 12 s, 12 min 31 s, 1 h 12 min, 3 d 4 h. @param {number} seconds */
export function duration(seconds) {
  const s = Math.abs(seconds);
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${s.toFixed(s < 9.95 ? 1 : 0)} s`;
  const whole = Math.round(s);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return pair(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return pair(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

/** @param {number} a @param {string} big @param {number} b @param {string} small */
function pair(a, big, b, small) {
  return b ? `${a} ${big} ${b} ${small}` : `${a} ${big}`;
}

/** A time relative to now: "9 min ago", "in 2 min 24 s", "now". @param {string} instant @param {number} now */
export function relative(instant, now) {
  const seconds = (Date.parse(instant) - now) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  if (seconds < 0) return `${rough(-seconds)} ago`;
  return `in ${duration(Math.ceil(seconds))}`;
}

/** One unit is enough for the past. @param {number} s */
function rough(s) {
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

const clocks = new Map();
/** @param {string} zone @param {Intl.DateTimeFormatOptions} options */
function format(zone, options) {
  const key = zone + JSON.stringify(options);
  if (!clocks.has(key)) clocks.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options }));
  return clocks.get(key);
}

/**
 * An exact time: 01:38:02, with the day if that is not today.
 * @param {string | number} instant
 * @param {number} now
 * @param {string} zone
 */
export function exact(instant, now, zone) {
  const at = new Date(instant);
  const time = format(zone, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(at);
  const days = Math.abs(at.getTime() - now) / 86_400_000;
  if (day(at, zone) === day(new Date(now), zone)) return time;
  if (days < 6) return `${format(zone, { weekday: "short" }).format(at)} ${time}`;
  if (days < 300) return `${format(zone, { day: "numeric", month: "short" }).format(at)} ${time.slice(0, 5)}`;
  return day(at, zone);
}

/** 27 Mar 2026. @param {Date} at @param {string} zone */
function day(at, zone) {
  return format(zone, { day: "numeric", month: "short", year: "numeric" }).format(at);
}

/** 01:38, for axes. @param {number | string} instant @param {string} zone */
export function hourMinute(instant, zone) {
  return format(zone, { hour: "2-digit", minute: "2-digit" }).format(new Date(instant));
}

/** Fri 27, for axes. @param {number | string} instant @param {string} zone */
export function weekday(instant, zone) {
  return format(zone, { weekday: "short", day: "numeric" }).format(new Date(instant)).replace(",", "");
}

/** The end of an id, enough to distinguish rows. @param {string} id */
export function shortId(id) {
  return id.slice(-6);
}

/**
 * A time: "12h" or "90m" before now, or a date and time as written; null if it is neither.
 * @param {string} text
 * @param {number} now
 * @returns {string | null}
 */
export function parseTime(text, now) {
  const found = /^(\d+(?:\.\d+)?)\s*([smhdw])$/.exec(text.trim());
  if (found) {
    const unit = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }[found[2]] ?? 1;
    return new Date(now - Number(found[1]) * unit * 1000).toISOString();
  }
  if (!/^\d{4}-/.test(text.trim())) return null; // Date.parse takes "5" for a month
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** The name of an actor: "token:night shift#a9db8b" is night shift. @param {unknown} actor */
export function actorName(actor) {
  return line(
    clean(actor)
      .replace(/^token:(.+)#[0-9a-f]+$/, "$1")
      .replace(/^user:/, ""),
    60,
  );
}

/** A long text without its middle: both ends are informative. @param {unknown} text @param {number} most */
export function elideMiddle(text, most) {
  const flat = line(text, 2000);
  if (flat.length <= most) return flat;
  const head = Math.ceil((most - 1) / 3);
  return `${flat.slice(0, head)}…${flat.slice(head + 1 - most)}`;
}

/** A command's word, safe in a shell. @param {unknown} text */
export function shellQuote(text) {
  const plain = String(text);
  return /^[\w.:/=@%+,-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", `'\\''`)}'`;
}
