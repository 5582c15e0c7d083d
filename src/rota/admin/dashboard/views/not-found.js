// @ts-check
import { Empty } from "../parts/base/empty.js";
import { PageHeader } from "../parts/base/panel.js";
import { at } from "../state.js";
import { html } from "../ui.js";

export default function NotFound() {
  return html`
    <${PageHeader} title="Page not found" />
    <${Empty}
      title="There is no page at this address"
      acts=${html`<a class="button" href=${at("/")}>Overview</a><a class="button" href=${at("/jobs")}>Jobs</a>`}
    >
      The link may be wrong or from another version of rota.
    <//>
  `;
}
