// A feed of changes that goes on: it is opened again when it breaks off, and closed while nobody sees it.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Problem, json, path, query } from "./api";
import { type Asked, type Change, final, follow, requestOf, wait } from "./feed";
import { asProblem } from "./load";

/** mostShown is how many changes are kept. */
export const mostShown = 500;

/** showEvery is how often what has come is shown, in milliseconds. */
const showEvery = 200;

export interface Feed {
  changes: Change[]; // the newest first
  count: number; // of all that have come
  state: "opening" | "live" | "broken" | "refused" | "paused";
  problem?: Problem; // why it is broken or refused
  seconds?: number; // until it is tried again
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
    const run = async () => {
      for (let failures = 0; ; ) {
        show({ state: "opening" });
        try {
          if (since.current === "") {
            const now = await json<{ last_seq: string }>(path(db, "_changes") + query({ since: "now", limit: 1 }), { signal: call.signal });
            since.current = now.last_seq;
          }
          const { to, body } = requestOf(db, asked, since.current);
          let first = true;
          await follow(to, body, call.signal, (lines) => {
            failures = 0;
            const at = new Date().toLocaleTimeString("en-GB");
            const come = lines.map((l, i): Change => ({
              n: seen.current.count + i, seq: l.seq!, id: l.id!, revs: (l.changes ?? []).map((c) => c.rev), deleted: l.deleted === true, at,
            }));
            since.current = come.at(-1)?.seq ?? since.current;
            seen.current = { changes: [...come.slice(-mostShown).reverse(), ...seen.current.changes].slice(0, mostShown), count: seen.current.count + come.length };
            if (first) show({ state: "live" });
            else if (come.length > 0) timer ??= setTimeout(() => show({ state: "live" }), showEvery);
            first = false;
          });
        } catch (e) {
          if (call.signal.aborted) return;
          const problem = asProblem(e);
          if (final(problem)) return show({ state: "refused", problem });
          for (let left = wait(failures) / 1000; left > 0 && !call.signal.aborted; left--) {
            show({ state: "broken", problem, seconds: left });
            await new Promise((go) => setTimeout(go, 1000));
          }
          if (call.signal.aborted) return;
          failures++;
        }
      }
    };
    void run();
    return () => {
      call.abort();
      clearTimeout(timer);
    };
  }, [db, open, turn]);
  return feed;
}

/** useVisible reports whether the page is seen. A feed takes one of the few connections that a browser makes. */
function useVisible(): boolean {
  const [visible, set] = useState(document.visibilityState === "visible");
  useEffect(() => {
    const changed = () => set(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  return visible;
}
