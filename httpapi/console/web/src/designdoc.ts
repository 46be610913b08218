// What a design document holds.
import { documentPath, json, path, query } from "./api";
import { elements, get, parts } from "./jsonparts";

export interface Design {
  id: string;
  name: string; // the id without "_design/"
  rev: string;
  text: string;
  query: boolean; // its views and indexes are Mango's
  views: { name: string; reduce: string }[]; // reduce: "" when there is none
  search: string[];
  nouveau: string[];
  functions: { kind: string; names: string[] }[]; // of other kinds
  validates: boolean;
}

/** string returns the string of a text of JSON, "" for anything else. */
export function string(json: string | undefined): string {
  return json?.startsWith('"') ? (JSON.parse(json) as string) : "";
}

function names(text: string, of: string): string[] {
  return parts(get(text, of) ?? "").map((p) => p.name).filter((n) => n !== "");
}

/** designOf reads a design document. */
export function designOf(text: string): Design {
  const id = string(get(text, "_id"));
  return {
    id,
    name: id.slice("_design/".length),
    rev: string(get(text, "_rev")),
    text,
    query: string(get(text, "language")) === "query",
    views: names(text, "views").filter((n) => n !== "lib").map((name) => ({ name, reduce: string(get(text, "views", name, "reduce")) })),
    search: names(text, "indexes"),
    nouveau: names(text, "nouveau"),
    functions: ["filters", "updates", "shows", "lists"].map((kind) => ({ kind, names: names(text, kind) })).filter((f) => f.names.length > 0),
    validates: get(text, "validate_doc_update") !== undefined,
  };
}

/** designsOf reads the rows of a list of design documents. */
export function designsOf(list: string): Design[] {
  return elements(get(list, "rows") ?? "[]").map((row) => get(row, "doc")).filter((d) => d?.startsWith("{")).map((d) => designOf(d!));
}

/** designNames returns the first names of design documents, without those that Mango has made up. */
export async function designNames(db: string, signal: AbortSignal): Promise<string[]> {
  const range = { startkey: '"_design/"', endkey: '"_design0"', limit: 100 };
  const { rows } = await json<{ rows: { id: string }[] }>(path(db, "_all_docs") + query(range), { signal });
  return rows.map((r) => r.id.slice("_design/".length)).filter((name) => !/^[0-9a-f]{40}$/.test(name));
}

/** IndexState is what is told of an index. */
export interface IndexState {
  size: number; // bytes on disk
  pending?: number; // changes that it has not seen, of views only
  running: boolean;
  documents?: number; // of search indexes only
}

interface ViewInfo {
  view_index: { updates_pending: { minimum: number }; updater_running: boolean; sizes: { file: number } };
}

interface SearchInfo {
  search_index: { disk_size: number; doc_count?: number; num_docs?: number };
}

/** stateOf asks for the state of the views of a design document, or of one of its search indexes. */
export async function stateOf(db: string, id: string, of: string, signal?: AbortSignal): Promise<IndexState> {
  if (of === "_info") {
    const { view_index: i } = await json<ViewInfo>(`${documentPath(db, id)}/_info`, { signal });
    return { size: i.sizes.file, pending: i.updates_pending.minimum, running: i.updater_running };
  }
  const { search_index: i } = await json<SearchInfo>(`${documentPath(db, id)}/${of}`, { signal });
  return { size: i.disk_size, running: false, documents: i.doc_count ?? i.num_docs };
}
