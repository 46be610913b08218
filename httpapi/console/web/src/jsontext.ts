// JSON as text. Numbers of documents may have more digits than those of JavaScript, and members an
// order: so a document is never parsed and printed again, only laid out.
import { membersOf, skipSpace, stringEnd } from "./jsonparts";
import { Slice } from "./slice";

// Deeper lines begin where the deepest of these does, or a small document of deep arrays would be
// laid out as one that no browser can hold.
const starts = Array.from({ length: 40 }, (_, depth) => "\n" + "  ".repeat(depth));

/** layOut puts each member of JSON on a line of its own, and changes no token. The page answers meanwhile. */
export async function layOut(json: string, signal?: AbortSignal): Promise<string> {
  const parts: string[] = [];
  const slice = new Slice(signal);
  for (const part of layingOut(json)) {
    parts.push(part);
    if (slice.over()) await slice.pause();
  }
  return parts.join("");
}

/** longText is from how many characters on lines begin further left. */
const longText = 1_000_000;

/** piecesOfPart is how many pieces of the text make one part. */
const piecesOfPart = 4096;

/** layingOut returns the text that is laid out, part by part. */
export function* layingOut(json: string): Generator<string> {
  const deepest = json.length > longText ? 4 : starts.length - 1;
  let out: string[] = [];
  let depth = 0;
  const line = () => out.push(starts[Math.min(depth, deepest)]!);
  for (let i = 0; i < json.length; ) {
    if (out.length >= piecesOfPart) {
      yield out.join("");
      out = [];
    }
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
  yield out.join("");
}

/** revAt returns where the revision in the text of a document lies: [from, to). Of several the last one counts. */
function revAt(document: string): [number, number] | undefined {
  let found: [number, number] | undefined;
  for (const [name, value, , to] of membersOf(document)) {
    if (name === "_rev") found = [to - value.length, to];
  }
  return found;
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
