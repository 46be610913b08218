// Whether the page is seen.
import { useEffect, useState } from "preact/hooks";

/** useVisible reports whether the page is seen. A feed takes one of the few connections that a browser makes. */
export function useVisible(): boolean {
  const [visible, set] = useState(document.visibilityState === "visible");
  useEffect(() => {
    const changed = () => set(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", changed);
    changed(); // since the view was drawn
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  return visible;
}
