// @ts-check
// Jobs that do not start because of a pause.

import { api } from "../../api.js";
import { GATE_SCOPES } from "../../choices.js";
import { useLoad } from "../../load.js";
import { may, zone } from "../../state.js";
import { html } from "../../ui.js";
import { hourMinute, line, actorName } from "../../format.js";
import { StateGlyph } from "../base/badge.js";
import { PauseButton, titled } from "./pause.js";

/** @typedef {import("../../types").GateView} Gate */

/** The active pauses; none until loaded. @returns {Gate[]} */
export function useGates() {
  return useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] }).data?.items ?? NONE;
}

/** @type {Gate[]} */
const NONE = [];

/**
 * The pauses that keep such jobs from starting, the widest first.
 * @param {Gate[]} gates
 * @param {{queue?: unknown, task?: unknown, tenant?: unknown}} of
 */
export function gatesAffecting(gates, of) {
  const rank = GATE_SCOPES.filter((scope) => scope !== "schedule").map(String);
  const over = gates.filter(
    (gate) =>
      gate.scope === "all" || (rank.includes(gate.scope) && gate.name === of[/** @type {"queue"} */ (gate.scope)]),
  );
  return over.sort((a, b) => rank.indexOf(a.scope) - rank.indexOf(b.scope));
}

/** A line for each pause that affects the list. @param {{gates: Gate[]}} props */
export function PausedBy({ gates }) {
  return gates.map(
    (gate) => html`<div key=${gate.id} class="paused-by tone-attention" role="status">
      <${StateGlyph} state="paused" />
      <p>
        <b>
          ${titled(gate)} is paused${gate.until_at ? ` until ${hourMinute(gate.until_at, zone.value)}` : ""}
          ${gate.reason ? html`: “${line(gate.reason)}”` : ""}
        </b>,
        by ${actorName(gate.actor)}. ${may("operate.shared") && html`<${PauseButton}
          scope=${gate.scope}
          name=${gate.name}
          gate=${gate}
        />`}
      </p>
    </div>`,
  );
}
