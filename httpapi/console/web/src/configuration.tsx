// The configuration of a node: each setting with its meaning, value and origin.
import { useState } from "preact/hooks";
import { json, path, type Problem } from "./api";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, Title, visible } from "./parts";
import { go, link, type Place } from "./route";
import { isChanged, layerWords, matching, sentence, type Setting } from "./settings";
import type { User } from "./session";

interface Loaded {
  nodes: string[];
  settings: Setting[];
}

async function load(node: string, signal: AbortSignal): Promise<Loaded> {
  const [members, { settings }] = await Promise.all([
    json<{ cluster_nodes: string[] }>("_membership", { signal }),
    json<{ settings: Setting[] }>(path("_node", node, "_settings"), { signal }),
  ]);
  return { nodes: members.cluster_nodes, settings };
}

export function Configuration({ place, user }: { place: Place; user: User }) {
  const node = place.params.get("node") ?? "_local";
  const wanted = place.params.get("find") ?? "";
  const changedOnly = place.params.get("changed") === "true";
  const all = useLoad((signal) => load(node, signal), [node, user.name]);
  const [changing, setChanging] = useState<Setting>();
  const [adding, setAdding] = useState(false);
  const [note, setNote] = useState("");
  const show = (params: Record<string, string | undefined>) => {
    const now = { node: node === "_local" ? undefined : node, find: wanted || undefined, changed: changedOnly ? "true" : undefined };
    history.replaceState(null, "", link(["configuration"], { ...now, ...params }));
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  const sections = matching(all.value?.settings ?? [], wanted, changedOnly);
  const done = (text: string) => {
    setNote(text);
    all.again();
  };
  return (
    <main>
      <header class="bar">
        <Title text="Configuration">Configuration</Title>
        {all.value && all.value.nodes.length > 1 && (
          <select aria-label="Node" value={node} onChange={(e) => go(link(["configuration"], { node: e.currentTarget.value }))}>
            <option value="_local">the node that answers</option>
            {all.value.nodes.map((n) => <option key={n} value={n}>{visible(n)}</option>)}
          </select>
        )}
        <input type="search" aria-label="Search settings" placeholder="key or meaning …" value={wanted} spellcheck={false} onInput={(e) => show({ find: e.currentTarget.value || undefined })} />
        <label class="check inline"><input type="checkbox" checked={changedOnly} onChange={(e) => show({ changed: e.currentTarget.checked ? "true" : undefined })} /> only what was set</label>
        <button type="button" onClick={() => setAdding(true)}>Other key …</button>
      </header>
      <p class="quiet" role="status">{note}</p>
      {all.problem && <Refusal of={all.problem} again={all.again} />}
      {!all.value && all.loading && <p class="quiet" role="status">Loading …</p>}
      {all.value && sections.length === 0 && <p class="quiet">No setting is found.</p>}
      {sections.map(([section, settings]) => (
        <section key={section} class="group">
          <h2><code>[{visible(section)}]</code></h2>
          <div class="scroll" tabIndex={0} role="region" aria-label={`Settings of ${visible(section)}`}>
            <table class="settings">
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Value</th>
                  <th scope="col">From</th>
                  <th scope="col"><span class="unseen">Actions</span></th>
                </tr>
              </thead>
              <tbody>{settings.map((s) => <Row key={s.key} of={s} change={() => setChanging(s)} />)}</tbody>
            </table>
          </div>
        </section>
      ))}
      {changing && <Change node={node} of={changing} close={() => setChanging(undefined)} done={done} />}
      {adding && <Change node={node} close={() => setAdding(false)} done={done} />}
    </main>
  );
}

function Row({ of, change }: { of: Setting; change: () => void }) {
  return (
    <tr>
      <th scope="row" class="wraps">
        <code><Name of={of.key} /></code>
        {of.meaning && <p class="quiet">{sentence(of.meaning)}</p>}
      </th>
      <td class="wraps">
        <Value of={of} />
        {of.default !== "" && of.value !== of.default && of.value !== null && <p class="quiet">default {of.default}</p>}
      </td>
      <td class={isChanged(of) ? "" : "quiet"}>{layerWords(of.layer)}{of.restart && <p class="quiet">read at the start</p>}</td>
      <td class="number actions">
        {of.changeable && <button type="button" aria-label={`Change ${visible(of.key)}`} onClick={change}>Change …</button>}
      </td>
    </tr>
  );
}

function Value({ of }: { of: Setting }) {
  if (of.sensitive) return <span class="quiet">{of.set ? "set, not shown" : "not set"}</span>;
  if (of.value !== null) return <code><Name of={of.value} /></code>;
  return <span class="quiet">{of.default || "not set"}</span>;
}

interface Props {
  node: string;
  of?: Setting; // none: a key that is not in the list
  close: () => void;
  done: (note: string) => void;
}

function Change({ node, of, close, done }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const send = async (form: HTMLFormElement, method: "PUT" | "DELETE") => {
    const fields = new FormData(form);
    const section = of?.section ?? String(fields.get("section"));
    const key = of?.key ?? String(fields.get("key"));
    setBusy(true);
    setProblem(undefined);
    try {
      const body = method === "PUT" ? JSON.stringify(fields.get("value")) : undefined;
      await json(path("_node", node, "_config", section, key), { method, body });
      close();
      done(`[${visible(section)}] ${visible(key)} is ${method === "PUT" ? "set" : "reset"}.${of?.restart ? " It counts after a restart of the node." : ""}`);
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    void send(e.currentTarget as HTMLFormElement, "PUT");
  };
  return (
    <Dialog title={of ? "Change setting" : "Set another key"} close={close}>
      <form onSubmit={submit} autocomplete="off">
        {of ? (
          <>
            <p><code>[{visible(of.section)}]</code> <b><code><Name of={of.key} /></code></b></p>
            {of.meaning && <p class="quiet">{sentence(of.meaning)}</p>}
            {of.default && <p>Default: <code>{of.default}</code></p>}
          </>
        ) : (
          <>
            <label>Section <input name="section" required spellcheck={false} autocapitalize="none" /></label>
            <label>Key <input name="key" required spellcheck={false} autocapitalize="none" /></label>
          </>
        )}
        <label>
          Value {of?.sensitive
            ? <input name="value" type="password" autocomplete="off" required />
            : <input name="value" autocomplete="off" defaultValue={of?.value ?? ""} spellcheck={false} />}
        </label>
        <p class="quiet">
          {of?.shared ? "It holds for all nodes." : "It holds for this node only: set it alike on the others where they should not differ."}
          {of?.restart && " It counts after a restart of the node."}
          {" It is stronger than files, environment and command line."}
        </p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          {of?.set && <button type="button" class="danger" disabled={busy} onClick={(e) => void send(e.currentTarget.form!, "DELETE")}>Reset to default</button>}
          <button class="main" disabled={busy}>Set</button>
        </div>
      </form>
    </Dialog>
  );
}
