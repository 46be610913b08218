// What a table of documents shows: which fields, and how a value is put into a cell.
import { visible } from "./parts";

/** Fields are the members of a document as JSON texts, without its id and its revision. */
export type Fields = Map<string, string>;

/** fieldNames returns the names of all fields: those that most documents have first, then as they come. */
export function fieldNames(documents: Iterable<Fields>): string[] {
  const counts = new Map<string, number>();
  for (const fields of documents) {
    for (const name of fields.keys()) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name); // sort keeps the order of equal ones
}

/** chosenColumns reads the names of columns in a URL; undefined: none are there, or no list of names. */
export function chosenColumns(param: string | null): string[] | undefined {
  try {
    const names: unknown = JSON.parse(param ?? "null");
    if (!Array.isArray(names)) return undefined;
    return [...new Set(names.filter((n): n is string => typeof n === "string"))];
  } catch {
    return undefined; // typed by hand
  }
}

export interface Cell {
  text: string;
  title?: string; // more of it, when the text is cut
  number: boolean;
}

const cellLength = 80;
const titleLength = 1000;

/** cellOf shows a value: a string as it is, all else as JSON. */
export function cellOf(json: string): Cell {
  const whole = json[0] === '"' ? stringStart(json) : json.slice(0, titleLength);
  const text = visible(whole.slice(0, cellLength));
  const cut = whole.length > cellLength || json.length > titleLength;
  const cell = cut ? { text: `${text}…`, title: visible(whole) } : { text };
  return { ...cell, number: /^-?\d/.test(json) };
}

/** stringStart is the start of a string. One that could be taken for another value keeps its quotes. */
function stringStart(json: string): string {
  const s = parsedStart(json);
  return /^(-?\d[\d.eE+-]*|true|false|null|[[{].*|)$/s.test(s) ? json.slice(0, titleLength) : s;
}

function parsedStart(json: string): string {
  if (json.length <= titleLength) return JSON.parse(json) as string;
  for (let end = titleLength + 1; ; end--) {
    try {
      return JSON.parse(json.slice(0, end) + '"') as string;
    } catch {
      // that was in the middle of an escape, which has six characters at most
      if (end < titleLength - 6) return json.slice(0, titleLength);
    }
  }
}
