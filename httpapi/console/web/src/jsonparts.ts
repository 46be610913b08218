// Members and elements of JSON text, read and changed in place: all other text stays as it is, and
// numbers keep their digits. What is changed has to be JSON; of other text nothing is found from where it is none.

/** skipSpace returns the index of the first character from i on that is not white space. */
export function skipSpace(s: string, i: number): number {
  while (i < s.length && " \t\r\n".includes(s[i]!)) i++;
  return i;
}

/** stringEnd returns the index behind the string that begins at i. */
export function stringEnd(s: string, i: number): number {
  for (let end = s.indexOf('"', i + 1); end >= 0; end = s.indexOf('"', end + 1)) {
    let escapes = end;
    while (s[escapes - 1] === "\\" && escapes - 1 > i) escapes--;
    if ((end - escapes) % 2 === 0) return end + 1;
  }
  return s.length;
}

/** Part is a member of an object, or an element of an array, whose name is "". */
export interface Part {
  name: string;
  begin: number; // where its name begins; of an element, its value
  from: number; // its value is [from, to)
  to: number;
}

/** eachPart finds one after the other what is in the object or array that begins at an index, of anything else nothing. */
export function* eachPart(json: string, at = 0): Generator<Part> {
  const open = skipSpace(json, at);
  if (json[open] !== "{" && json[open] !== "[") return;
  for (let i = skipSpace(json, open + 1); i < json.length && json[i] !== "}" && json[i] !== "]"; ) {
    const begin = i;
    let name: string | undefined = "";
    if (json[open] === "{") {
      const end = stringEnd(json, i);
      name = nameOf(json.slice(i, end));
      if (name === undefined) return;
      i = skipSpace(json, skipSpace(json, end) + 1);
    }
    const to = valueEnd(json, i);
    yield { name, begin, from: i, to };
    i = skipSpace(json, to);
    if (json[i] === ",") i = skipSpace(json, i + 1);
  }
}

/** parts returns all that eachPart finds. */
export function parts(json: string, at = 0): Part[] {
  return [...eachPart(json, at)];
}

const structure = /["{}[\]]/g; // stateful: only valueEnd uses it, from where it sets it to

/** valueEnd returns the index behind the value that begins at i. */
function valueEnd(json: string, i: number): number {
  if (json[i] === '"') return stringEnd(json, i);
  if (json[i] !== "{" && json[i] !== "[") {
    while (i < json.length && !endsScalar(json.charCodeAt(i))) i++;
    return i;
  }
  let depth = 0;
  structure.lastIndex = i;
  for (let at = structure.exec(json); at; at = structure.exec(json)) {
    if (at[0] === '"') structure.lastIndex = stringEnd(json, at.index);
    else depth += at[0] === "{" || at[0] === "[" ? 1 : -1;
    if (depth === 0) return structure.lastIndex;
  }
  return json.length;
}

/** endsScalar reports whether a character is one of , ] } and white space. */
function endsScalar(code: number): boolean {
  return code === 0x2c || code === 0x5d || code === 0x7d || code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** nameOf reads the name of a member, which may be of a text that is no JSON. */
function nameOf(token: string): string | undefined {
  if (token[0] !== '"') return undefined;
  if (!token.includes("\\")) return token.slice(1, -1);
  try {
    return JSON.parse(token) as string;
  } catch {
    return undefined;
  }
}

/** lastOf returns the index of the last part of that name, which is the one that counts; -1: none. */
function lastOf(all: Part[], name: string): number {
  return all.map((p) => p.name).lastIndexOf(name);
}

/** get returns the text of what a path of members leads to. */
export function get(json: string, ...path: string[]): string | undefined {
  let value: string | undefined = json;
  for (const name of path) {
    const all: Part[] = parts(value ?? "");
    const p = all[lastOf(all, name)];
    value = p && value!.slice(p.from, p.to);
  }
  return value;
}

/** elements returns the texts of the elements of an array, or of the values of an object. */
export function elements(json: string): string[] {
  return parts(json).map((p) => json.slice(p.from, p.to));
}

/** set returns the text of an object in which a path of members leads to a value, which is JSON. */
export function set(json: string, path: string[], value: string): string {
  const [name, ...rest] = path as [string, ...string[]];
  const all = parts(json);
  const p = all[lastOf(all, name)];
  const was = p ? json.slice(p.from, p.to) : "{}";
  const now = rest.length === 0 ? value : set(was.startsWith("{") ? was : "{}", rest, value);
  if (p) return json.slice(0, p.from) + now + json.slice(p.to);
  const last = all.at(-1);
  const at = last ? last.to : skipSpace(json, 0) + 1;
  return `${json.slice(0, at)}${last ? "," : ""}${JSON.stringify(name)}:${now}${json.slice(at)}`;
}

/** remove returns the text of an object without what a path of members leads to. */
export function remove(json: string, path: string[]): string {
  const [name, ...rest] = path as [string, ...string[]];
  const all = parts(json);
  const i = lastOf(all, name);
  const p = all[i];
  if (!p) return json;
  if (rest.length > 0) return json.slice(0, p.from) + remove(json.slice(p.from, p.to), rest) + json.slice(p.to);
  if (i > 0) return remove(json.slice(0, all[i - 1]!.to) + json.slice(p.to), path); // there may be another one
  const next = all[1];
  return next ? remove(json.slice(0, p.begin) + json.slice(next.begin), path) : json.slice(0, p.begin) + json.slice(p.to);
}

/** membersOf returns the names and the texts of the values of an object, and where they lie; nothing for other JSON. */
export function* membersOf(json: string): Generator<[name: string, value: string, begin: number, to: number]> {
  if (json[skipSpace(json, 0)] !== "{") return;
  for (const p of eachPart(json)) yield [p.name, json.slice(p.from, p.to), p.begin, p.to];
}

/** elementsOf returns the texts of the elements of an array, nothing for other JSON. */
export function* elementsOf(json: string): Generator<string> {
  if (json[skipSpace(json, 0)] !== "[") return;
  for (const p of eachPart(json)) yield json.slice(p.from, p.to);
}

/** member returns the text of the first value of that name, undefined when there is none. */
export function member(json: string, name: string): string | undefined {
  for (const p of eachPart(json)) {
    if (p.name === name) return json.slice(p.from, p.to);
  }
  return undefined;
}
