// Who may do what with a database.
import { useState } from "preact/hooks";
import { json, path, text, Problem } from "./api";
import { itemsOf, ListEditor, type List } from "./listeditor";
import { asProblem, useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Refusal, Title, visible } from "./parts";
import { parseSecurity, whoAdministers, whoReads, withGroups, type Security } from "./securitywords";
import type { User } from "./session";

export function Permissions({ db, user }: { db: string; user: User }) {
  const stored = useLoad((signal) => text(path(db, "_security"), { signal }), [db, user.name]);
  return (
    <main>
      <DatabaseNavigation db={db} kind="security" user={user} />
      <Title text={db} />
      {stored.problem && <Refusal of={stored.problem} again={stored.again} />}
      {stored.value === undefined && stored.loading && <p class="quiet" role="status">Loading …</p>}
      {stored.value !== undefined && <Editing key={stored.value} db={db} stored={stored.value} again={stored.again} />}
    </main>
  );
}

type Part = "adminNames" | "adminRoles" | "memberNames" | "memberRoles";

function Editing({ db, stored, again }: { db: string; stored: string; again: () => void }) {
  const first = parseSecurity(stored);
  const listOf = (items: string[]): List => ({ items, typed: "" });
  const [lists, setLists] = useState<Record<Part, List>>({
    adminNames: listOf(first.admins.names), adminRoles: listOf(first.admins.roles),
    memberNames: listOf(first.members.names), memberRoles: listOf(first.members.roles),
  });
  const [problem, setProblem] = useState<Problem>();
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const now: Security = {
    admins: { names: itemsOf(lists.adminNames), roles: itemsOf(lists.adminRoles) },
    members: { names: itemsOf(lists.memberNames), roles: itemsOf(lists.memberRoles) },
    others: first.others,
  };
  const changed = JSON.stringify(now) !== JSON.stringify(first);
  const save = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const before = await text(path(db, "_security")); // there are no revisions to tell what others have saved
      if (before !== stored) throw new Problem(0, "conflict", "Somebody else has changed these permissions meanwhile. Reload the page to see them.");
      await json(path(db, "_security"), { method: "PUT", body: withGroups(stored, now.admins, now.members) });
      setNote("Saved.");
      again();
    } catch (e) {
      setProblem(asProblem(e));
    }
    setBusy(false);
  };
  const editor = (part: Part, label: string, empty: string) => (
    <ListEditor label={label} empty={empty} of={lists[part]} change={(to) => setLists((all) => ({ ...all, [part]: to }))} />
  );
  return (
    <form onSubmit={save}>
      <div class="note" role="status">
        {changed && <p><b>When saved:</b></p>}
        <p>{whoReads(now, visible)}</p>
        <p>{whoAdministers(now, visible)}</p>
      </div>
      <div class="sides">
        <fieldset>
          <legend>Members</legend>
          {editor("memberNames", "Members: accounts", "no account by name")}
          {editor("memberRoles", "Members: roles", "no role")}
        </fieldset>
        <fieldset>
          <legend>Administrators of the database</legend>
          {editor("adminNames", "Administrators: accounts", "no account by name")}
          {editor("adminRoles", "Administrators: roles", "no role")}
        </fieldset>
      </div>
      {first.others.length > 0 && <p class="quiet">The security object has more members, which stay: {first.others.map(visible).join(", ")}</p>}
      {problem && <Refusal of={problem} />}
      <div class="buttons">
        <span class="quiet" role="status">{busy ? "Saving …" : changed ? "Not saved" : note}</span>
        <button class="main" disabled={!changed || busy}>Save permissions</button>
      </div>
    </form>
  );
}
