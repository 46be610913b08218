// Setting up a cluster: this node is made ready, others are taken in, the system databases are made.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { json, type Problem } from "./api";
import type { SetupState } from "./clusterdata";
import { asProblem } from "./load";
import { plural } from "./words";
import { Dialog, Refusal, visible } from "./parts";

interface Props {
  state: SetupState;
  members: number; // of the cluster
  again: () => void;
}

const states: Record<SetupState, string> = {
  cluster_disabled: "not begun",
  cluster_enabled: "not finished",
  cluster_finished: "finished",
  single_node_disabled: "a node of its own, not finished",
  single_node_enabled: "a node of its own",
};

export function Setup({ state: told, members, again }: Props) {
  const [asked, setAsked] = useState<"enable" | "add" | "finish" | "single">();
  const close = () => setAsked(undefined);
  const state = members > 1 && told.startsWith("single_node") ? "cluster_finished" : told; // [cluster] n is 1
  const open = state === "cluster_enabled" || state === "cluster_finished";
  return (
    <section class="group">
      <header class="bar">
        <h2>Set-up <span class="quiet">{states[state] ?? visible(state)}</span></h2>
        {state === "cluster_disabled" && <button type="button" class="main" onClick={() => setAsked("enable")}>Make it a cluster …</button>}
        {open && <button type="button" onClick={() => setAsked("add")}>Add a node …</button>}
        {state === "cluster_enabled" && <button type="button" class="main" onClick={() => setAsked("finish")}>Finish …</button>}
        {(state === "cluster_disabled" || state === "single_node_disabled") && <button type="button" onClick={() => setAsked("single")}>Keep it a node of its own …</button>}
      </header>
      {state === "cluster_enabled" && <p class="quiet">Add the other nodes, then finish: that makes the system databases, with copies on several nodes.</p>}
      {state === "single_node_enabled" && (
        <p class="quiet">
          To make a cluster, start each node with <code>single_node = false</code> in the section <code>[couchdb]</code> of its configuration, and with a name by which the
          others reach it. Where <code>n</code> in <code>[cluster]</code> is 1, reset it.
        </p>
      )}
      {asked === "enable" && <Enable close={close} done={again} />}
      {asked === "add" && <AddNode close={close} done={again} />}
      {asked === "finish" && (
        <Step title="Finish the set-up" action="finish_cluster" button="Finish" close={close} done={again} body={() => ({})}>
          <p>The system databases are made, with copies on the nodes that are members now: {plural(members, "node")}.</p>
          {members < 3 && <p class="note">Nodes that are added later get no copies of them by themselves, only by a rebalance, and they keep their number.</p>}
        </Step>
      )}
      {asked === "single" && (
        <Step title="A node of its own" action="enable_single_node" button="Keep it so" close={close} done={again} body={() => ({})}>
          <p>Databases get one copy, on this node, and the system databases are made.</p>
          <p class="note">This sets <code>[cluster] n</code> to 1. To take others in later, reset it first.</p>
        </Step>
      )}
    </section>
  );
}

function Enable(props: { close: () => void; done: () => void }) {
  const body = (given: (name: string) => string) => ({ node_count: Number(given("nodes")), bind_address: given("address").trim() || undefined });
  return (
    <Step title="Make it a cluster" action="enable_cluster" button="Begin" body={body} {...props}>
      <label>
        Number of nodes, this one too <input name="nodes" type="number" min="2" required defaultValue="3" aria-describedby="nodes-rule" />
      </label>
      <p id="nodes-rule" class="quiet">New databases get as many copies, three at most.</p>
      <label>
        Address to listen on <input name="address" placeholder="as it is" spellcheck={false} autocapitalize="none" aria-describedby="address-rule" />
      </label>
      <p id="address-rule" class="quiet"><code>0.0.0.0</code> for all of this machine; from its next start on.</p>
    </Step>
  );
}

function AddNode(props: { close: () => void; done: () => void }) {
  const body = (given: (name: string) => string) => ({
    host: given("host").trim(), port: Number(given("port")) || undefined, username: given("username").trim(), password: given("password"),
  });
  return (
    <Step title="Add a node" action="add_node" button="Add" body={body} {...props}>
      <p>
        The node runs, is empty, and has <code>single_node = false</code>. It starts anew as a member, and takes over this cluster's administrators. That may take a minute.
      </p>
      <label>
        Host <input name="host" required spellcheck={false} autocapitalize="none" placeholder="10.0.0.2, or https://10.0.0.2" />
      </label>
      <label>
        Port <input name="port" type="number" min="1" max="65535" placeholder="5984, or 6984 for HTTPS" />
      </label>
      <label>
        Administrator there <input name="username" required autocomplete="off" spellcheck={false} autocapitalize="none" />
      </label>
      <label>
        Its password <input name="password" type="password" required autocomplete="new-password" />
      </label>
      <p class="quiet">The cluster's secret goes to that port: over a network that others can listen on use its HTTPS port.</p>
    </Step>
  );
}

interface StepProps {
  title: string;
  action: string;
  button: string;
  body: (given: (name: string) => string) => Record<string, unknown>;
  close: () => void;
  done: () => void;
  children: ComponentChildren;
}

/** Step asks for what an action needs, and does it. */
function Step({ title, action, button, body, close, done, children }: StepProps) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    setBusy(true);
    setProblem(undefined);
    try {
      await json("_cluster_setup", { method: "POST", body: JSON.stringify({ action, ...body((name) => String(fields.get(name) ?? "")) }), writes: true });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
      done(); // some of it may be done
    }
  };
  return (
    <Dialog title={title} close={busy ? undefined : close}>
      <form onSubmit={submit}>
        {children}
        {problem && <Refusal of={problem} />}
        {busy && <p class="quiet" role="status">This is being done …</p>}
        <div class="buttons">
          <button type="button" disabled={busy} onClick={close}>Cancel</button>
          <button class="main" disabled={busy}>{button}</button>
        </div>
      </form>
    </Dialog>
  );
}
