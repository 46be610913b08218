// What a view shows comes from the server: it is loaded, there, or refused.
import { useCallback, useEffect, useState } from "preact/hooks";
import { Problem } from "./api";

export interface Loaded<T> {
  value?: T; // stays while it is loaded again
  problem?: Problem;
  loading: boolean;
  again: () => void;
}

/** useLoad calls f whenever what it depends on has changed, and forgets the answers of older calls. */
export function useLoad<T>(f: (signal: AbortSignal) => Promise<T>, dependsOn: unknown[]): Loaded<T> {
  const [state, set] = useState<{ value?: T; problem?: Problem; loading: boolean }>({ loading: true });
  const [turn, next] = useState(0);
  useEffect(() => {
    const call = new AbortController();
    set((before) => ({ value: before.value, loading: true }));
    Promise.resolve().then(() => f(call.signal)).then( // f may throw at once
      (value) => call.signal.aborted || set({ value, loading: false }),
      (e: unknown) => {
        if (call.signal.aborted) return;
        set((before) => ({ value: before.value, loading: false, problem: asProblem(e) }));
      },
    );
    return () => call.abort();
  }, [...dependsOn, turn]);
  return { ...state, again: useCallback(() => next((n) => n + 1), []) };
}

/** asProblem makes a Problem of anything that was thrown. */
export function asProblem(e: unknown): Problem {
  return e instanceof Problem ? e : new Problem(0, "error", e instanceof Error ? e.message : String(e));
}
