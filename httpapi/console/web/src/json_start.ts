// How much of a JSON text an editor shows without a question: very long texts, many lines and
// long lines keep the page from answering.
import { layingOut } from "./jsontext";

export interface Start {
  text: string; // laid out
  whole: boolean;
}

/** What an editor shows at once, in characters and lines. */
const most = { text: 500_000, lines: 20_000, line: 20_000 };

/** What is shown of more than that. */
const start = { lines: 500, line: 1_000 };

/** startOf lays out a text, or its start when it is too long. */
export function startOf(json: string): Start {
  let text = "";
  let lines = 1;
  let column = 0;
  for (const part of layingOut(json)) {
    text += part;
    const ends = part.split("\n");
    const longest = Math.max(column + ends[0]!.length, ...ends.slice(1).map((l) => l.length));
    column = ends.length > 1 ? ends.at(-1)!.length : longest;
    lines += ends.length - 1;
    if (text.length > most.text || lines > most.lines || longest > most.line) return { text: shortened(text), whole: false };
  }
  return { text, whole: true };
}

function shortened(text: string): string {
  return text.split("\n", start.lines).map((l) => (l.length > start.line ? `${l.slice(0, start.line)} …` : l)).join("\n");
}
