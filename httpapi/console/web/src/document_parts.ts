// What the text of a document says of the document itself.
import { elementsOf, membersOf } from "./jsonparts";

export interface DocumentParts {
  text: string; // without _conflicts
  conflicts: number;
  attachments: number;
}

/** documentParts reads the answer to a GET with conflicts=true. What is edited and saved has no _conflicts. */
export function documentParts(answer: string): DocumentParts {
  const parts = { text: answer, conflicts: 0, attachments: 0 };
  for (const [name, value, from, to] of membersOf(answer)) {
    if (name === "_attachments") parts.attachments = [...membersOf(value)].length;
    if (name !== "_conflicts") continue;
    parts.conflicts = [...elementsOf(value)].length;
    const comma = answer.lastIndexOf(",", from); // there is an _id before it
    parts.text = answer.slice(0, comma) + answer.slice(to);
  }
  return parts;
}
