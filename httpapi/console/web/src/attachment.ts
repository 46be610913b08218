// The attachments of a document, as the API has them.
import { documentPath, path, text } from "./api";
import { membersOf } from "./jsonparts";
import { Slice } from "./slice";

export interface Attachment {
  name: string;
  type: string;
  length: number; // bytes
  digest: string;
}

export interface Attachments {
  rev: string; // of the document that has them
  list: Attachment[];
}

export function attachmentPath(db: string, id: string, name: string): string {
  return `${documentPath(db, id)}/${path(name)}`;
}

/** loadAttachments returns what the newest revision has. */
export async function loadAttachments(db: string, id: string, signal?: AbortSignal): Promise<Attachments> {
  const found: Attachments = { rev: "", list: [] };
  const slice = new Slice(signal);
  for (const [name, value] of membersOf(await text(documentPath(db, id), { signal }))) {
    if (slice.over()) await slice.pause();
    if (name === "_rev") found.rev = JSON.parse(value) as string;
    if (name !== "_attachments") continue;
    const stubs = JSON.parse(value) as Record<string, { content_type: string; length: number; digest: string }>;
    found.list = Object.entries(stubs).map(([name, s]) => ({ name, type: s.content_type, length: s.length, digest: s.digest }));
    found.list.sort((a, b) => (a.name < b.name ? -1 : 1));
  }
  return found;
}
