// What the cluster view knows of the nodes, the rebalance and the jobs, and how it asks.
import { json, path, Problem, query } from "./api";
import { asProblem } from "./load";

/** Membership is GET /_membership. */
export interface Membership {
  all_nodes: string[]; // those that can be reached
  cluster_nodes: string[];
  upgrade?: { waits_for: string[] };
}

export interface System {
  uptime: number; // seconds
  memory: Record<string, number>; // bytes
  run_queue: number;
  internal_replication_jobs: number;
  disk?: { free: number; size: number } | null; // bytes; null: the file system does not tell, none: an older program
  metadata: { leader: string; voters: string[] };
}

/** SetupState is GET /_cluster_setup. */
export type SetupState = "cluster_disabled" | "cluster_enabled" | "cluster_finished" | "single_node_disabled" | "single_node_enabled";

/** Sum counts copies. */
export interface Sum {
  copies: number;
  bytes: number;
}

export interface Move {
  db: string;
  range: string;
  from: string;
  to: string;
  bytes: number;
  reason?: string;
  state?: string;
  step?: string;
  why?: string;
}

export interface Left {
  db?: string;
  range?: string;
  node?: string;
  reason: string;
  why: string;
  bytes: number;
}

export interface Plan {
  total_moves: number;
  total_left: number;
  bytes: number;
  nodes: { node: string; zone?: string; draining?: boolean; removed?: boolean; before: number; after: number }[];
  away?: string[];
  left?: Left[];
  moves?: Move[];
}

/** Rebalance is GET /_cluster/rebalance. */
export interface Rebalance {
  state: string; // none, running, stopped, …
  reason?: string;
  planned?: Sum;
  moved?: Sum;
  failed?: Sum;
  running: Move[];
  refused?: string;
  failures?: Move[];
  left?: ({ why: string } & Sum)[];
}

export interface Job {
  id: string;
  type: string;
  job_state: string;
  split_state: string;
  source: string;
  node: string;
  target_node?: string;
  target: string[];
  state_info: { reason?: string };
  start_time: string;
  update_time: string;
}

export interface Drain {
  node: string;
  draining: boolean;
  drained: boolean;
  copies: number;
  total_moves?: number;
  bytes?: number;
  left?: Left[];
}

/** Live is what changes from second to second. */
export interface Live {
  members: Membership;
  systems: Map<string, System | Problem>; // of nodes that can be reached
  rebalance?: Rebalance; // none: a node of its own
  jobs: Job[];
  stopped?: string; // why no jobs run, if all are stopped
}

/** each asks nodes side by side; one that fails is told of beside the others. */
export async function each<T>(nodes: string[], ask: (node: string) => Promise<T>, signal: AbortSignal): Promise<Map<string, T | Problem>> {
  const answers = await Promise.all(nodes.map((n) => ask(n).catch((e: unknown) => {
    if (signal.aborted) throw e;
    return asProblem(e);
  })));
  return new Map(nodes.map((n, i) => [n, answers[i]!]));
}

/** unless returns undefined for answers with a status: a node of its own has no rebalance. */
async function unless<T>(status: number[], answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (e) {
    if (e instanceof Problem && status.includes(e.status)) return undefined;
    throw e;
  }
}

export const alone = [400, 501];

export async function loadLive(signal: AbortSignal): Promise<Live> {
  const members = await json<Membership>("_membership", { signal });
  const here = members.cluster_nodes.filter((n) => members.all_nodes.includes(n));
  const [systems, rebalance, jobs, summary] = await Promise.all([
    each(here, (n) => json<System>(path("_node", n, "_system"), { signal }), signal),
    unless(alone, json<Rebalance>("_cluster/rebalance", { signal })),
    unless(alone, json<{ jobs: Job[] }>("_reshard/jobs", { signal })),
    unless(alone, json<{ state: string; state_reason: string | null }>("_reshard", { signal })),
  ]);
  return {
    members, systems, rebalance, jobs: jobs?.jobs ?? [],
    stopped: summary?.state === "stopped" ? (summary.state_reason ?? "stopped") : undefined,
  };
}

/** Places is what takes longer to find out, and changes slowly. */
export interface Places {
  setup: SetupState;
  zones: Map<string, string>;
  versions: Map<string, string>;
  drains: Map<string, Drain>;
  bytes: Map<string, number>;
  removed: string[]; // no members any more, that have copies still
  lost: { node: string; shard: string; state: "lost" | "joining" }[];
}

export async function loadPlaces(signal: AbortSignal): Promise<Places> {
  const members = await json<Membership>("_membership", { signal });
  const here = members.cluster_nodes.filter((n) => members.all_nodes.includes(n));
  const [setup, docs, plan, versions, shards, drains] = await Promise.all([
    json<{ state: SetupState }>("_cluster_setup", { signal }),
    json<{ rows: { id: string; doc: { zone?: string } }[] }>("_node/_local/_nodes/_all_docs?include_docs=true", { signal }),
    unless(alone, json<Plan>("_cluster/rebalance" + query({ limit: 0 }), { method: "POST", body: '{"dry_run":true}', signal })),
    each(here, (n) => json<{ divan: { version: string } }>(path("_node", n, "_versions"), { signal }), signal),
    each(here, (n) => json<{ lost: string[]; joining: string[] }>(path("_node", n, "_lost_shards"), { signal }), signal),
    each(members.cluster_nodes, (n) => json<Drain>(path("_node", n, "_drain"), { signal }), signal),
  ]);
  const known = <T, R>(of: Map<string, T | Problem>, f: (value: T) => R) =>
    new Map([...of].flatMap(([n, v]): [string, R][] => (v instanceof Problem ? [] : [[n, f(v)]])));
  const zones = new Map(docs.rows.map((r) => [r.id, r.doc.zone ?? ""]));
  for (const n of plan?.nodes ?? []) if (n.zone) zones.set(n.node, n.zone);
  return {
    setup: setup.state, zones, versions: known(versions, (v) => v.divan.version), drains: known(drains, (d) => d),
    bytes: new Map(plan?.nodes.filter((n) => !plan.away?.includes(n.node)).map((n) => [n.node, n.before])),
    removed: plan?.nodes.filter((n) => n.removed).map((n) => n.node) ?? [],
    lost: [...known(shards, (s) => s)].flatMap(([node, s]) => [
      ...s.lost.map((shard) => ({ node, shard, state: "lost" as const })),
      ...s.joining.map((shard) => ({ node, shard, state: "joining" as const })),
    ]),
  };
}
