// Databases that come, go and change: the server tells administrators of it, other accounts ask every few seconds.
import { useEffect, useRef, useState } from "preact/hooks";
import { query } from "./api";
import { followAgain, heartbeat } from "./feed";
import { useVisible } from "./visible";

/**
 * between is how long after one request the next one is made at the earliest, askAgain how often an account asks
 * that has no feed, and patience how long the first request waits for the feed, in milliseconds.
 */
const between = 3000, askAgain = 10_000, patience = 500;

/** Listed is what a list of databases does about events. */
export interface Listed {
  /** concerns reports whether the list changes with a database, and cameOrWent whether it is one that came or went. */
  concerns: (db: string, cameOrWent: boolean) => boolean;
  again: () => void; // asks for the list
  busy: () => boolean; // it is being asked for
}

export interface Events {
  ready: boolean; // the first request can be made: of what comes after it, everything is told
  broken?: string; // why nothing is told at the moment
}

/** useDatabaseEvents asks for a list again when something happens that concerns it, while the page is visible. */
export function useDatabaseEvents(feed: boolean, list: Listed): Events {
  const newest = useRef(list);
  newest.current = list;
  const visible = useVisible();
  const [ready, setReady] = useState(!feed);
  const [broken, setBroken] = useState<string>();
  const begun = useRef(false); // a request was made
  begun.current ||= ready;
  const asked = useRef(Date.now());
  useEffect(() => {
    if (!visible) return;
    const call = new AbortController();
    let timer: number | undefined;
    let poll: number | undefined;
    const ask = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        asked.current = Date.now();
        if (newest.current.busy()) ask(); // an answer that is on its way is not given up
        else newest.current.again();
      }, Math.max(0, asked.current + between - Date.now()));
    };
    const pollOnly = () => {
      poll ??= setInterval(ask, askAgain);
    };
    /** begin lets the first request be made; later ones are for what was not told meanwhile. */
    const begin = () => (begun.current ? ask() : setReady(true));
    const late = setTimeout(() => begun.current || setReady(true), patience);
    if (!feed) {
      pollOnly();
      if (Date.now() - asked.current > between) ask(); // the page was not visible
    } else {
      void followAgain(
        () => Promise.resolve({ to: "_db_updates" + query({ feed: "continuous", since: "now", heartbeat }) }),
        (lines) => lines.some((l) => newest.current.concerns(l.db_name!, l.type !== "updated")) && ask(),
        ({ state, problem }) => {
          if (state === "refused") pollOnly(); // there is no database of updates
          if (state === "refused" || state === "live") begin();
          if (state === "broken" && !begun.current) setReady(true);
          if (state !== "opening") setBroken(state === "broken" ? problem?.reason : undefined);
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
  return { ready, broken };
}
