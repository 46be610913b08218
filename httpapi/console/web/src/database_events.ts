// Databases that come, go and change, as the server tells it to administrators; others look now and then.
import { useEffect, useRef, useState } from "preact/hooks";
import { query } from "./api";
import { followAgain, heartbeat } from "./feed";
import { useVisible } from "./usefeed";

/**
 * between is how long after one look the next one is taken at the earliest, lookAgain how often an account looks
 * that has no feed, and patience how long the first look waits for the feed, in milliseconds.
 */
const between = 3000, lookAgain = 10_000, patience = 500;

/**
 * useDatabaseEvents calls again, while the page is visible, when a database changes that concerns says to matter.
 * concerns gets its name, and whether it is one that came or went. It reports whether the first look can be
 * taken: of what comes after it, everything is told.
 */
export function useDatabaseEvents(feed: boolean, concerns: (db: string, cameOrWent: boolean) => boolean, again: () => void): boolean {
  const newest = useRef({ concerns, again });
  newest.current = { concerns, again };
  const visible = useVisible();
  const [ready, setReady] = useState(!feed);
  const begun = useRef(false); // a look was taken
  begun.current ||= ready;
  useEffect(() => {
    if (!visible) return;
    const call = new AbortController();
    let timer: number | undefined;
    let poll: number | undefined;
    let looked = Date.now();
    const look = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        looked = Date.now();
        newest.current.again();
      }, Math.max(0, looked + between - Date.now()));
    };
    /** begin lets the first look be taken; later ones are for what was not told meanwhile. */
    const begin = () => (begun.current ? look() : setReady(true));
    const late = setTimeout(() => begun.current || setReady(true), patience);
    if (!feed) {
      poll = setInterval(look, lookAgain);
    } else {
      void followAgain(
        () => Promise.resolve({ to: "_db_updates" + query({ feed: "continuous", since: "now", heartbeat }) }),
        (lines) => lines.some((l) => newest.current.concerns(l.db_name!, l.type !== "updated")) && look(),
        ({ state }) => {
          if (state === "refused") poll ??= setInterval(look, lookAgain); // there is no database of updates
          if (state !== "opening") begin();
        },
        call.signal,
      );
    }
    return () => {
      call.abort();
      clearTimeout(timer);
      clearTimeout(late);
      clearInterval(poll);
    };
  }, [feed, visible]);
  return ready;
}
