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
export const root = new URL(location.origin + location.pathname.replace(/_utils\/[^]*$/, "").replace(/^\/+/, "/"));

/** path makes a path of segments that may hold anything. */
export function path(...segments: string[]): string {
  return segments.map(segment).join("/");
}

/**
 * segment encodes a segment of a path. Browsers take "." and ".." out of paths, also when they are
 * encoded: a request would go to the database instead of its document.
 */
function segment(name: string): string {
  if (name === "" || name === "." || name === "..") {
    throw new Problem(0, "no address", `A browser cannot make a request for the name “${name}”.`);
  }
  return encodeURIComponent(name);
}

/** documentPath is the path of a document; those of design and local documents have two segments. */
export function documentPath(db: string, id: string): string {
  const [, prefix, rest] = /^(_design|_local)\/(.*)$/s.exec(id) ?? [];
  return prefix === undefined ? path(db, id) : `${path(db)}/${prefix}/${segment(rest!)}`;
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
  writes?: boolean; // a POST that changes something; PUT and DELETE do
  anyone?: boolean; // as whoever is logged in by now
}

let check: (() => Promise<void>) | undefined;

/** beforeChanges sets what may stop a request that changes something, by throwing; it returns what ends that. */
export function beforeChanges(f: () => Promise<void>): () => void {
  check = f;
  return () => {
    if (check === f) check = undefined;
  };
}

const listeners = new Set<() => void>();

/** onRefused tells of answers that demand a log-in; it returns what ends that. */
export function onRefused(f: () => void): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}

/** ask returns an answer whose body is not read yet. It throws a Problem for any status but 2xx. */
export async function ask(to: string, options: Options = {}): Promise<Response> {
  const changes = options.method === "PUT" || options.method === "DELETE" || options.writes;
  if (changes && !options.anyone && to !== "_session") await check?.();
  // The browser would ask for a name and a password itself.
  const headers: Record<string, string> = { Accept: "application/json", "X-CouchDB-WWW-Authenticate": "Cookie" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(address(to), {
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
  if (answer.ok) return answer;
  const body = await whole(answer, options);
  if (answer.status === 401 && to !== "_session") demandLogin();
  throw problemOf(answer.status, answer.statusText, body);
}

/** problemOf is the Problem that an answer tells in its body. */
export function problemOf(status: number, statusText: string, body: string): Problem {
  let told: { error?: unknown; reason?: unknown } = {};
  try {
    told = JSON.parse(body) ?? {};
    if (Array.isArray(told)) told = { error: told[0]?.error, reason: told[0]?.error }; // of several things none was done
  } catch {
    // a proxy may answer with anything
  }
  return new Problem(status, String(told.error ?? status), String(told.reason ?? statusText));
}

async function whole(answer: Response, options: Options): Promise<string> {
  try {
    return await answer.text();
  } catch (e) {
    if (options.signal?.aborted) throw e;
    throw new Problem(0, "no answer", "The connection broke off.");
  }
}

/** text returns the body of an answer as it came. It throws a Problem for any status but 2xx. */
export async function text(to: string, options: Options = {}): Promise<string> {
  const answer = await ask(to, options);
  const body = await whole(answer, options);
  if (/json/.test(answer.headers.get("Content-Type") ?? "")) return body;
  throw new Problem(answer.status, "no JSON", "Something else than the server has answered.");
}

/** json is text, parsed. */
export async function json<T>(to: string, options: Options = {}): Promise<T> {
  return JSON.parse(await text(to, options)) as T;
}

/** write is json for what changes something. accepted: fewer copies than asked have it, the others will (202). */
export async function write<T>(to: string, options: Options): Promise<{ value: T; accepted: boolean }> {
  const answer = await ask(to, options);
  return { value: JSON.parse(await whole(answer, options)) as T, accepted: answer.status === 202 };
}

/** address is the URL of a path on the server. */
export function address(to: string): string {
  return new URL(to, root).href;
}

/** demandLogin tells that the session has ended. */
export function demandLogin(): void {
  listeners.forEach((f) => f());
}

/** forget sends a DELETE that outlives the page. */
export function forget(of: string): void {
  void fetch(new URL(of, root), { method: "DELETE", keepalive: true, headers: { Accept: "application/json" } }).catch(() => {});
}
