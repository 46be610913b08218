// Settings as _settings tells them: which are shown, and in what words.

export interface Setting {
  section: string;
  key: string;
  value: string | null; // null: not set, or not shown
  set: boolean;
  layer: string;
  default: string;
  meaning: string;
  sensitive: boolean;
  changeable: boolean;
  restart: boolean;
  shared: boolean;
}

const layers: Record<string, string> = {
  default: "default",
  generated: "made up by the node",
  file: "ini file",
  environment: "environment",
  flag: "command line",
  cluster: "set here, for all nodes",
  node: "set here, for this node",
  memory: "set here, until the next start",
};

export function layerWords(layer: string): string {
  return layers[layer] ?? layer;
}

/** isChanged tells settings apart that somebody has set. */
export function isChanged(s: Setting): boolean {
  return s.layer !== "default" && s.layer !== "generated";
}

/** matching returns settings that have all words in their section, key or meaning, by section. */
export function matching(all: Setting[], wanted: string, changedOnly: boolean): [string, Setting[]][] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const sections = new Map<string, Setting[]>();
  for (const s of all) {
    const text = `${s.section} ${s.key} ${s.meaning}`.toLowerCase();
    if (s.section === "admins" || (changedOnly && !isChanged(s)) || !words.every((w) => text.includes(w))) continue;
    sections.set(s.section, [...(sections.get(s.section) ?? []), s]);
  }
  return [...sections];
}

/** sentence begins a meaning with a capital, unless it begins with a name. */
export function sentence(meaning: string): string {
  return /^[a-z]+ /.test(meaning) ? meaning[0]!.toUpperCase() + meaning.slice(1) : meaning;
}
