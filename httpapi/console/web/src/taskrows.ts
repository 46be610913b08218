// What _active_tasks tells, in words.
import { duration, plural, shardOf } from "./words";

export interface Task {
  node: string;
  pid: string;
  type: string;
  database?: string | null;
  design_document?: string;
  index?: string;
  phase?: string;
  failed_document?: string;
  error?: string;
  changes_done?: number;
  total_changes?: number;
  progress?: number;
  started_on: number; // seconds since 1970
  updated_on: number;
  // of replications
  source?: string;
  target?: string;
  doc_id?: string | null;
  continuous?: boolean;
  docs_written?: number;
  doc_write_failures?: number;
  changes_pending?: number | null;
}

const kinds: Record<string, string> = {
  database_compaction: "Compaction",
  view_compaction: "Compaction of an index",
  indexer: "Index",
  search_indexer: "Full-text index",
  replication: "Replication",
  shard_sync: "Copies catch up",
  rebalance: "Rebalance",
};

export function kindOf(t: Task): string {
  return kinds[t.type] ?? t.type.replaceAll("_", " ");
}

export interface Subject {
  db?: string; // with a link
  text: string; // what else there is to say
}

/** subjectOf says what a task works on. */
export function subjectOf(t: Task): Subject {
  if (t.type === "replication") return { text: `${t.source ?? ""} → ${t.target ?? ""}` };
  const shard = shardOf(t.database ?? "");
  const parts = [shard?.range, t.design_document && t.design_document + (t.index ? "/" + t.index : ""), t.phase?.replaceAll("_", " ")];
  const text = parts.filter(Boolean).join(" · ");
  return shard ? { db: shard.db, text } : { text: [t.database, text].filter(Boolean).join(" · ") };
}

/** progressOf is a share in percent, undefined where a task has no end. */
export function progressOf(t: Task): number | undefined {
  if (t.type === "replication") {
    if (t.changes_pending === null || t.changes_pending === undefined) return undefined;
    const all = (t.docs_written ?? 0) + t.changes_pending;
    return t.changes_pending === 0 ? 100 : Math.floor(((t.docs_written ?? 0) * 100) / all);
  }
  return (t.total_changes ?? 0) > 0 ? t.progress : undefined;
}

/** doneOf says how much a task has done. */
export function doneOf(t: Task): string {
  if (t.type === "replication") {
    const pending = t.changes_pending == null ? "" : `, ${plural(t.changes_pending, "change")} to look at`;
    return plural(t.docs_written ?? 0, "document") + " written" + pending;
  }
  if (!t.total_changes) return t.changes_done ? plural(t.changes_done, "change") : "";
  return `${plural(t.changes_done ?? 0, "change").replace(/ .*/, "")} of ${plural(t.total_changes, "change")}`;
}

/** errorOf says what went wrong, if anything. */
export function errorOf(t: Task): string {
  const failures = t.doc_write_failures ? plural(t.doc_write_failures, "document") + " could not be written" : "";
  const at = t.failed_document ? `at document ${t.failed_document}` : "";
  return [t.error, at, failures].filter(Boolean).join(", ");
}

export function ageOf(t: Task): string {
  return duration(Math.max(t.updated_on - t.started_on, 0));
}

/** byNode groups tasks, the nodes and their tasks in the order of their names. */
export function byNode(tasks: Task[]): [string, Task[]][] {
  const groups = new Map<string, Task[]>();
  for (const t of tasks) groups.set(t.node, [...(groups.get(t.node) ?? []), t]);
  const key = (t: Task) => [t.type, t.database ?? "", t.pid].join("\n");
  for (const group of groups.values()) group.sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
