// Changes of one account.
import { useState } from "preact/hooks";
import { documentPath, json, query, text, Problem } from "./api";
import { withRev } from "./jsontext";
import { itemsOf, ListEditor, type List } from "./listeditor";
import { asProblem } from "./load";
import { set } from "./jsonparts";
import { Dialog, Name, Refusal } from "./parts";

export const idPrefix = "org.couchdb.user:";

export interface Account {
  name: string;
  rev: string;
  roles: string[];
}

export type Change = "new" | "password" | "roles" | "delete";

const titles: Record<Change, string> = { new: "New account", password: "Change password", roles: "Change roles", delete: "Delete account" };
const buttons: Record<Change, string> = { new: "Create", password: "Change password", roles: "Save roles", delete: "Delete" };

interface Given {
  name: string;
  password: string;
  roles: string[];
}

/** accountsDB returns the name of the database that accounts are in. */
export async function accountsDB(signal?: AbortSignal): Promise<string> {
  const { info } = await json<{ info: { authentication_db?: string } }>("_session", { signal });
  return info.authentication_db || "_users";
}

async function make(db: string, change: Change, of: Account | undefined, given: Given): Promise<void> {
  if ((await accountsDB()) !== db) { // a password would be stored as it is
    throw new Problem(0, "conflict", "Accounts are in another database now. Load this view again.");
  }
  const to = documentPath(db, idPrefix + (of?.name ?? given.name));
  if (of === undefined) {
    await json(to, { method: "PUT", body: JSON.stringify({ type: "user", ...given }) });
    return;
  }
  if (change === "delete") {
    await json(to + query({ rev: of.rev }), { method: "DELETE" });
    return;
  }
  // With the revision that was shown: what somebody else has saved since is a conflict.
  const stored = withRev(await text(to), of.rev);
  const body = change === "password" ? set(stored, ["password"], JSON.stringify(given.password)) : set(stored, ["roles"], JSON.stringify(given.roles));
  await json(to, { method: "PUT", body });
}

interface Props {
  db: string; // that accounts are in
  change: Change;
  of?: Account; // none: a new one
  close: () => void;
  done: () => void;
}

export function AccountDialog({ db, change, of, close, done }: Props) {
  const [roles, setRoles] = useState<List>({ items: of?.roles ?? [], typed: "" });
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await make(db, change, of, { name: String(fields.get("name") ?? ""), password: String(fields.get("password") ?? ""), roles: itemsOf(roles) });
      close();
      done();
    } catch (e) {
      const p = asProblem(e);
      setProblem(p);
      setBusy(false);
      if (p.status === 409) done(); // the newest is shown behind
    }
  };
  return (
    <Dialog title={titles[change]} close={close}>
      <form onSubmit={submit} autocomplete="off">
        {change === "new" && <label>Name <input name="name" required spellcheck={false} autocapitalize="none" /></label>}
        {of && change !== "delete" && <p>Of <b><Name of={of.name} /></b></p>}
        {(change === "new" || change === "password") && (
          <label>Password <input name="password" type="password" required autocomplete="new-password" /></label>
        )}
        {change === "password" && <p class="quiet">The old one does not count any more, nor do sessions that were begun with it.</p>}
        {(change === "new" || change === "roles") && <ListEditor label="Roles" empty="none" of={roles} change={setRoles} />}
        {of && change === "delete" && (
          <p>The account <b><Name of={of.name} /></b> is deleted: nobody can log in with it any more. Permissions that name it stay, and count for a new account of that name.</p>
        )}
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class={change === "delete" ? "danger" : "main"} disabled={busy}>{buttons[change]}</button>
        </div>
      </form>
    </Dialog>
  );
}
