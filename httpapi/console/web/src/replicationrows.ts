// What _scheduler tells of replications, in words.
import { plural } from "./words";

export interface Info {
  docs_written?: number;
  changes_pending?: number | null;
  doc_write_failures?: number;
  error?: string;
}

export interface ReplicationDoc {
  database: string;
  doc_id: string;
  source: string | null;
  target: string | null;
  state: string;
  info: Info | string | null;
  error_count: number;
  node?: string;
  start_time: string | null;
  last_updated: string | null;
}

export interface Job {
  id: string;
  doc_id: string | null;
  source: string;
  target: string;
  user: string | null;
  node: string;
  pid: string | null; // null: it does not run now
  info: Info | null;
  start_time: string;
  history: { timestamp: string; type: string; reason?: string }[]; // the newest first
}

const states: Record<string, string> = {
  initializing: "starts soon",
  running: "runs",
  pending: "waits for its turn",
  crashing: "has failed, and will be tried again",
  error: "could not be started, and will be tried again",
  completed: "is done",
  failed: "has failed for good",
};

export function stateWords(state: string): string {
  return states[state] ?? state;
}

/** isBad tells that somebody should look. */
export function isBad(state: string): boolean {
  return state === "crashing" || state === "error" || state === "failed";
}

/** errorOf is the last error, "" for none. */
export function errorOf(info: Info | string | null): string {
  return typeof info === "string" ? info : (info?.error ?? "");
}

/** progressOf says how far a replication is. */
export function progressOf(info: Info | string | null): string {
  if (info === null || typeof info === "string" || info.docs_written === undefined) return "";
  const parts = [plural(info.docs_written, "document") + " written"];
  if (info.changes_pending != null) parts.push(plural(info.changes_pending, "change") + " to look at");
  if (info.doc_write_failures) parts.push(plural(info.doc_write_failures, "document") + " refused");
  return parts.join(", ");
}

/** jobState says what a job does: its newest event tells why it does not run. */
export function jobState(j: Job): { words: string; error: string } {
  if (j.pid !== null) return { words: "runs", error: "" };
  const newest = j.history[0];
  if (newest?.type === "crashed") return { words: stateWords("crashing"), error: newest.reason ?? "" };
  return { words: "waits for its turn", error: "" };
}

/** failures says how often a replication has failed in a row. */
export function failures(n: number): string {
  return n === 0 ? "" : n === 1 ? "failed once" : `failed ${n} times in a row`;
}
