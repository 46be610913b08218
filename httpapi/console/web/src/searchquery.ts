// A search: its request, and its answer, which the two engines write in different ways.
import { elements, get, parts } from "./jsonparts";
import { Problem } from "./api";
import { string } from "./designdoc";

export interface Asked {
  q: string;
  sort: string; // names with commas between them
  limit: number;
  counts: string;
  ranges: string; // JSON
  highlight: string;
  drilldown: [string, string][]; // only documents with these values
  bookmark?: string;
}

export function askedOf(params: URLSearchParams): Asked {
  const drilldown: [string, string][] = params.getAll("only").flatMap((s) => {
    const at = s.indexOf("=");
    return at < 0 ? [] : [[s.slice(0, at), s.slice(at + 1)] as [string, string]];
  });
  const given = (name: string) => params.get(name) ?? "";
  return {
    q: given("q"), sort: given("sort"), limit: Number(params.get("limit")) || 25, counts: given("counts"), ranges: given("ranges"),
    highlight: given("highlight"), drilldown, bookmark: params.get("bookmark") ?? undefined,
  };
}

/** searchOf is the part of an address behind "?". */
export function searchOf(engine: string | undefined, a: Asked): string {
  const out = new URLSearchParams();
  const add = (name: string, value: string | undefined) => value && out.append(name, value);
  add("engine", engine);
  add("q", a.q);
  add("sort", a.sort);
  add("limit", a.limit === 25 ? "" : String(a.limit));
  add("counts", a.counts);
  add("ranges", a.ranges);
  add("highlight", a.highlight);
  for (const [field, value] of a.drilldown) out.append("only", `${field}=${value}`);
  add("bookmark", a.bookmark);
  return out.toString();
}

/** tags stand around what is highlighted: characters that texts do not have. */
const tags = ["\u0002", "\u0003"] as const;

function list(text: string): string[] | undefined {
  const all = text.split(",").map((s) => s.trim()).filter((s) => s !== "");
  return all.length > 0 ? all : undefined;
}

/** requestOf is the body of a request. */
export function requestOf(a: Asked, nouveau: boolean): string {
  const highlight = nouveau ? undefined : list(a.highlight);
  const body = JSON.stringify({
    q: a.q, limit: a.limit, sort: list(a.sort), counts: list(a.counts), bookmark: a.bookmark,
    drilldown: nouveau || a.drilldown.length === 0 ? undefined : a.drilldown,
    highlight_fields: highlight,
    highlight_pre_tag: highlight && tags[0],
    highlight_post_tag: highlight && tags[1],
    highlight_number: highlight && 3,
  });
  if (a.ranges.trim() === "") return body;
  try {
    JSON.parse(a.ranges); // one value, which adds no other member to the request
  } catch {
    throw new Problem(0, "bad_request", "The ranges are not JSON.");
  }
  return `${body.slice(0, -1)},"ranges":${a.ranges}}`; // as it was written
}

export interface Piece {
  text: string;
  marked: boolean;
}

export interface Hit {
  id: string;
  score?: string; // none when it is sorted by fields
  fields: { name: string; value: string }[]; // JSON
  highlights: { field: string; fragments: Piece[][] }[];
}

export interface Counted {
  field: string;
  values: { value: string; n: number }[]; // of ranges their names
}

export interface Found {
  total: number;
  hits: Hit[];
  counts: Counted[];
  ranges: Counted[];
  bookmark?: string; // none: there is no next page
}

/** foundOf reads an answer. */
export function foundOf(answer: string, a: Asked): Found {
  const hits = elements(get(answer, "rows") ?? get(answer, "hits") ?? "[]").map((h): Hit => {
    const order = elements(get(h, "order") ?? "[]")[0];
    return {
      id: string(get(h, "id")),
      score: a.sort === "" && order !== undefined ? (get(order, "value") ?? order) : undefined,
      fields: members(get(h, "fields")),
      highlights: members(get(h, "highlights")).map(({ name, value }) => ({ field: name, fragments: elements(value).map((f) => piecesOf(string(f))) })),
    };
  });
  const counted = (member: string) => members(get(answer, member)).map(({ name, value }) => ({
    field: name,
    values: members(value).map((v) => ({ value: v.name, n: Number(v.value) })).sort((x, y) => y.n - x.n),
  }));
  return {
    total: Number(get(answer, "total_rows") ?? get(answer, "total_hits")),
    hits,
    counts: counted("counts"),
    ranges: counted("ranges"),
    bookmark: hits.length > 0 && hits.length >= a.limit ? string(get(answer, "bookmark")) || undefined : undefined,
  };
}

function members(json: string | undefined): { name: string; value: string }[] {
  if (!json?.startsWith("{")) return [];
  return parts(json).map((p) => ({ name: p.name, value: json.slice(p.from, p.to) }));
}

/** piecesOf cuts a text at its tags. */
function piecesOf(text: string): Piece[] {
  const out: Piece[] = [];
  for (const [i, part] of text.split(tags[0]).entries()) {
    const [marked, ...rest] = i === 0 ? ["", part] : part.split(tags[1]);
    if (marked) out.push({ text: marked, marked: true });
    if (rest.join("")) out.push({ text: rest.join(""), marked: false });
  }
  return out;
}
