// Figures of the nodes as they go, over the last hour at most.
import { useEffect, useRef, useState } from "preact/hooks";
import { open, type ChartHandle } from "./chart";
import { draftOf, keepDraft } from "./draft";
import { figures, History, valueWords, type Figure } from "./figuresdata";
import { Name, Refusal, Title, visible } from "./parts";
import { usePolled } from "./poll";
import type { User } from "./session";
import { plural } from "./words";

const histories = new Map<string, History>(); // by account, for as long as the page is there

/** place is where samples outlive a reload: with the drafts of the account, which go when it logs out. */
function place(owner: string) {
  return { owner, db: "", id: "figures" };
}

/** historyOf returns the samples of an account: those in memory, or those from before a reload. */
function historyOf(owner: string): History {
  let h = histories.get(owner);
  if (!h) {
    h = new History();
    h.restore(draftOf(place(owner)) ?? "[]");
    histories.clear(); // of other accounts nothing is kept
    histories.set(owner, h);
  }
  return h;
}

export function Figures({ user }: { user: User }) {
  const owner = user.name ?? "";
  const [history] = useState(() => historyOf(owner));
  const asked = usePolled((signal) => history.add(signal), 5000, [history]);
  useEffect(() => {
    const keep = () => keepDraft(place(owner), history.store());
    addEventListener("pagehide", keep);
    return () => removeEventListener("pagehide", keep);
  }, [history, owner]);
  const nodes = history.nodes();
  const samples = history.samples;
  return (
    <main class="wide">
      <header class="bar">
        <Title text="Figures">Figures</Title>
        {samples.length > 0 && <span class="quiet">every 5 s while this page is seen, the last hour</span>}
      </header>
      {asked.problem && <Refusal of={asked.problem} again={asked.again} />}
      {samples.length === 0 && asked.loading && <p class="quiet" role="status">Loading …</p>}
      {asked.value && asked.value.away.length > 0 && <p class="note">{asked.value.away.map(visible).join(", ")} {asked.value.away.length === 1 ? "does" : "do"} not answer.</p>}
      {asked.value && asked.value.more > 0 && <p class="note">{plural(asked.value.more, "more node")} of the cluster are not shown.</p>}
      {samples.length > 0 && (
        <>
          <ul class="legend">{nodes.map((n, i) => <li key={n}><span class={`swatch series-${i % 8}`} /> <Name of={n} /></li>)}</ul>
          <div class="charts">
            {figures.map((f, i) => <Chart key={f.name + nodes.join()} of={f} index={i} history={history} nodes={nodes} at={samples.at(-1)!.at} />)}
          </div>
          <h2>Newest values</h2>
          <div class="scroll" tabIndex={0} role="region" aria-label="Newest values">
            <table>
              <thead>
                <tr>
                  <th scope="col">Figure</th>
                  <th scope="col">Unit</th>
                  {nodes.map((n) => <th key={n} scope="col" class="number"><Name of={n} /></th>)}
                </tr>
              </thead>
              <tbody>
                {figures.map((f, i) => (
                  <tr key={f.name}>
                    <th scope="row">{f.name}</th>
                    <td>{f.unit}</td>
                    {nodes.map((n) => <td key={n} class="number">{valueWords(samples.at(-1)?.nodes[n]?.[i])}</td>)}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </main>
  );
}

interface Props {
  of: Figure;
  index: number;
  history: History;
  nodes: string[];
  at: number; // of the newest sample
}

function Chart({ of, index, history, nodes, at }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<ChartHandle | undefined>(undefined);
  const [pointed, setPointed] = useState<(number | null)[]>();
  useEffect(() => {
    chart.current = open(host.current!, nodes, history.columns(index, nodes), setPointed);
    return () => chart.current?.close();
  }, []);
  useEffect(() => chart.current?.set(history.columns(index, nodes)), [at]);
  const newest = nodes.map((n) => history.samples.at(-1)?.nodes[n]?.[index]);
  return (
    <figure>
      <figcaption>
        <b>{of.name}</b> <span class="quiet">{of.unit}</span>
        <span class="values">{(pointed ?? newest).map(valueWords).join(" · ")}</span>
      </figcaption>
      <div ref={host} role="img" aria-label={`${of.name}, ${of.unit}, over the last hour; the table below has the newest values`} />
    </figure>
  );
}
