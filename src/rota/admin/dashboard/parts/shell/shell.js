// @ts-check
// The frame of every view: header, navigation, day line, keyboard shortcuts.

import { api, signOut } from "../../api.js";
import {
  connected,
  onHold,
  lastEventAt,
  holdUpdates,
  pausedByUser,
  releaseUpdates,
  pendingEvents,
} from "../../live.js";
import { useLoad } from "../../load.js";
import { at, go, may, me, now, ownZone, path, theme, zone } from "../../state.js";
import { computed, html, useEffect, useRef } from "../../ui.js";
import { compact, clean, count, elideMiddle, actorName } from "../../format.js";
import { Choice } from "../base/button.js";
import { DayLine } from "./day-line.js";
import { Glyph, Mark } from "../base/glyph.js";
import { openKeys, openPalette, useKeys } from "./palette.js";
import { showError } from "../base/toast.js";

/** @param {{children?: unknown}} props */
export function Shell({ children }) {
  const nav = useRef(/** @type {HTMLElement | null} */ (null));
  useKeys(KEYS);
  useEffect(() => {
    if (nav.current?.matches(":popover-open")) nav.current.hidePopover();
  }, [path.value]);
  return html`
    <a class="skip" href="#main">Skip to content</a>
    <div class="shell">
      <${Header} />
      <nav id="nav" class="nav" popover="auto" aria-label="Main" ref=${nav}><${Rail} /></nav>
      <main id="main" class="sheet" tabindex="-1"><${DayLine} tall=${path.value === "/"} />${children}</main>
    </div>
  `;
}

/** Keys that work everywhere; "g j" is one after the other. @type {import("./palette.js").Key[]} */
const KEYS = [
  ["/", "Search or jump to", () => (focusSearch() ? undefined : openPalette())],
  ["ctrl+k", "Search or jump to", () => openPalette()],
  ["g o", "Overview", () => go("/")],
  ["g j", "Jobs", () => go("/jobs")],
  ["g q", "Queues", () => go("/queues")],
  ["g t", "Tasks", () => go("/tasks")],
  ["g s", "Schedules", () => go("/schedules")],
  ["g w", "Workers", () => go("/workers")],
  ["g n", "Tenants", () => go("/tenants")],
  ["g l", "Limits", () => go("/limits")],
  ["g a", "Audit", () => go("/audit")],
  ["p", "Pause or resume live updates", () => togglePause()],
  ["?", "Keyboard shortcuts", () => openKeys(KEYS)],
];

function focusSearch() {
  const field = /** @type {HTMLElement | null} */ (document.querySelector("[data-search]"));
  field?.focus();
  return field;
}

function togglePause() {
  if (pausedByUser.value) releaseUpdates("pause");
  else holdUpdates("pause");
}

function Header() {
  const store = me.value?.store;
  return html`<header class="top">
    <a class="brand" href=${at("/")} aria-label="rota, overview"><${Mark} />rota</a>
    ${store && html`<span class="where mono" title=${clean(store)}>${elideMiddle(store, 34)}</span>`}
    <button type="button" class="jump" onClick=${openPalette}>
      <${Glyph} name="find" />
      <span>Search jobs or jump to a queue, task, schedule</span>
      <kbd aria-hidden="true">/</kbd>
    </button>
    <${Live} />
    <${Who} />
    <button type="button" class="button menu" popovertarget="nav" aria-label="Open menu">
      <${Glyph} name="menu" />
    </button>
  </header>`;
}

/** Name and role; everything known on hover. */
function Who() {
  if (!me.value) return null;
  const { name, role, tenant } = me.value;
  return html`<span
    class="who"
    title=${`${clean(name)}, ${role}${tenant ? `, limited to tenant ${clean(tenant)}` : ""}`}
  >
    <span>${actorName(name)}</span>
    <small>· ${role}${tenant ? `, ${clean(tenant)}` : ""}</small>
  </span>`;
}

const age = computed(() => Math.max(0, Math.round((now.value - lastEventAt.value) / 1000)));

