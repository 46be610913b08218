// A form for a new replication: it becomes a document in _replicator.
import { useState } from "preact/hooks";
import { documentPath, json, path, root, Problem } from "./api";
import { draftOf, dropDraft, keepDraft } from "./draft";
import { asProblem } from "./load";
import { Refusal, Title } from "./parts";
import { documentOf, Mistake } from "./replicationform";
import { go, link, type Place } from "./route";
import type { User } from "./session";

type Fields = Record<string, string | undefined>;

/** fieldsOf is what a draft keeps: all but the passwords, which may be in addresses, too. */
function fieldsOf(form: HTMLFormElement): Fields {
  const fields = [...new FormData(form)].filter(([name]) => !name.endsWith("password"));
  return Object.fromEntries(fields.map(([name, value]) => [name, String(value).replace(/(\/\/)[^/@]*(:[^/]*)?@/g, "$1")]));
}

export function Replicate({ place, user }: { place: Place; user: User }) {
  const draft = { owner: user.name ?? "", db: "", id: "replication" };
  const [before] = useState(() => JSON.parse(draftOf(draft) ?? "{}") as Fields);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    const text = (name: string) => String(fields.get(name) ?? "");
    const side = (name: string) => ({ where: text(name), user: text(name + "-user"), password: text(name + "-password") });
    setBusy(true);
    setProblem(undefined);
    try {
      const doc = documentOf({
        id: text("id"), source: side("source"), target: side("target"),
        createTarget: fields.has("create"), continuous: fields.has("continuous"),
        filter: text("filter").trim(), parameters: text("parameters"), selector: text("selector"), docIDs: text("ids"),
      }, root.href);
      const body = JSON.stringify(doc);
      if (text("id") !== "") await json(documentPath("_replicator", text("id")), { method: "PUT", body });
      else await json(path("_replicator"), { method: "POST", body, writes: true });
      dropDraft(draft);
      go(link(["replications"]));
    } catch (e) {
      setProblem(e instanceof Mistake ? new Problem(0, "", e.message) : asProblem(e));
      setBusy(false);
    }
  };
  return (
    <main class="form">
      <p class="crumbs"><a href={link(["replications"])}>Replications</a></p>
      <Title text="New replication">New replication</Title>
      <form onSubmit={submit} onInput={(e) => keepDraft(draft, JSON.stringify(fieldsOf(e.currentTarget)))} autocomplete="off">
        <div class="sides">
          <SideFields name="source" title="Source" where={place.params.get("source") ?? undefined} before={before} />
          <SideFields name="target" title="Target" where={place.params.get("target") ?? undefined} before={before} />
        </div>
        <p class="quiet">
          A name stands for a database at the address that this console has, <code>{root.href}</code>. Replications do not use your session:
          where a database is not open to all, they need an account.
        </p>
        <label class="check"><input name="create" type="checkbox" defaultChecked={before.create !== undefined} /> Create the target if it does not exist</label>
        <label class="check"><input name="continuous" type="checkbox" defaultChecked={before.continuous !== undefined} /> Continuous: go on with what is written later</label>
        <details open={["filter", "parameters", "selector", "ids", "id"].some((name) => before[name])}>
          <summary>Which documents, and more</summary>
          <p class="quiet">One of filter, selector and ids at most; with none, all documents.</p>
          <label>Filter function <input name="filter" defaultValue={before.filter} placeholder="design document/filter" spellcheck={false} /></label>
          <label>Parameters of the filter, a JSON object <textarea name="parameters" defaultValue={before.parameters} rows={2} spellcheck={false} /></label>
          <label>Selector, a JSON object <textarea name="selector" defaultValue={before.selector} rows={4} placeholder={'{"type": "frog"}'} spellcheck={false} /></label>
          <label>Ids, one in a line <textarea name="ids" defaultValue={before.ids} rows={4} spellcheck={false} /></label>
          <label>Id of the document that asks for the replication <input name="id" defaultValue={before.id} placeholder="made up" spellcheck={false} autocapitalize="none" /></label>
        </details>
        <p class="quiet">It becomes a document in the database <code>_replicator</code>. Passwords are kept in it as they are: who may read that database can see them.</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <a class="button" href={link(["replications"])}>Back</a>
          <button class="main" disabled={busy}>Start replication</button>
        </div>
      </form>
    </main>
  );
}

function SideFields({ name, title, where, before }: { name: string; title: string; where?: string; before: Fields }) {
  return (
    <fieldset>
      <legend>{title}</legend>
      <label>Database, its name or URL <input name={name} defaultValue={where ?? before[name]} required spellcheck={false} autocapitalize="none" aria-label={`${title}: database, its name or URL`} /></label>
      <label>Account <input name={name + "-user"} defaultValue={before[name + "-user"]} placeholder="none" spellcheck={false} autocapitalize="none" autocomplete="off" aria-label={`${title}: account`} /></label>
      <label>Password <input name={name + "-password"} type="password" autocomplete="new-password" aria-label={`${title}: password`} /></label>
    </fieldset>
  );
}
