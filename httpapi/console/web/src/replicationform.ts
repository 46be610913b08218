// The document that a form for a replication stands for.

/** Side is a database as it was typed: its name or URL, and the account to use there. */
export interface Side {
  where: string;
  user: string;
  password: string;
}

export interface Wish {
  id: string;
  source: Side;
  target: Side;
  createTarget: boolean;
  continuous: boolean;
  filter: string;
  parameters: string; // JSON
  selector: string; // JSON
  docIDs: string; // one in a line
}

/** Mistake is what the person can mend. */
export class Mistake extends Error {}

interface Endpoint {
  url: string;
  auth?: { basic: { username: string; password: string } };
}

/** documentOf makes the document; root is the address of this server, with a slash at its end. */
export function documentOf(w: Wish, root: string): Record<string, unknown> {
  const doc: Record<string, unknown> = { source: endpoint("Source", w.source, root), target: endpoint("Target", w.target, root) };
  if (w.createTarget) doc.create_target = true;
  if (w.continuous) doc.continuous = true;
  if (w.filter !== "") doc.filter = w.filter;
  const parameters = object("Parameters", w.parameters);
  if (parameters) doc.query_params = parameters;
  const selector = object("Selector", w.selector);
  if (selector) doc.selector = selector;
  const ids = w.docIDs.split("\n").filter((id) => id !== "");
  if (ids.length > 0) doc.doc_ids = ids;
  return doc;
}

function endpoint(name: string, side: Side, root: string): Endpoint {
  const where = side.where.trim();
  if (where === "") throw new Mistake(`${name}: the name or the URL of a database is missing.`);
  let { user, password } = side;
  let url = root + encodeURIComponent(where);
  if (where.includes("://")) {
    let parsed: URL;
    try {
      parsed = new URL(where);
    } catch {
      throw new Mistake(`${name}: this is not a URL.`);
    }
    // A password in a URL would be shown wherever the URL is.
    if (parsed.username !== "" || parsed.password !== "") {
      user ||= decoded(parsed.username);
      password ||= decoded(parsed.password);
      parsed.username = parsed.password = "";
    }
    url = parsed.href;
  }
  if (user === "" && password === "") return { url };
  if (user === "") throw new Mistake(`${name}: there is a password, but no account.`);
  return { url, auth: { basic: { username: user, password } } };
}

function decoded(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

function object(name: string, text: string): object | undefined {
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (e) {
    throw new Mistake(`${name}: ${e instanceof Error ? e.message : "no JSON"}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Mistake(`${name}: this is not a JSON object.`);
  return value;
}
