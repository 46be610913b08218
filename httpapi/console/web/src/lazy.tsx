// A view is fetched when it is first shown: the log-in needs none of them.
import type { ComponentType } from "preact";
import { useLoad } from "./load";
import { Refusal } from "./parts";

/** lazy makes a view of what load fetches. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return function Lazy(props: P) {
    const view = useLoad<{ of: ComponentType<P> }>(async () => ({ of: await load() }), []);
    if (view.value) return <view.value.of {...props} />;
    return <main>{view.problem ? <Refusal of={view.problem} again={view.again} /> : <p class="quiet" role="status">Loading …</p>}</main>;
  };
}
