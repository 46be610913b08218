// The security object of a database, and what it means in words.
import { parts, remove, set } from "./jsonparts";

export interface Group {
  names: string[];
  roles: string[];
}

export interface Security {
  admins: Group;
  members: Group;
  others: string[]; // names of what else is in the object, and stays
}

function groupOf(json: string | undefined): Group {
  const value = (json === undefined ? {} : JSON.parse(json)) as Record<string, unknown> | null;
  const texts = (list: unknown) => (Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : []);
  return { names: texts(value?.names), roles: texts(value?.roles) };
}

/** parseSecurity reads the text of an object. "readers" is what "members" was called once. */
export function parseSecurity(json: string): Security {
  const all = new Map(parts(json).map((p) => [p.name, json.slice(p.from, p.to)]));
  const others = [...all.keys()].filter((name) => name !== "admins" && name !== "members" && name !== "readers");
  return { admins: groupOf(all.get("admins")), members: groupOf(all.get("members") ?? all.get("readers")), others };
}

/** withGroups returns the text of an object with other groups. */
export function withGroups(json: string, admins: Group, members: Group): string {
  return set(set(remove(json, ["readers"]), ["admins"], JSON.stringify(admins)), ["members"], JSON.stringify(members));
}

function people(g: Group, quoted: (s: string) => string): string[] {
  const roles = g.roles.filter((r) => r !== "_admin");
  return [
    ...(g.names.length > 0 ? [(g.names.length === 1 ? "the account " : "the accounts ") + g.names.map(quoted).join(", ")] : []),
    ...(roles.length > 0 ? [(roles.length === 1 ? "accounts with the role " : "accounts with one of the roles ") + roles.map(quoted).join(", ")] : []),
  ];
}

function sentence(parts: string[], what: string): string {
  const text = parts.length < 2 ? parts.join("") : parts.slice(0, -1).join(", ") + " and " + parts.at(-1);
  return `${text[0]!.toUpperCase()}${text.slice(1)} ${what}`;
}

/** whoReads says who may read and write documents. quoted makes a name visible. */
export function whoReads(s: Security, quoted: (s: string) => string): string {
  if (s.members.names.length === 0 && s.members.roles.length === 0) {
    return "Everybody may read and write documents, even without an account (unless this server demands one for everything). "
      + "To close the database, name a member; the role _admin stands for server administrators.";
  }
  const all = [...people(s.members, quoted), ...people(s.admins, quoted)];
  if (all.length === 0) return "Only server administrators may read and write documents.";
  return sentence([...all, "server administrators"], "may read and write documents.");
}

/** whoAdministers says who may do more. */
export function whoAdministers(s: Security, quoted: (s: string) => string): string {
  const all = people(s.admins, quoted);
  const what = "may also change design documents and these permissions.";
  if (all.length === 0) return "Only server administrators " + what;
  return sentence([...all, "server administrators"], what);
}
