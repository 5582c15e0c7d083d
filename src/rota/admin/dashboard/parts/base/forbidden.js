// @ts-check
// A view that the user has no access to: what it needs, and how to get it.

import { me } from "../../state.js";
import { html } from "../../ui.js";
import { clean } from "../../format.js";
import { Empty } from "./empty.js";

/**
 * @param {{what: string, role: import("../../choices.js").Role, shared?: boolean}} props
 *   what: starts the sentence; shared: it concerns all tenants
 */
export function Forbidden({ what, role, shared }) {
  const tenant = me.value?.tenant;
  const lacks =
    shared && tenant
      ? html`${what} covers all tenants, and your access is limited to tenant <code>${clean(tenant)}</code>.`
      : html`${what} needs the role ${role}. Your role is ${me.value?.role}.`;
  return html`<${Empty} title="You don't have access" command=${`rota token create --role ${role} --expires 30d`}>
    ${lacks} An admin can create an API token for you:
  <//>`;
}
