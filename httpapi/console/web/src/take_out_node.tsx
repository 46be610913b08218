// Taking a node out of the cluster for good.
import { useState } from "preact/hooks";
import { json, path, query, type Problem } from "./api";
import type { Drain } from "./clusterdata";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal } from "./parts";
import { plural } from "./words";

interface Props {
  node: string;
  away: boolean;
  close: () => void;
  done: () => void;
}

export function TakeOut({ node, away, close, done }: Props) {
  const to = path("_node", "_local", "_nodes", node);
  const member = useLoad(async (signal) => {
    const [document, drain, here] = await Promise.all([
      json<{ _rev: string }>(to, { signal }),
      json<Drain>(path("_node", node, "_drain"), { signal }),
      json<{ name: string }>(path("_node", "_local"), { signal }),
    ]);
    return { rev: document._rev, copies: drain.copies, here: here.name === node };
  }, [node]);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await json(to + query({ rev: member.value!.rev }), { method: "DELETE" });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
      member.again(); // it may have another revision, or copies again
    }
  };
  const { copies = 0, here = false } = member.value ?? {};
  return (
    <Dialog title="Take a node out" close={close}>
      <form onSubmit={submit}>
        <p><b><Name of={node} /></b> leaves the cluster for good: it comes back with an empty data directory only, as a new node.</p>
        {member.loading && !member.value && <p class="quiet" role="status">Loading …</p>}
        {here && <p class="note">This console is served by it, and ends with it: open the console of another node.</p>}
        {copies > 0 && (
          <p class="note">
            It has {plural(copies, "copy", "copies")}. A rebalance makes them anew on other nodes, from the copies there; what no other node has cannot be read any more.
          </p>
        )}
        {away
          ? <p>It is away. Make sure that its process has ended: it may show what is old to those who reach it.</p>
          : <p>Stop its process afterwards: it does not end by itself.</p>}
        <label>
          Its name, to be sure <input value={typed} onInput={(e) => setTyped(e.currentTarget.value)} spellcheck={false} autocapitalize="none" autocomplete="off" />
        </label>
        {member.problem && <Refusal of={member.problem} />}
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger" disabled={busy || !member.value || typed !== node}>Take out</button>
        </div>
      </form>
    </Dialog>
  );
}
