// Each view has a URL: the part behind "#", whose segments are encoded, and its parameters.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Place {
  segments: string[]; // decoded
  params: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "") continue;
    try {
      segments.push(decodeURIComponent(segment));
    } catch {
      segments.push(segment); // typed by hand
    }
  }
  return { segments, params: new URLSearchParams(search) };
}

/** link makes the URL of a view. */
export function link(segments: string[], params: Record<string, string | undefined> = {}): string {
  const given = Object.entries(params).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = given.length > 0 ? "?" + new URLSearchParams(given).toString() : "";
  return "#/" + segments.map(encodeURIComponent).join("/") + search;
}

export function go(to: string): void {
  location.hash = to;
}

/** usePlace follows the URL. */
export function usePlace(): Place {
  const at = useRef(location.hash);
  const [place, set] = useState(() => parsePlace(at.current));
  useEffect(() => {
    const changed = () => set(parsePlace(location.hash));
    addEventListener("hashchange", changed);
    if (location.hash !== at.current) changed(); // since the view was drawn
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}

/** replace goes to a URL that takes the place of this one in the browser's history. */
export function replace(to: string): void {
  history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** goWith goes to a URL with something to tell its view, which the browser keeps in its history. */
export function goWith(to: string, state: unknown): void {
  history.pushState(state, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
