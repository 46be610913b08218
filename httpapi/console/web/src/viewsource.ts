// The functions of a view, and how they are written into their design document.
import { string } from "./designdoc";
import { get, remove, set } from "./jsonparts";

export interface Source {
  map: string;
  reduce: string; // a function, the name of a built-in one, or "" for none
}

/** builtIn are the reduce functions that the server brings. */
export const builtIn = ["_sum", "_count", "_stats", "_approx_count_distinct", "_first", "_last"];

export const blank: Source = { map: "function (doc) {\n  emit(doc._id, null);\n}", reduce: "" };

export const blankReduce = "function (keys, values, rereduce) {\n  return sum(values);\n}";

/** emptyDesign is the text of a design document that is new. */
export function emptyDesign(name: string): string {
  return JSON.stringify({ _id: "_design/" + name, language: "javascript", views: {} });
}

/** sourceOf returns the functions of a view, nothing when the design document has no such view. */
export function sourceOf(design: string, view: string): Source | undefined {
  const map = get(design, "views", view, "map");
  return map === undefined ? undefined : { map: string(map), reduce: string(get(design, "views", view, "reduce")) };
}

/** withView returns the text of a design document with the functions of a view in it. */
export function withView(design: string, view: string, of: Source): string {
  const mapped = set(design, ["views", view, "map"], JSON.stringify(of.map));
  return of.reduce === "" ? remove(mapped, ["views", view, "reduce"]) : set(mapped, ["views", view, "reduce"], JSON.stringify(of.reduce));
}

/** same reports whether two sources are equal. */
export function same(a: Source | undefined, b: Source | undefined): boolean {
  return a?.map === b?.map && a?.reduce === b?.reduce;
}

/** Written is a draft: what is written, and what the design document had when it was begun. */
export interface Written {
  source: Source;
  from?: Source; // none: no such view
}

/** writtenOf reads a draft; one that cannot be read is none. */
export function writtenOf(draft: string | undefined): Written | undefined {
  try {
    const of = JSON.parse(draft ?? "null") as Written | null;
    return typeof of?.source?.map === "string" && typeof of.source.reduce === "string" ? of : undefined;
  } catch {
    return undefined;
  }
}
