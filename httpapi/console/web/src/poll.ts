// What changes by itself is asked for again and again, while somebody can see it.
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Problem } from "./api";
import { asProblem, type Loaded } from "./load";

/** isRefusal tells that asking again would be answered alike. */
export function isRefusal(p: Problem): boolean {
  return p.status >= 400 && p.status < 500 && p.status !== 408 && p.status !== 429;
}

/**
 * usePolled calls f, and again so many milliseconds after each answer, while the page is visible. What
 * was there, or went wrong, stays until the next answer. A refusal ends it until again is called.
 */
export function usePolled<T>(f: (signal: AbortSignal) => Promise<T>, every: number, dependsOn: unknown[]): Loaded<T> {
  const [state, set] = useState<{ value?: T; problem?: Problem; loading: boolean }>({ loading: true });
  const [turn, next] = useState(0);
  useEffect(() => {
    const call = new AbortController();
    let timer: number | undefined;
    let busy = false;
    let ended = false;
    const ask = async () => {
      timer = undefined;
      if (document.visibilityState !== "visible") return;
      busy = true;
      try {
        const value = await f(call.signal);
        if (call.signal.aborted) return;
        set({ value, loading: false });
      } catch (e) {
        if (call.signal.aborted) return;
        const problem = asProblem(e);
        ended = isRefusal(problem);
        set((before) => ({ value: before.value, problem, loading: false }));
      }
      busy = false;
      if (!ended) timer = setTimeout(ask, every);
    };
    const seen = () => {
      if (timer === undefined && !busy && !ended) void ask();
    };
    set((before) => ({ ...before, loading: true }));
    void ask();
    document.addEventListener("visibilitychange", seen);
    return () => {
      call.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [...dependsOn, turn]);
  return { ...state, again: useCallback(() => next((n) => n + 1), []) };
}
