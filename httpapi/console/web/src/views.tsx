// Which view an address names.
import { Databases } from "./databases";
import { lazy } from "./lazy";
import { Title } from "./parts";
import { link, type Place } from "./route";
import type { User } from "./session";

/** indexed are views of what is read by an index, or by the feed of changes: how many segments their addresses have. */
const indexed = {
  designs: { of: lazy(() => import("./designs").then((m) => m.View)), segments: [2] },
  view: { of: lazy(() => import("./view").then((m) => m.View)), segments: [2, 4] },
  search: { of: lazy(() => import("./search").then((m) => m.View)), segments: [4] },
  function: { of: lazy(() => import("./function").then((m) => m.View)), segments: [4, 5] },
  changes: { of: lazy(() => import("./changes").then((m) => m.View)), segments: [2] },
  mango: { of: lazy(() => import("./mango").then((m) => m.View)), segments: [2] },
};

const Document = lazy(() => import("./document").then((m) => m.Document));
const Documents = lazy(() => import("./documents").then((m) => m.Documents));
const Revisions = lazy(() => import("./revisions").then((m) => m.View));
const Attachments = lazy(() => import("./attachments").then((m) => m.View));

const Tasks = lazy(() => import("./tasks").then((m) => m.Tasks));
const Replications = lazy(() => import("./replications").then((m) => m.Replications));
const Replicate = lazy(() => import("./replicate").then((m) => m.Replicate));
const Permissions = lazy(() => import("./security").then((m) => m.Permissions));
const Users = lazy(() => import("./users").then((m) => m.Users));
const Configuration = lazy(() => import("./configuration").then((m) => m.Configuration));
const Cluster = lazy(() => import("./cluster").then((m) => m.Cluster));
const Figures = lazy(() => import("./figures").then((m) => m.Figures));
const Shards = lazy(() => import("./shards").then((m) => m.Shards));

export function View({ place, user }: { place: Place; user: User }) {
  const [kind, db, id, ...more] = place.segments;
  if (kind === undefined) return <Databases place={place} user={user} />;
  if (db === undefined) {
    if (kind === "tasks") return <Tasks />;
    if (kind === "replications") return <Replications place={place} />;
    if (kind === "users") return <Users place={place} user={user} />;
    if (kind === "configuration") return <Configuration place={place} user={user} />;
    if (kind === "figures") return <Figures user={user} />;
    if (kind === "cluster") return <Cluster />;
    if (kind === "replicate") return <Replicate place={place} user={user} />;
  }
  const reserved = id?.startsWith("_") && !/^_(design|local)\//.test(id);
  if (more.length === 0 && db !== undefined && !reserved) {
    if (kind === "db" && id === undefined) return <Documents key={JSON.stringify([kind, db])} db={db} place={place} user={user} />;
    if (kind === "security" && id === undefined) return <Permissions key={JSON.stringify([kind, db])} db={db} user={user} />;
    if (kind === "shards" && id === undefined) return <Shards key={JSON.stringify([kind, db])} db={db} user={user} />;
    if (kind === "doc" && id !== undefined) return <Document key={JSON.stringify([kind, db, id])} db={db} id={id} user={user} />;
    if (kind === "revisions" && id !== undefined) return <Revisions key={JSON.stringify([kind, db, id])} db={db} id={id} place={place} user={user} />;
    if (kind === "attachments" && id !== undefined) return <Attachments key={JSON.stringify([kind, db, id])} db={db} id={id} place={place} user={user} />;
    if (kind === "new" && id === undefined) return <Document key={JSON.stringify([kind, db])} db={db} user={user} />;
  }
  const found = Object.entries(indexed).find((e) => e[0] === kind)?.[1];
  if (found?.segments.includes(place.segments.length)) return <found.of key={JSON.stringify(place.segments)} place={place} user={user} />;
  return (
    <main>
      <Title text="Nothing here">Nothing here</Title>
      <p>This address names no view of the console. <a href={link([])}>Databases</a></p>
    </main>
  );
}
