// A query by selector: how it is sent, what its answer holds, and which index would fit it.
import { elements, get, parts, set } from "./jsonparts";
import { string } from "./designdoc";

export const firstQuery = `{
  "selector": {
    "_id": { "$gt": null }
  },
  "limit": 50
}`;

/** requestOf returns the text of a request: the query, from a bookmark on, with figures in its answer. */
export function requestOf(query: string, bookmark: string | undefined): string {
  if (!isObject(query)) return query; // the server says what is wrong with it
  const told = set(query, ["execution_stats"], "true");
  return bookmark === undefined ? told : set(told, ["bookmark"], JSON.stringify(bookmark));
}

function isObject(text: string): boolean {
  try {
    const v: unknown = JSON.parse(text);
    return typeof v === "object" && v !== null && !Array.isArray(v);
  } catch {
    return false;
  }
}

export interface Stats {
  total_keys_examined: number;
  total_docs_examined: number;
  results_returned: number;
  execution_time_ms: number;
}

export interface Found {
  docs: string[]; // JSON
  bookmark?: string; // none: there is no next page
  warnings: string[];
  stats?: Stats;
}

/** foundOf reads an answer. limit is what the query asks for. */
export function foundOf(answer: string, limit: number): Found {
  const docs = elements(get(answer, "docs") ?? "[]");
  const stats = get(answer, "execution_stats");
  return {
    docs,
    bookmark: docs.length >= limit && docs.length > 0 ? string(get(answer, "bookmark")) || undefined : undefined,
    warnings: string(get(answer, "warning")).split("\n").map((w) => w.trim()).filter((w) => w !== ""),
    stats: stats === undefined ? undefined : (JSON.parse(stats) as Stats),
  };
}

/** limitOf is how many documents a query asks for at most. */
export function limitOf(query: string): number {
  const n = isObject(query) ? Number(get(query, "limit")) : NaN;
  return Number.isInteger(n) ? n : 25;
}

/** mostColumns is how many members of documents have columns when the query names no fields. */
const mostColumns = 6;

/** columnsOf are the paths of what is shown of documents: the fields that the query names, or the members that come first. */
export function columnsOf(query: string, docs: string[]): string[] {
  const named = isObject(query) ? elements(get(query, "fields") ?? "").map(string).filter((f) => f !== "") : [];
  const all = named.length > 0 ? named : docs.flatMap((d) => parts(d).map((p) => p.name)).filter((n) => !n.startsWith("_")).map(escaped);
  return [...new Set(all)].filter((c) => c !== "_id").slice(0, named.length > 0 ? undefined : mostColumns);
}

function escaped(name: string): string {
  return name.replaceAll(".", "\\.");
}

/** cell returns the JSON at a path of a document, "" when there is none. */
export function cell(doc: string, column: string): string {
  const names = column.split(/(?<!\\)\./).map((n) => n.replaceAll("\\.", "."));
  return get(doc, ...names) ?? "";
}

export interface Condition {
  field: string;
  op: string;
  value: string; // JSON
}

export interface Conditions {
  all: Condition[];
  other: boolean; // it says something else than what it wants of fields in each case
}

/** conditionsOf lists what a selector wants of fields in each case. */
export function conditionsOf(selector: string, prefix = ""): Conditions {
  const out: Conditions = { all: [], other: false };
  const join = (more: Conditions) => {
    out.all.push(...more.all);
    out.other ||= more.other;
  };
  for (const { name, from, to } of selector.startsWith("{") ? parts(selector) : []) {
    const value = selector.slice(from, to);
    if (name === "$and" && value.startsWith("[")) {
      for (const part of elements(value)) join(conditionsOf(part, prefix));
      continue;
    }
    if (name.startsWith("$")) {
      if (prefix === "") out.other = true;
      else out.all.push({ field: prefix, op: name, value });
      continue;
    }
    const field = prefix === "" ? name : `${prefix}.${name}`;
    if (value.startsWith("{")) join(conditionsOf(value, field));
    else out.all.push({ field, op: "$eq", value });
  }
  return out;
}

const ranges = ["$gt", "$gte", "$lt", "$lte", "$beginsWith", "$in", "$exists"];

/**
 * proposalOf returns the fields of an index that would fit a query: those that are equal to something, then
 * those that it is sorted by, then one of which it wants a range. Nothing when no index helps.
 */
export function proposalOf(query: string): string[] {
  if (!isObject(query)) return [];
  const { all } = conditionsOf(get(query, "selector") ?? "{}");
  const sorted = elements(get(query, "sort") ?? "").flatMap((s) => (s.startsWith('"') ? [string(s)] : parts(s).map((p) => p.name)));
  const equal = all.filter((c) => c.op === "$eq" && !sorted.includes(c.field)).map((c) => c.field);
  const range = all.find((c) => ranges.includes(c.op) && c.value !== "false" && !equal.includes(c.field) && !sorted.includes(c.field));
  return [...new Set([...equal, ...sorted, ...(range ? [range.field] : [])])].filter((f) => f !== "_id");
}
