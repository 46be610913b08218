// What _explain says, in words.
import { elements, get } from "./jsonparts";
import { string } from "./designdoc";
import { conditionsOf, type Condition } from "./mangoquery";

export interface Explained {
  index: string; // which is read
  scan: boolean; // all of the database is read
  lines: string[]; // what is read of it, and what comes then
  others: { name: string; why: string }[]; // indexes that are not read
}

interface Index {
  ddoc: string | null;
  name: string;
  type: string;
  def: { fields?: unknown };
}

/** fieldsOf are the names of the fields of an index. */
export function fieldsOf(def: { fields?: unknown }): string[] {
  if (!Array.isArray(def.fields)) return [];
  return def.fields.flatMap((f: unknown) => (typeof f === "string" ? [f] : Object.keys(f ?? {})));
}

const reasons: Record<string, string> = {
  excluded_by_user: "the query names another one",
  field_mismatch: "the query does not ask for all of its fields",
  is_partial: "it holds some documents only, and is used when the query names it",
  needs_text_search: "the query searches text",
  scope_mismatch: "it is of other partitions",
  sort_order_mismatch: "it has another order",
  empty_selector: "the selector is empty",
  alphabetically_comes_after: "another one fits as well, and comes first by name",
  less_overlap: "another one has more of the fields",
  too_many_fields: "another one with fewer fields fits",
  unfavored_type: "an index of another kind is preferred",
};

const most = '"<MAX>"'; // above all keys

/** explainedOf reads an answer of _explain. */
export function explainedOf(answer: string): Explained {
  const index = JSON.parse(get(answer, "index") ?? "null") as Index | null;
  const others = elements(get(answer, "index_candidates") ?? "[]").map((c) => {
    const of = JSON.parse(c) as { index: Index; analysis: { reasons: { name: string }[] } };
    return { name: titleOf(of.index), why: of.analysis.reasons.map((r) => reasons[r.name] ?? r.name).join("; ") };
  });
  if (index === null) return { index: "No index fits the sort", scan: false, lines: ["The server refuses this query until there is one."], others };
  const { all, other } = conditionsOf(get(answer, "selector") ?? "{}");
  const lines: string[] = [];
  const query = get(answer, "query");
  if (query !== undefined) {
    lines.push(`It is asked for: ${string(query)}`, "Each document that is found is read, and checked with the whole selector.");
    return { index: titleOf(index), scan: false, lines, others };
  }
  const fields = fieldsOf(index.def);
  const range = rangeOf(answer, fields, index.type === "special");
  const scan = index.type === "special" && range.told === "";
  lines.push(scan ? "No index fits the selector: every document of the database is read." : range.told === "" ? "All of the index is read." : `Range of keys: ${range.told}.`);
  const hint = Number(elements(get(answer, "selector_hints") ?? "[]").map((h) => get(h, "key_ranges")).find((n) => n !== undefined));
  if (hint > 1) lines.push(`These are read as ${hint} ranges.`);
  if (get(answer, "mrargs", "direction") === "rev") lines.push("It is read backwards.");
  const after = all.filter((c) => !decided(c, range));
  if (get(answer, "covering") === "true") lines.push("Documents are not read: the index holds all that is asked for.");
  else lines.push("The document of each key is read.");
  if (after.length > 0 || other) {
    const conditions = after.map((c) => `${c.field} ${c.op} ${c.value}`);
    lines.push(`Filtered afterwards: ${[...conditions, ...(other ? ["what stands in $or, $nor, $not or $text"] : [])].join(", ")}.`);
  } else lines.push("Nothing is filtered afterwards.");
  return { index: titleOf(index), scan, lines, others };
}

/** shortName is the name of an index; of one that the server has made up, its beginning. */
export function shortName(name: string): string {
  return /^[0-9a-f]{40}$/.test(name) ? name.slice(0, 8) + "…" : name;
}

/** titleOf names an index. */
export function titleOf(i: Index): string {
  if (i.type === "special") return "All documents, by _id";
  const fields = fieldsOf(i.def);
  return `${shortName(i.name)} (${i.type}${fields.length > 0 ? `: ${fields.join(", ")}` : ""})`;
}

interface Range {
  told: string;
  equal: string[]; // fields with one value
  bounded?: string; // the field of which a range is read
}

/** rangeOf says which keys are read. The key of the index of all documents is no list. */
function rangeOf(answer: string, fields: string[], single: boolean): Range {
  const keys = (name: string) => {
    const key = get(answer, "mrargs", name) ?? "null";
    return single ? (key === "null" ? [] : [key]) : elements(key);
  };
  let [from, to] = [keys("start_key"), keys("end_key")];
  if (get(answer, "mrargs", "direction") === "rev") [from, to] = [to, from];
  const out: Range = { told: "", equal: [] };
  const told: string[] = [];
  for (const [i, field] of fields.entries()) {
    const [least, greatest] = [from[i], to[i] === most ? undefined : to[i]];
    if (least !== undefined && least === greatest) {
      out.equal.push(field);
      told.push(`${field} = ${least}`);
      continue;
    }
    if (least !== undefined) told.push(`${field} from ${least}`);
    if (greatest !== undefined) told.push(`${field} to ${greatest}`);
    if (least !== undefined || greatest !== undefined) out.bounded = field;
    break;
  }
  out.told = told.join(", ");
  return out;
}

function decided(c: Condition, range: Range): boolean {
  if (range.equal.includes(c.field)) return c.op === "$eq";
  return range.bounded === c.field && ["$gt", "$gte", "$lt", "$lte"].includes(c.op);
}
