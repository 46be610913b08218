// A feed of changes that goes on: it is opened again when it breaks off, and closed while nobody sees it.
import { useEffect, useRef, useState } from "preact/hooks";
import { json, path, query } from "./api";
import { type Asked, type Change, type Line, type State, followAgain, requestOf } from "./feed";
import { useVisible } from "./visible";

/** mostShown is how many changes are kept. */
export const mostShown = 500;

/** showEvery is how often what has come is shown, in milliseconds. */
const showEvery = 200;

export interface Feed extends Omit<State, "state"> {
  changes: Change[]; // the newest first
  count: number; // of all that have come
  state: State["state"] | "paused";
}

/** useFeed follows the changes of a database. What it has seen stays while it pauses. */
export function useFeed(db: string, asked: Asked, paused: boolean, turn: number): Feed {
  const [feed, set] = useState<Feed>({ changes: [], count: 0, state: "opening" });
  const since = useRef(asked.start ? "0" : ""); // "": from now on
  const seen = useRef<{ changes: Change[]; count: number }>({ changes: [], count: 0 });
  const visible = useVisible();
  const open = visible && !paused;
  useEffect(() => {
    if (!open) {
      set({ ...seen.current, state: "paused" });
      return;
    }
    const call = new AbortController();
    let timer: number | undefined; // of the next showing
    const show = (of: Omit<Feed, "changes" | "count">) => {
      clearTimeout(timer);
      timer = undefined;
      if (!call.signal.aborted) set({ ...seen.current, ...of });
    };
    const request = async (signal: AbortSignal) => {
      since.current ||= (await json<{ last_seq: string }>(path(db, "_changes") + query({ since: "now", limit: 1 }), { signal })).last_seq;
      return requestOf(db, asked, since.current);
    };
    const heard = (lines: Line[]) => {
      const at = new Date().toLocaleTimeString("en-GB");
      const come = lines.map((l, i): Change => ({
        n: seen.current.count + i, seq: l.seq!, id: l.id!, revs: (l.changes ?? []).map((c) => c.rev), deleted: l.deleted === true, at,
      }));
      since.current = come.at(-1)?.seq ?? since.current;
      seen.current = { changes: [...come.slice(-mostShown).reverse(), ...seen.current.changes].slice(0, mostShown), count: seen.current.count + come.length };
      if (come.length > 0) timer ??= setTimeout(() => show({ state: "live" }), showEvery);
    };
    void followAgain(request, heard, show, call.signal);
    return () => {
      call.abort();
      clearTimeout(timer);
    };
  }, [db, open, turn]);
  return feed;
}
