// The administrators of the server, which are part of the configuration.
import { useState } from "preact/hooks";
import { json, path, type Problem } from "./api";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, visible } from "./parts";
import type { User } from "./session";

const section = path("_node", "_local", "_config", "admins");

export function Admins({ user }: { user: User }) {
  const names = useLoad(async (signal) => Object.keys(await json<Record<string, string>>(section, { signal })).sort(), [user.name]);
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string>();
  return (
    <section class="group apart">
      <header class="bar">
        <h2>Server administrators</h2>
        <button type="button" onClick={() => setAdding(true)}>New administrator</button>
      </header>
      <p class="quiet">They may do everything, on all nodes.</p>
      {names.problem && <Refusal of={names.problem} again={names.again} />}
      <ul class="rows">
        {names.value?.map((name) => (
          <li key={name}>
            <Name of={name} /> {name === user.name && <span class="quiet">you</span>}
            <button type="button" class="danger" aria-label={`Remove ${visible(name)}`} onClick={() => setRemoving(name)}>Remove …</button>
          </li>
        ))}
      </ul>
      {adding && <Add known={names.value ?? []} close={() => setAdding(false)} done={names.again} />}
      {removing !== undefined && <Remove name={removing} self={removing === user.name} close={() => setRemoving(undefined)} done={names.again} />}
    </section>
  );
}

interface Props {
  close: () => void;
  done: () => void;
}

function Add({ known, close, done }: Props & { known: string[] }) {
  const [problem, setProblem] = useState<Problem>();
  const [name, setName] = useState("");
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const password = new FormData(e.currentTarget as HTMLFormElement).get("password");
    try {
      await json(`${section}/${path(name)}`, { method: "PUT", body: JSON.stringify(password) });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  const there = known.includes(name);
  return (
    <Dialog title="New administrator" close={close}>
      <form onSubmit={submit} autocomplete="off">
        <label>
          Name <input value={name} onInput={(e) => setName(e.currentTarget.value)} required spellcheck={false} autocapitalize="none" />
        </label>
        <label>Password <input name="password" type="password" required autocomplete="new-password" /></label>
        {there && <p class="note" role="status">There is an administrator of this name: the password is changed.</p>}
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="main">{there ? "Change password" : "Create"}</button>
        </div>
      </form>
    </Dialog>
  );
}

function Remove({ name, self, close, done }: Props & { name: string; self: boolean }) {
  const [problem, setProblem] = useState<Problem>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json(`${section}/${path(name)}`, { method: "DELETE" });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="Remove administrator" close={close}>
      <form onSubmit={submit}>
        <p>
          <b><Name of={name} /></b> is no server administrator any more{self ? ", and that is you: your session ends" : ""}.
        </p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger">Remove</button>
        </div>
      </form>
    </Dialog>
  );
}
