// JSON as text. Numbers of documents may have more digits than those of JavaScript, and members an
// order: so a document is never parsed and printed again, only laid out.

// Deeper lines begin where the deepest of these does, or a small document of deep arrays would be
// laid out as one that no browser can hold.
const starts = Array.from({ length: 40 }, (_, depth) => "\n" + "  ".repeat(depth));

/** layOut puts each member of JSON on a line of its own, and changes no token. */
export function layOut(json: string): string {
  const out: string[] = [];
  let depth = 0;
  const line = () => out.push(starts[Math.min(depth, starts.length - 1)]!);
  for (let i = 0; i < json.length; ) {
    const c = json[i]!;
    switch (c) {
      case " ":
      case "\t":
      case "\r":
      case "\n":
        i++;
        break;
      case '"': {
        const end = stringEnd(json, i);
        out.push(json.slice(i, end));
        i = end;
        break;
      }
      case "{":
      case "[": {
        const next = skipSpace(json, i + 1);
        if (json[next] === "}" || json[next] === "]") {
          out.push(c + json[next]);
          i = next + 1;
          break;
        }
        out.push(c);
        depth++;
        line();
        i++;
        break;
      }
      case "}":
      case "]":
        depth = Math.max(depth - 1, 0);
        line();
        out.push(c);
        i++;
        break;
      case ",":
        out.push(c);
        line();
        i++;
        break;
      case ":":
        out.push(": ");
        i++;
        break;
      default: {
        let end = i + 1;
        while (end < json.length && !' \t\r\n",:{}[]'.includes(json[end]!)) end++;
        out.push(json.slice(i, end));
        i = end;
      }
    }
  }
  return out.join("");
}

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

/** revAt returns where the revision in the text of a document lies: [from, to). Of several the last one counts. */
function revAt(document: string): [number, number] | undefined {
  let depth = 0;
  let found: [number, number] | undefined;
  for (let i = 0; i < document.length; ) {
    const c = document[i]!;
    if (c === '"') {
      const end = stringEnd(document, i);
      const colon = skipSpace(document, end);
      if (depth === 1 && document[colon] === ":" && isRev(document.slice(i, end))) {
        const from = skipSpace(document, colon + 1);
        let to = document[from] === '"' ? stringEnd(document, from) : from;
        while (to < document.length && !",}]\n".includes(document[to]!)) to++;
        found = [from, to];
        i = to;
        continue;
      }
      i = end;
      continue;
    }
    if (c === "{" || c === "[") depth++;
    if (c === "}" || c === "]") depth--;
    i++;
  }
  return found;
}

function isRev(token: string): boolean {
  try {
    return token === '"_rev"' || (token.includes("\\") && JSON.parse(token) === "_rev");
  } catch {
    return false;
  }
}

/** revOf returns the revision in the text of a document, "" when there is none. */
export function revOf(document: string): string {
  const at = revAt(document);
  return at ? document.slice(...at).trim().replace(/^"|"$/g, "") : "";
}

/** withRev returns the text of a document with another revision, which it may have had or not. */
export function withRev(document: string, rev: string): string {
  const at = revAt(document);
  if (at) return document.slice(0, at[0]) + JSON.stringify(rev) + document.slice(at[1]);
  const open = document.indexOf("{");
  const comma = document[skipSpace(document, open + 1)] === "}" ? "" : ",";
  return `${document.slice(0, open + 1)}\n  "_rev": ${JSON.stringify(rev)}${comma}${document.slice(open + 1)}`;
}
