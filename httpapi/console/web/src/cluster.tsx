// The cluster: its nodes, what moves between them, and jobs of resharding.
import { Setup } from "./cluster_setup";
import { loadLive, loadPlaces } from "./clusterdata";
import { Nodes } from "./nodes";
import { Name, Refusal, Title } from "./parts";
import { usePolled } from "./poll";
import { Rebalancing } from "./rebalance";
import { Jobs } from "./reshardjobs";
import { plural } from "./words";

const mostShown = 50;

export function Cluster() {
  const live = usePolled(loadLive, 5000, []);
  const places = usePolled(loadPlaces, 30_000, []); // plans, for which all nodes are asked
  const again = () => {
    live.again();
    places.again();
  };
  const away = live.value?.members.cluster_nodes.filter((n) => !live.value!.members.all_nodes.includes(n)) ?? [];
  const lost = places.value?.lost ?? [];
  return (
    <main class="wide">
      <header class="bar"><Title text="Cluster">Cluster</Title></header>
      {live.problem && <Refusal of={live.problem} again={live.again} />}
      {places.problem && places.problem.status !== live.problem?.status && <Refusal of={places.problem} again={places.again} />}
      {!live.value && live.loading && <p class="quiet" role="status">Loading …</p>}
      {away.length > 0 && <p class="note">{plural(away.length, "node is", "nodes are")} away.</p>}
      {lost.length > 0 && (
        <div class="note">
          <p>{plural(lost.length, "copy is", "copies are")} not as they should be.</p>
          <ul>
            {lost.slice(0, mostShown).map((l) => (
              <li key={l.node + l.shard}><Name of={l.shard} /> on <Name of={l.node} />: {l.state === "lost" ? "its files are gone" : "is being filled from other nodes"}</li>
            ))}
          </ul>
        </div>
      )}
      {live.value && (
        <>
          <Nodes live={live.value} places={places.value} again={again} />
          {places.value && <Setup state={places.value.setup} members={live.value.members.cluster_nodes.length} again={again} />}
          {live.value.rebalance && <Rebalancing of={live.value.rebalance} again={again} />}
          <Jobs of={live.value.jobs} stopped={live.value.stopped} again={again} />
        </>
      )}
    </main>
  );
}