function Live() {
  const state = pausedByUser.value ? "Paused" : onHold.value ? "On hold" : connected.value ? "Live" : "Reconnecting";
  const more = pendingEvents.value
    ? `${compact(pendingEvents.value)} new`
    : state === "Live" && age.value > 20
      ? "quiet"
      : "";
  const action = pausedByUser.value ? "Resume live updates" : "Pause live updates";
  return html`<button
    type="button"
    class=${`live ${onHold.value || !connected.value ? "is-on-hold" : ""}`}
    title=${`${action} (p)`}
    aria-label=${`${state}. ${action}`}
    aria-pressed=${pausedByUser.value ? "true" : "false"}
    onClick=${togglePause}
  >
    ${onHold.value
      ? html`<${Glyph} name="paused" />`
      : connected.value
        ? html`<span class="pulse"></span>`
        : html`<${Glyph} name="late" />`}
    ${state} <span class="faint more">${more}</span>
  </button>`;
}

function Rail() {
  const tallies =
    useLoad(loadTallies, [], { on: ["stats", "gate", "schedule", "worker"], minInterval: 5, every: 30 }).data ?? {};
  /** @type {([string, string, unknown?, string?] | null)[]} */
  const links = [
    ["/", "Overview"],
    ["/jobs", "Jobs", tallies.failed > 0 && tally("failed", tallies.failed, `${count(tallies.failed)} failed`)],
    ["/queues", "Queues", tallies.paused > 0 && tally("paused", tallies.paused, `${tallies.paused} paused`)],
    ["/tasks", "Tasks"],
    ["/schedules", "Schedules", tallies.late > 0 && tally("late", tallies.late, `${tallies.late} late`)],
    [
      "/workers",
      "Workers",
      tallies.workers !== undefined &&
        html`<span class="tally faint" title=${`${tallies.workers} running`}>${tallies.workers}</span>`,
      "read.shared",
    ],
    ["/tenants", "Tenants"],
    ["/limits", "Limits"],
    null,
    ["/gates", "Paused"],
    ["/audit", "Audit", null, "audit"],
    ["/doctor", "Doctor", null, "operate.shared"],
    ["/settings", "Settings"],
  ];
  return html`
    ${links.map((link) =>
      link === null
        ? html`<div class="gap"></div>`
        : may(link[3]) &&
          html`<a href=${at(link[0])} aria-current=${isHere(link[0]) ? "page" : undefined}>${link[1]}${link[2]}</a>`,
    )}
    <div class="foot">
      <${Choice}
        label="Theme"
        value=${theme.value}
        options=${[
          ["system", "System"],
          ["light", "Light"],
          ["dark", "Dark"],
        ]}
        onChange=${(/** @type {string} */ one) => (theme.value = one)}
      />
      <p>
        Times
        in ${zone.value}. ${ownZone !== "UTC" && html`<button
          type="button"
          class="link"
          onClick=${() => (zone.value = zone.value === "UTC" ? ownZone : "UTC")}
        >
          Use ${zone.value === "UTC" ? ownZone : "UTC"}
        </button>`}
      </p>
      <p>
        rota ${me.value?.version}. <button type="button" class="link" onClick=${() => openKeys(KEYS)}> Shortcuts
        </button> <button type="button" class="link" onClick=${() => signOut().catch(showError)}>Sign out</button>
      </p>
    </div>
  `;
}

/** @param {string} state @param {number} n @param {string} title */
function tally(state, n, title) {
  return html`<span
    class=${`tally tone-${state === "failed" ? "failed" : "attention"}`}
    title=${title}
    aria-hidden="true"
  >
    <${Glyph} name=${state} />
    ${compact(n)}
  </span>`;
}

/** @param {string} link */
function isHere(link) {
  return link === "/" ? path.value === "/" : path.value === link || path.value.startsWith(`${link}/`);
}

/** @param {AbortSignal} signal @returns {Promise<Record<string, number>>} */
async function loadTallies(signal) {
  const [stats, gates, workers, schedules] = await Promise.all([
    api.get("/jobs/stats", {}, signal),
    api.get("/gates", {}, signal),
    may("read.shared") ? api.get("/workers", {}, signal) : null,
    api.get("/schedules", { enabled: true, limit: 200 }, signal),
  ]);
  return {
    failed: stats.failed,
    paused: gates.items.filter((gate) => gate.scope === "queue" || gate.scope === "all").length,
    late: schedules.items.filter((one) => (one.late_s ?? 0) > 60 && !one.gate).length,
    ...(workers && { workers: workers.items.filter((one) => one.state !== "lost").length }),
  };
}
