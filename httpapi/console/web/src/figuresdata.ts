// Figures of the nodes over the last hour: what is asked for, and the samples that are kept.
import { json, path, Problem } from "./api";
import { each, type Membership, type System } from "./clusterdata";
import type { Task } from "./taskrows";

/** Figure is one that is drawn. */
export interface Figure {
  name: string;
  unit: string;
}

export const figures: Figure[] = [
  { name: "Requests", unit: "per s" },
  { name: "Latency, half of the requests", unit: "ms" },
  { name: "Latency, 99 of 100 requests", unit: "ms" },
  { name: "Errors of the server (5xx)", unit: "per s" },
  { name: "Refused requests (4xx)", unit: "per s" },
  { name: "Documents read", unit: "per s" },
  { name: "Documents written", unit: "per s" },
  { name: "Read, disk and network", unit: "MB/s" },
  { name: "Written, disk and network", unit: "MB/s" },
  { name: "Memory", unit: "MB" },
  { name: "Space left on the disk", unit: "GB" },
  { name: "Compactions and index builds", unit: "at work" },
  { name: "Replications, and copies that catch up", unit: "at work" },
];

export type Values = (number | null)[]; // in the order of figures

export interface Sample {
  at: number; // seconds since 1970
  nodes: Record<string, Values>;
}

/** Counters are numbers that only grow, of which the difference is shown. */
interface Counters {
  at: number;
  counts: number[];
}

interface Leaf<V = number> {
  value: V;
}

interface Stats {
  httpd: { requests: Leaf };
  httpd_status_codes: Record<string, Leaf>;
  database_reads: Leaf;
  document_writes: Leaf;
  request_time: Leaf<{ percentile: [number, number][] }>;
}

export const mostNodes = 8;
const every = 5;
const kept = 3600 / every; // samples of an hour
const mostStored = 500_000; // characters

/** percentile takes one of a distribution; 50 and 99 are what is asked for. */
function percentile(s: Stats, of: number): number {
  return s.request_time.value.percentile.find(([p]) => p === of)?.[1] ?? 0;
}

/** statuses adds up counts of answers whose status begins with a digit. */
function statuses(s: Stats, digit: string): number {
  return Object.entries(s.httpd_status_codes).reduce((n, [code, leaf]) => n + (code.startsWith(digit) ? leaf.value : 0), 0);
}

/** History keeps the samples of an hour at most. */
export class History {
  samples: Sample[] = [];
  #before = new Map<string, Counters>();

  /** add asks all nodes and keeps what they say; a node that does not answer has a gap. */
  async add(signal: AbortSignal): Promise<{ away: string[]; more: number }> {
    const members = await json<Membership>("_membership", { signal });
    const nodes = members.cluster_nodes.slice(0, mostNodes);
    const here = nodes.filter((n) => members.all_nodes.includes(n));
    const [stats, systems, tasks] = await Promise.all([
      each(here, (n) => json<Stats>(path("_node", n, "_stats", "couchdb"), { signal }), signal),
      each(here, (n) => json<System & { io_input: number; io_output: number }>(path("_node", n, "_system"), { signal }), signal),
      json<Task[]>("_active_tasks", { signal }),
    ]);
    const at = Date.now() / 1000;
    const last = this.samples.at(-1);
    if (last && at - last.at > every * 4) this.samples.push({ at: last.at + every, nodes: {} }); // a gap is not drawn over
    const sample: Sample = { at, nodes: {} };
    const away: string[] = [];
    for (const node of nodes) {
      const s = stats.get(node);
      const y = systems.get(node);
      if (!s || !y || s instanceof Problem || y instanceof Problem) {
        away.push(node);
        this.#before.delete(node);
        continue;
      }
      const own = (types: string[]) => tasks.filter((t) => t.node === node && types.includes(t.type)).length;
      const rates = this.#rates(node, at, [
        s.httpd.requests.value, statuses(s, "5"), statuses(s, "4"), s.database_reads.value, s.document_writes.value, y.io_input / 1e6, y.io_output / 1e6,
      ]);
      const [requests, errors, refused, reads, writes, input, output] = rates as [number, number, number, number, number, number, number];
      const memory = Object.values(y.memory).reduce((a, b) => a + b, 0) / 1e6;
      sample.nodes[node] = [
        requests, percentile(s, 50), percentile(s, 99), errors, refused, reads, writes, input, output, memory, y.disk?.size ? y.disk.free / 1e9 : null,
        own(["database_compaction", "view_compaction", "indexer", "search_indexer"]), own(["replication", "shard_sync"]),
      ].map((v) => (v === null ? null : Math.round(v * 1000) / 1000));
    }
    this.samples.push(sample);
    this.samples.splice(0, this.samples.length - kept);
    return { away, more: members.cluster_nodes.length - nodes.length };
  }

  /** rates are differences to the last time, per second; null where there was none, or the node has begun anew. */
  #rates(node: string, at: number, counts: number[]): Values {
    const before = this.#before.get(node);
    this.#before.set(node, { at, counts });
    if (!before || at - before.at > every * 6) return counts.map(() => null);
    return counts.map((n, i) => (n < before.counts[i]! ? null : (n - before.counts[i]!) / (at - before.at)));
  }

  nodes(): string[] {
    return [...new Set(this.samples.flatMap((s) => Object.keys(s.nodes)))].sort().slice(0, mostNodes);
  }

  /** columns are times, and a line for each node, of one figure. */
  columns(figure: number, nodes: string[]): [number[], ...Values[]] {
    return [this.samples.map((s) => s.at), ...nodes.map((n) => this.samples.map((s) => s.nodes[n]?.[figure] ?? null))];
  }

  /** store returns the newest samples as text of a limited length. */
  store(): string {
    for (let from = 0; ; from += Math.ceil((this.samples.length - from) / 2)) {
      const text = JSON.stringify(this.samples.slice(from));
      if (text.length <= mostStored) return text;
    }
  }

  /** restore takes what store has returned, but for what is older than an hour or of another version of the console. */
  restore(text: string): void {
    try {
      const since = Date.now() / 1000 - 3600;
      this.samples = (JSON.parse(text) as Sample[]).filter((s) => s.at > since && Object.values(s.nodes).every((v) => v.length === figures.length)).slice(-kept);
    } catch {
      this.samples = [];
    }
  }
}

/** valueWords says a value in the space that there is. */
export function valueWords(v: number | null | undefined): string {
  if (v === null || v === undefined) return "–";
  return v >= 99.5 || Number.isInteger(v) ? String(Math.round(v)) : v.toPrecision(2);
}
