// The members of a JSON object as texts: a value that is not parsed keeps its digits, and costs no memory of its own.
import { skipSpace, stringEnd } from "./jsontext";

/** valueEnd returns the index behind the value that begins at i. */
function valueEnd(json: string, i: number): number {
  if (json[i] === '"') return stringEnd(json, i);
  const nested = json[i] === "{" || json[i] === "[";
  const next = nested ? /["{}[\]]/g : /[,}\]\s]/g;
  next.lastIndex = i;
  for (let depth = 0, at = next.exec(json); at; at = next.exec(json)) {
    if (!nested) return at.index;
    if (at[0] === '"') next.lastIndex = stringEnd(json, at.index);
    else depth += at[0] === "{" || at[0] === "[" ? 1 : -1;
    if (depth === 0) return next.lastIndex;
  }
  return json.length;
}

/** membersOf returns the names and the texts of the values of an object, and where they lie; nothing for other JSON. */
export function* membersOf(json: string): Generator<[name: string, value: string, from: number, to: number]> {
  let i = skipSpace(json, 0);
  if (json[i] !== "{") return;
  for (i = skipSpace(json, i + 1); json[i] === '"'; ) {
    const nameEnd = stringEnd(json, i);
    const from = skipSpace(json, skipSpace(json, nameEnd) + 1); // behind the colon
    const to = valueEnd(json, from);
    yield [JSON.parse(json.slice(i, nameEnd)) as string, json.slice(from, to), i, to];
    i = skipSpace(json, skipSpace(json, to) + 1);
  }
}

/** elementsOf returns the texts of the elements of an array, nothing for other JSON. */
export function* elementsOf(json: string): Generator<string> {
  let i = skipSpace(json, 0);
  if (json[i] !== "[") return;
  for (i = skipSpace(json, i + 1); i < json.length && json[i] !== "]"; ) {
    const to = valueEnd(json, i);
    yield json.slice(i, to);
    i = skipSpace(json, skipSpace(json, to) + 1);
  }
}

/** member returns the text of the first value of that name, undefined when there is none. */
export function member(json: string, name: string): string | undefined {
  for (const [n, value] of membersOf(json)) {
    if (n === name) return value;
  }
  return undefined;
}

/** withMember returns an object's text with a member set; without it, for undefined. */
export function withMember(json: string, name: string, value: unknown): string {
  const all = [...membersOf(json)].filter(([n]) => n !== name).map(([n, v]) => `${JSON.stringify(n)}:${v}`);
  if (value !== undefined) all.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return `{${all.join(",")}}`;
}
