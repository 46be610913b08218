// Feeds of changes: their requests, the reading of what comes, and opening them again when they break off.
import { Problem, ask, path, query } from "./api";
import { asProblem } from "./load";
import { isRefusal } from "./poll";

export interface Change {
  n: number; // counts what has come
  seq: string;
  id: string;
  revs: string[];
  deleted: boolean;
  at: string; // when it came, as a clock shows it
}

/** Asked is what the address of a feed says. */
export interface Asked {
  filter: string; // "", a built-in one, or "function"
  value: string; // ids, one on a line; a selector; DESIGN/VIEW; DESIGN/FILTER
  args: string; // for a function: a=1&b=2
  start: boolean; // from the beginning, not from now on
}

export function askedOf(params: URLSearchParams): Asked {
  const given = (name: string) => params.get(name) ?? "";
  return { filter: given("filter"), value: given("value"), args: given("args"), start: given("since") === "0" };
}

export function paramsOf(a: Asked): Record<string, string | undefined> {
  return { filter: a.filter || undefined, value: a.value || undefined, args: a.args || undefined, since: a.start ? "0" : undefined };
}

/** noAnswer is the error of connections that broke off. */
const noAnswer = "no answer";

/** heartbeat is how often the server sends something, and silence how long it may send nothing, in milliseconds. */
export const heartbeat = 10_000;
const silence = 35_000;

/** requestOf returns the address and the body of a feed. */
export function requestOf(db: string, a: Asked, since: string): { to: string; body?: string } {
  const of = { feed: "continuous", heartbeat, since };
  const at = (more: Record<string, string | undefined>) => path(db, "_changes") + query({ ...of, ...more });
  switch (a.filter) {
    case "":
      return { to: at({}) };
    case "_doc_ids": {
      const ids = a.value.split("\n").map((id) => id.trim()).filter((id) => id !== "");
      return { to: at({ filter: a.filter }), body: JSON.stringify({ doc_ids: ids }) };
    }
    case "_selector":
      return { to: at({ filter: a.filter }), body: `{"selector":${a.value.trim() || "null"}}` }; // as it was written: the server reads it
    case "_view":
      return { to: at({ filter: a.filter, view: a.value }) };
    case "function": {
      const args = Object.fromEntries(new URLSearchParams(a.args));
      return { to: path(db, "_changes") + query({ ...args, ...of, filter: a.value }) };
    }
    default:
      return { to: at({ filter: a.filter }) };
  }
}

export interface Line {
  seq?: string;
  id?: string; // in a feed of documents
  db_name?: string; // in one of databases
  type?: string; // likewise: created, updated, deleted
  changes?: { rev: string }[];
  deleted?: boolean;
  error?: string;
  reason?: string;
}

/**
 * follow reads a feed until it ends, which is always an error. heard is called for each part that comes,
 * with its changes: none in a heartbeat.
 */
async function follow(to: string, body: string | undefined, signal: AbortSignal, heard: (of: Line[]) => void): Promise<never> {
  const call = new AbortController();
  const abort = () => call.abort();
  signal.addEventListener("abort", abort);
  let silent = setTimeout(abort, silence);
  try {
    const got = await ask(to, { method: body === undefined ? "GET" : "POST", body, signal: call.signal });
    const reader = got.body!.getReader();
    const text = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      clearTimeout(silent);
      silent = setTimeout(abort, silence);
      const lines = (rest + text.decode(value, { stream: true })).split("\n");
      rest = lines.pop()!;
      const all = lines.filter((l) => l.trim() !== "").map((l) => JSON.parse(l) as Line);
      const wrong = all.find((l) => l.error !== undefined);
      if (wrong) throw new Problem(0, wrong.error!, wrong.reason ?? "");
      heard(all.filter((l) => l.id !== undefined || l.db_name !== undefined));
    }
  } catch (e) {
    if (signal.aborted || e instanceof Problem) throw e;
  } finally {
    clearTimeout(silent);
    signal.removeEventListener("abort", abort);
    call.abort();
  }
  throw new Problem(0, noAnswer, "The connection broke off.");
}

/** State is that of a feed that is opened again and again. */
export interface State {
  state: "opening" | "live" | "broken" | "refused";
  problem?: Problem; // why it is broken or refused
  seconds?: number; // until it is tried again
}

/**
 * followAgain reads a feed, and opens it again when it breaks off, until the signal is given or it is refused.
 * request is asked before each opening; heard gets what comes, told how the feed is.
 */
export async function followAgain(
  request: (signal: AbortSignal) => Promise<{ to: string; body?: string }>,
  heard: (of: Line[]) => void,
  told: (of: State) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; ; failures++) {
    told({ state: "opening" });
    try {
      const { to, body } = await request(signal);
      let first = true;
      const began = Date.now();
      await follow(to, body, signal, (lines) => {
        if (Date.now() - began >= heartbeat) failures = 0; // it does not end at once each time
        heard(lines);
        if (first) told({ state: "live" });
        first = false;
      });
    } catch (e) {
      if (signal.aborted) return;
      const problem = asProblem(e);
      if (final(problem)) return told({ state: "refused", problem });
      for (let left = wait(failures) / 1000; left > 0 && !signal.aborted; left--) {
        told({ state: "broken", problem, seconds: left });
        await new Promise((go) => setTimeout(go, 1000));
      }
      if (signal.aborted) return;
    }
  }
}

/** wait is how long to wait before try n, from 0 on, in milliseconds. */
function wait(n: number): number {
  return Math.min(2000 * 2 ** n, 30_000);
}

/** final reports whether trying again is of no use: the request is refused, or the feed says itself why it ends. */
function final(p: Problem): boolean {
  return (p.status === 0 && p.error !== noAnswer) || isRefusal(p);
}
