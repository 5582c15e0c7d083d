// What we use of Preact, as tsc needs to know it. Written by hand; not served.
export type VNode = any;
export function h(type: any, props: any, ...children: any[]): VNode;
export function render(vnode: VNode, parent: Element): void;
export const Fragment: any;
export class Component<P = any, S = any> {
  constructor(props?: P);
  props: P;
  state: S;
  setState(patch: Partial<S>): void;
  forceUpdate(): void;
}
