// @ts-check
// A view that is not for the one who looks: what it would need, and how to get it.

import { me } from "../../state.js";
import { html } from "../../ui.js";
import { clean } from "../../format.js";
import { Empty } from "./empty.js";

/** @param {{what: string, role: string, shared?: boolean}} props shared: it concerns all tenants */
export function Forbidden({ what, role, shared }) {
  const tenant = me.value?.tenant;
  const lacks =
    shared && tenant
      ? html`${what} concerns all tenants, and you belong to <code>${clean(tenant)}</code>.`
      : html`${what} is for the role ${role} and above. You are ${me.value?.role}.`;
  return html`<${Empty} title="Not with this token" command=${`rota token create --role ${role} --expires 30d`}>
    ${lacks} Whoever runs this installation can make you a token for it:
  <//>`;
}
