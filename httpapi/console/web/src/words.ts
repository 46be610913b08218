// What several views say in the same words: times, shards, nodes.

/** ago says how long ago something was, in seconds since 1970. */
export function ago(then: number, now = Date.now() / 1000): string {
  return `${duration(Math.max(now - then, 0))} ago`;
}

/** duration says so many seconds as people do: the two largest units at most. */
export function duration(seconds: number): string {
  const units: [string, number][] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(units.findIndex(([, n]) => seconds >= n), 0);
  if (seconds < 1) return "0 s";
  const [name, size] = units[first]!;
  const whole = Math.floor(seconds / size);
  const second = units[first + 1];
  const rest = second ? Math.floor((seconds - whole * size) / second[1]) : 0;
  return rest > 0 && whole < 10 ? `${whole} ${name} ${rest} ${second![0]}` : `${whole} ${name}`;
}

/** when says a time that the server has told as text. */
export function when(iso: string | null | undefined): string {
  const at = iso ? Date.parse(iso) : NaN;
  return Number.isNaN(at) ? "" : ago(at / 1000);
}

export interface Shard {
  db: string;
  range: string;
}

/** shardOf takes the name of a shard, or of a copy of one, apart. */
export function shardOf(name: string): Shard | undefined {
  const [, range, db] = /^shards\/([0-9a-f]{8}-[0-9a-f]{8})\/(.+)\.\d+$/s.exec(name) ?? [];
  return range === undefined ? undefined : { range, db: db! };
}

/** plural says a number with its noun. */
export function plural(n: number, one: string, more = one + "s"): string {
  return `${new Intl.NumberFormat("en").format(n)} ${n === 1 ? one : more}`;
}
