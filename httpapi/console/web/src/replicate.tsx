// A form for a new replication: it becomes a document in _replicator.
import { useState } from "preact/hooks";
import { documentPath, json, path, root, Problem } from "./api";
import { asProblem } from "./load";
import { Refusal, Title } from "./parts";
import { documentOf, Mistake } from "./replicationform";
import { go, link, type Place } from "./route";

export function Replicate({ place }: { place: Place }) {
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
      else await json(path("_replicator"), { method: "POST", body });
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
      <form onSubmit={submit} autocomplete="off">
        <div class="sides">
          <SideFields name="source" title="Source" where={place.params.get("source") ?? ""} />
          <SideFields name="target" title="Target" where={place.params.get("target") ?? ""} />
        </div>
        <p class="quiet">
          A name stands for a database at the address that this console has, <code>{root.href}</code>. Replications do not use your session:
          where a database is not open to all, they need an account.
        </p>
        <label class="check"><input name="create" type="checkbox" /> Create the target if it does not exist</label>
        <label class="check"><input name="continuous" type="checkbox" /> Continuous: go on with what is written later</label>
        <details>
          <summary>Which documents, and more</summary>
          <p class="quiet">One of filter, selector and ids at most; with none, all documents.</p>
          <label>Filter function <input name="filter" placeholder="design document/filter" spellcheck={false} /></label>
          <label>Parameters of the filter, a JSON object <textarea name="parameters" rows={2} spellcheck={false} /></label>
          <label>Selector, a JSON object <textarea name="selector" rows={4} placeholder={'{"type": "frog"}'} spellcheck={false} /></label>
          <label>Ids, one in a line <textarea name="ids" rows={4} spellcheck={false} /></label>
          <label>Id of the document that asks for the replication <input name="id" placeholder="made up" spellcheck={false} autocapitalize="none" /></label>
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

function SideFields({ name, title, where }: { name: string; title: string; where: string }) {
  return (
    <fieldset>
      <legend>{title}</legend>
      <label>Database, its name or URL <input name={name} defaultValue={where} required spellcheck={false} autocapitalize="none" aria-label={`${title}: database, its name or URL`} /></label>
      <label>Account <input name={name + "-user"} placeholder="none" spellcheck={false} autocapitalize="none" autocomplete="off" aria-label={`${title}: account`} /></label>
      <label>Password <input name={name + "-password"} type="password" autocomplete="new-password" aria-label={`${title}: password`} /></label>
    </fieldset>
  );
}
