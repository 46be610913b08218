// Rows of a view: what is asked for, and which page comes next.
import { elements, get, parts } from "./jsonparts";
import { string } from "./designdoc";

export const pageSize = 50;

export interface Row {
  id?: string; // none: of a reduction
  key: string; // JSON
  value: string; // JSON
}

/** rowsOf reads the answer of a view. Keys and values stay text, and numbers in them keep their digits. */
export function rowsOf(answer: string): Row[] {
  return elements(get(answer, "rows") ?? "[]").map((row) => {
    const of = new Map(parts(row).map((p) => [p.name, row.slice(p.from, p.to)]));
    const id = of.get("id");
    return { id: id === undefined ? undefined : string(id), key: of.get("key") ?? "null", value: of.get("value") ?? "null" };
  });
}

/** Asked is what the address of a view says. */
export interface Asked {
  key?: string; // JSON, as startkey and endkey
  startkey?: string;
  endkey?: string;
  descending: boolean;
  group: string; // "": rows; "0": all in one; "exact"; "1", "2", …: the beginning of the key
  partition?: string;
  from?: string; // JSON of a key: where the page begins
  fromID?: string;
  skip: number; // rows from there on
}

const fields = ["key", "startkey", "endkey", "partition"] as const;

export function askedOf(params: URLSearchParams): Asked {
  const given = (name: string) => params.get(name) || undefined;
  const out: Asked = {
    descending: params.get("descending") === "true",
    group: params.get("group") ?? "",
    from: given("from"),
    fromID: given("fromid"),
    skip: Number(params.get("skip")) || 0,
  };
  for (const name of fields) out[name] = given(name);
  return out;
}

/** paramsOf are the parameters of an address. */
export function paramsOf(a: Asked): Record<string, string | undefined> {
  return {
    key: a.key, startkey: a.startkey, endkey: a.endkey, partition: a.partition,
    descending: a.descending ? "true" : undefined, group: a.group || undefined,
    from: a.from, fromid: a.fromID, skip: a.skip > 0 ? String(a.skip) : undefined,
  };
}

/** requestOf are the parameters of the request. reduces says that the view has a reduce function. */
export function requestOf(a: Asked, reduces: boolean): Record<string, string | number | boolean | undefined> {
  return {
    startkey: a.from ?? a.key ?? a.startkey,
    endkey: a.key ?? a.endkey,
    startkey_docid: a.fromID,
    skip: a.skip || undefined,
    descending: a.descending || undefined,
    partition: a.partition,
    limit: pageSize + 1,
    ...(!reduces ? {} : a.group === "" ? { reduce: false } : a.group === "exact" ? { group: true } : { group_level: a.group }),
  };
}

/**
 * nextOf returns what asks for the next page, nothing when there is none. Rows of a map go on at the
 * key and id of the first one that is not shown; a document may have several of one key. Groups are counted.
 */
export function nextOf(a: Asked, rows: Row[]): Asked | undefined {
  const next = rows[pageSize];
  if (!next) return undefined;
  if (next.id === undefined) return { ...a, skip: a.skip + pageSize };
  let same = 0;
  while (same < pageSize && equal(rows[pageSize - 1 - same]!, next)) same++;
  const before = same === pageSize && a.from === next.key && a.fromID === next.id ? a.skip : 0;
  return { ...a, from: next.key, fromID: next.id, skip: same + before };
}

function equal(a: Row, b: Row): boolean {
  return a.id === b.id && a.key === b.key;
}

/** capped is a text as long as a cell of a table may be. */
export function capped(text: string): string {
  return text.length > 500 ? `${text.slice(0, 500)} … (${text.length} characters)` : text;
}
