// How far the index of a design document is.
import { json } from "./api";
import { stateOf } from "./designdoc";
import { count } from "./parts";
import type { User } from "./session";

interface Task {
  type: string;
  database: string; // "shards/RANGE/NAME.SUFFIX"
  design_document?: string;
  changes_done: number;
  total_changes: number;
  failed_document?: string;
  error?: string;
}

/** building says how far the views of a design document are; nothing when they are not being built. */
export async function building(db: string, ddoc: string, user: User, signal: AbortSignal): Promise<string | undefined> {
  const id = "_design/" + ddoc;
  if (!user.roles.includes("_admin")) { // only server administrators see tasks
    const state = await stateOf(db, id, "_info", signal);
    return state.pending ? `The index is being built: ${count(state.pending)} changes to go.` : undefined;
  }
  const tasks = (await json<Task[]>("_active_tasks", { signal })).filter((t) => {
    const name = /^shards\/[^/]+\/(.*)\.\d+$/s.exec(t.database)?.[1];
    return t.type === "indexer" && name === db && t.design_document === id;
  });
  return progressOf(tasks);
}

/** progressOf adds up what the copies of all shards have done. */
function progressOf(tasks: Task[]): string | undefined {
  if (tasks.length === 0) return undefined;
  const failed = tasks.find((t) => t.error);
  if (failed) return `The index is not built: ${failed.error}${failed.failed_document ? `, at document ${failed.failed_document}` : ""}.`;
  const done = tasks.reduce((n, t) => n + t.changes_done, 0);
  const total = tasks.reduce((n, t) => n + t.total_changes, 0);
  return `The index is being built: ${count(done)} of ${count(total)} changes (${total > 0 ? Math.floor((100 * done) / total) : 0} %).`;
}
