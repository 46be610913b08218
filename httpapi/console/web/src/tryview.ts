// A view is tried on a few documents before it is saved. The server runs functions of saved views
// only: so the documents are copied into a database of their own, which goes with the answer.
import { Problem, forget, json, path, query, text } from "./api";
import { get, elements, remove } from "./jsonparts";
import { rowsOf, type Row } from "./rowpages";
import type { Source } from "./viewsource";

export const sampleSize = 50;
export const namePrefix = "console-try-";

/** mostRows is how many rows of the sample are shown. */
const mostRows = 200;

export interface Tried {
  documents: number;
  rows: Row[];
  more: boolean; // there are more rows
  reduced?: string; // JSON
  left?: string; // the name of a database that could not be deleted
}

/** tryView runs a view on some documents of a database. options is that member of its design document. Server administrators may. */
export async function tryView(db: string, of: Source, options: string | undefined, signal: AbortSignal): Promise<Tried> {
  const all = { selector: { _id: { $gt: null } }, limit: sampleSize };
  const sample = elements(get(await text(path(db, "_find"), { method: "POST", body: JSON.stringify(all), signal }), "docs") ?? "[]");
  const name = namePrefix + [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, "0")).join("");
  const drop = () => forget(path(name)); // the page may be closed meanwhile
  addEventListener("pagehide", drop);
  let left: string | undefined;
  let out: Omit<Tried, "left"> | undefined;
  let failed: unknown;
  try {
    await json(path(name) + query({ q: 1, n: 1 }), { method: "PUT" });
    out = await fill(name, of, options, sample, signal);
  } catch (e) {
    failed = e;
  } finally {
    removeEventListener("pagehide", drop);
    await json(path(name), { method: "DELETE" }).catch((e: { status?: number }) => {
      if (e.status !== 404) left = name;
    });
  }
  if (out) return { ...out, left };
  if (left === undefined) throw failed;
  throw new Problem(0, "left behind", `${failed instanceof Error ? failed.message : String(failed)} The database ${name} could not be deleted; it has copies of documents.`);
}

/** fill puts documents and the view into a new database, and reads the view. */
async function fill(name: string, of: Source, options: string | undefined, sample: string[], signal: AbortSignal): Promise<Omit<Tried, "left">> {
  const nobody = { names: [], roles: ["_admin"] }; // what others may not read there is not for all to see here
  await json(path(name, "_security"), { method: "PUT", body: JSON.stringify({ admins: nobody, members: nobody }), signal });
  const view = JSON.stringify({ map: of.map, reduce: of.reduce || undefined });
  const kept = options === undefined ? "" : `"options":${remove(options, ["partitioned"])},`;
  await json(`${path(name)}/_design/try`, { method: "PUT", body: `{${kept}"views":{"try":${view}}}`, signal });
  const docs = sample.map((d) => remove(d, ["_attachments"])).join(",");
  await json(path(name, "_bulk_docs"), { method: "POST", body: `{"new_edits":false,"docs":[${docs}]}`, signal });
  const to = `${path(name)}/_design/try/_view/try`;
  const rows = rowsOf(await text(to + query({ limit: mostRows + 1, reduce: of.reduce ? false : undefined }), { signal }));
  const reduced = of.reduce ? rowsOf(await text(to, { signal }))[0]?.value : undefined;
  return { documents: sample.length, rows: rows.slice(0, mostRows), more: rows.length > mostRows, reduced };
}
