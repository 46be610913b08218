// What the text of a document says of the document itself.
import { elementsOf, membersOf } from "./jsonparts";
import { Slice } from "./slice";

export interface DocumentParts {
  text: string; // without _conflicts
  rev: string;
  conflicts: number;
  attachments: number;
}

/** documentParts reads the answer to a GET with conflicts=true. What is edited and saved has no _conflicts. */
export async function documentParts(answer: string, signal: AbortSignal): Promise<DocumentParts> {
  const parts = { text: answer, rev: "", conflicts: 0, attachments: 0 };
  const slice = new Slice(signal);
  for (const [name, value, from, to] of membersOf(answer)) {
    if (slice.over()) await slice.pause();
    if (name === "_rev") parts.rev = JSON.parse(value) as string;
    if (name === "_attachments") parts.attachments = [...membersOf(value)].length;
    if (name !== "_conflicts") continue;
    parts.conflicts = [...elementsOf(value)].length;
    const comma = answer.lastIndexOf(",", from); // there is an _id before it
    parts.text = answer.slice(0, comma) + answer.slice(to);
  }
  return parts;
}
