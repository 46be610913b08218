// Requests to the HTTP API: the same that curl makes, with the cookie of the session.

/** Problem is an answer that says no, in the server's words. */
export class Problem extends Error {
  constructor(
    readonly status: number, // 0: there was no answer
    readonly error: string,
    readonly reason: string,
  ) {
    super(reason || error);
  }
}

/** root is the address of the server: the console lies one level below it, also behind a proxy. */
const root = new URL("../", new URL(location.pathname, location.origin));

/** path makes a path of segments that may hold anything; slashes in ids of design documents stay. */
export function path(...segments: string[]): string {
  return segments.map(encodeURIComponent).join("/");
}

/** documentPath is the path of a document; those of design and local documents have two segments. */
export function documentPath(db: string, id: string): string {
  const [, prefix, rest] = /^(_design|_local)\/(.*)$/s.exec(id) ?? [];
  return prefix === undefined ? path(db, id) : `${path(db)}/${prefix}/${encodeURIComponent(rest!)}`;
}

/** query makes a query string of what is given. */
export function query(of: Record<string, string | number | boolean | undefined>): string {
  const given = Object.entries(of).filter((entry) => entry[1] !== undefined);
  return given.length === 0 ? "" : "?" + given.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`).join("&");
}

export interface Options {
  method?: string;
  body?: string; // JSON
  signal?: AbortSignal;
}

const listeners = new Set<() => void>();

/** onRefused tells of answers that demand a log-in; it returns what ends that. */
export function onRefused(f: () => void): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}

/** text returns the body of an answer as it came. It throws a Problem for any status but 2xx. */
export async function text(to: string, options: Options = {}): Promise<string> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(new URL(to, root), {
      method: options.method ?? "GET",
      headers,
      body: options.body,
      signal: options.signal,
      credentials: "same-origin",
      cache: "no-cache",
    });
  } catch (e) {
    if (options.signal?.aborted) throw e;
    throw new Problem(0, "no answer", "The server cannot be reached.");
  }
  let body: string;
  try {
    body = await answer.text();
  } catch (e) {
    if (options.signal?.aborted) throw e;
    throw new Problem(0, "no answer", "The connection broke off.");
  }
  if (answer.ok) return body;
  if (answer.status === 401 && to !== "_session") listeners.forEach((f) => f());
  let told: { error?: unknown; reason?: unknown } = {};
  try {
    told = JSON.parse(body);
  } catch {
    // a proxy may answer with anything
  }
  throw new Problem(answer.status, String(told.error ?? answer.status), String(told.reason ?? answer.statusText));
}

/** json is text, parsed. */
export async function json<T>(to: string, options: Options = {}): Promise<T> {
  return JSON.parse(await text(to, options)) as T;
}
