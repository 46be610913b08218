// Where one can go: the views of the server, and those of one database.
import { link, type Place } from "./route";
import type { User } from "./session";

interface Target {
  text: string;
  kind?: string; // the first segment of the address; none: the databases
  admin?: boolean; // for server administrators
}

const ofServer: Target[] = [
  { text: "Databases" },
  { text: "Replications", kind: "replications" },
  { text: "Tasks", kind: "tasks", admin: true },
  { text: "Users", kind: "users", admin: true },
  { text: "Configuration", kind: "configuration", admin: true },
  { text: "Cluster", kind: "cluster", admin: true },
  { text: "Figures", kind: "figures", admin: true },
];

const ofDatabase: Target[] = [
  { text: "Documents", kind: "db" },
  { text: "Views", kind: "designs" },
  { text: "Query", kind: "mango" },
  { text: "Changes", kind: "changes" },
  { text: "Permissions", kind: "security" },
  { text: "Shards", kind: "shards" },
];

/** ServerNavigation leads to the views of the server. */
export function ServerNavigation({ place, user }: { place: Place; user?: User }) {
  const admin = user?.roles.includes("_admin");
  return (
    <nav aria-label="Console">
      {ofServer.filter((t) => admin || !t.admin).map((t) => (
        <a key={t.text} href={link(t.kind ? [t.kind] : [])} aria-current={place.segments[0] === t.kind ? "page" : undefined}>{t.text}</a>
      ))}
    </nav>
  );
}

/** DatabaseNavigation leads to the views of a database. kind is the one that is shown. */
export function DatabaseNavigation({ db, kind, user }: { db: string; kind: string; user: User }) {
  const admin = user.roles.includes("_admin");
  return (
    <nav class="tabs" aria-label="Database">
      {ofDatabase.filter((t) => admin || !t.admin).map((t) => (
        <a key={t.text} href={link([t.kind!, db])} aria-current={kind === t.kind ? "page" : undefined}>{t.text}</a>
      ))}
    </nav>
  );
}
