// JSON as text. Numbers of documents may have more digits than those of JavaScript, and members an
// order: so a document is never parsed and printed again, only laid out.

/** layOut puts each member of JSON on a line of its own, and changes no token. */
export function layOut(json: string): string {
  const out: string[] = [];
  let depth = 0;
  const line = () => out.push("\n" + "  ".repeat(depth));
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

function skipSpace(s: string, i: number): number {
  while (i < s.length && " \t\r\n".includes(s[i]!)) i++;
  return i;
}

/** stringEnd returns the index behind the string that begins at i. */
function stringEnd(s: string, i: number): number {
  for (i++; i < s.length; i++) {
    if (s[i] === "\\") i++;
    else if (s[i] === '"') return i + 1;
  }
  return s.length;
}

/** withRev returns the text of a document with another revision, which it may have had or not. */
export function withRev(document: string, rev: string): string {
  let depth = 0;
  for (let i = 0; i < document.length; ) {
    const c = document[i]!;
    if (c === '"') {
      const end = stringEnd(document, i);
      const colon = skipSpace(document, end);
      if (depth === 1 && document[colon] === ":" && document.slice(i, end) === '"_rev"') {
        const from = skipSpace(document, colon + 1);
        let to = document[from] === '"' ? stringEnd(document, from) : from;
        while (to < document.length && !",}]\n".includes(document[to]!)) to++;
        return document.slice(0, from) + JSON.stringify(rev) + document.slice(to);
      }
      i = end;
      continue;
    }
    if (c === "{" || c === "[") depth++;
    if (c === "}" || c === "]") depth--;
    i++;
  }
  const open = document.indexOf("{");
  const comma = document[skipSpace(document, open + 1)] === "}" ? "" : ",";
  return `${document.slice(0, open + 1)}\n  "_rev": ${JSON.stringify(rev)}${comma}${document.slice(open + 1)}`;
}
