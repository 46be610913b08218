// The changes of a database, as they come.
import { useState } from "preact/hooks";
import { path, query, text } from "./api";
import { designsOf } from "./designdoc";
import { type Asked, type Change, askedOf, paramsOf } from "./feed";
import { useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Name, Refusal, Title, count, visible } from "./parts";
import { short } from "./documents";
import { go, link, type Place } from "./route";
import { type Feed, mostShown, useFeed } from "./usefeed";
import type { User } from "./session";

export function View({ place, user }: { place: Place; user: User }) {
  const db = place.segments[1]!;
  const asked = askedOf(place.params);
  return (
    <main>
      <DatabaseNavigation db={db} kind="changes" user={user} />
      <header class="bar">
        <Title text={`Changes of ${db}`}>Changes</Title>
        <span class="quiet">of <a href={link(["db", db])}><Name of={db} /></a></span>
      </header>
      <Form key={`form ${JSON.stringify(asked)}`} db={db} asked={asked} />
      <Changes key={JSON.stringify(asked)} db={db} asked={asked} />
    </main>
  );
}

const filters: [string, string][] = [
  ["", "none: all changes"],
  ["_doc_ids", "documents with these ids"],
  ["_selector", "documents that match a selector"],
  ["_design", "design documents"],
  ["_view", "documents that a view has rows of"],
  ["function", "a filter function"],
];

const values: Record<string, { label: string; placeholder: string; long: boolean }> = {
  _doc_ids: { label: "Ids, one on a line", placeholder: "", long: true },
  _selector: { label: "Selector", placeholder: '{"type": "frog"}', long: true },
  _view: { label: "View", placeholder: "design document/view", long: false },
  function: { label: "Filter function", placeholder: "design document/filter", long: false },
};

function Form({ db, asked }: { db: string; asked: Asked }) {
  const [filter, setFilter] = useState(asked.filter);
  const [start, setStart] = useState(asked.start);
  const named = filter === "_view" || filter === "function";
  const known = useLoad(async (signal) => (named ? designsOf(await text(path(db, "_all_docs") + query(designRange), { signal })) : []), [db, named]);
  const choices = (known.value ?? []).flatMap((d) => {
    const names = filter === "_view" ? (d.query ? [] : d.views.map((v) => v.name)) : (d.functions.find((f) => f.kind === "filters")?.names ?? []);
    return names.map((n) => `${d.name}/${n}`);
  });
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    const given = (name: string) => String(fields.get(name) ?? "").trim();
    go(link(["changes", db], paramsOf({ filter, value: given("value"), args: given("args"), start })));
  };
  const value = values[filter];
  return (
    <form class="selection" role="search" aria-label="Which changes" onSubmit={submit}>
      <label>
        From
        <select value={start ? "0" : ""} onChange={(e) => setStart(e.currentTarget.value === "0")}>
          <option value="">now on</option>
          <option value="0">the beginning</option>
        </select>
      </label>
      <label>
        Filter
        <select value={filter} onChange={(e) => setFilter(e.currentTarget.value)}>
          {filters.map(([of, text]) => <option key={of} value={of}>{text}</option>)}
        </select>
      </label>
      {value && (
        <label key={filter} class={value.long ? "wide" : undefined}>
          {value.label}
          {value.long
            ? <textarea name="value" rows={3} required placeholder={value.placeholder} defaultValue={filter === asked.filter ? asked.value : ""} spellcheck={false} />
            : <input name="value" required list="choices" placeholder={value.placeholder} defaultValue={filter === asked.filter ? asked.value : ""} spellcheck={false} autocapitalize="none" />}
        </label>
      )}
      {named && <datalist id="choices">{choices.map((c) => <option key={c} value={c} />)}</datalist>}
      {filter === "function" && <label>Parameters <input name="args" placeholder="a=1&b=2" defaultValue={asked.args} spellcheck={false} autocapitalize="none" /></label>}
      <button>Follow</button>
    </form>
  );
}

const designRange = { startkey: '"_design/"', endkey: '"_design0"', include_docs: true, limit: 100 };

function Changes({ db, asked }: { db: string; asked: Asked }) {
  const [paused, setPaused] = useState(false);
  const [turn, again] = useState(0);
  const feed = useFeed(db, asked, paused, turn);
  return (
    <>
      {feed.state === "refused" && feed.problem && <Refusal of={feed.problem} again={() => again((n) => n + 1)} />}
      {feed.state === "broken" && feed.problem && (
        <div class="note">
          <p>{visible(feed.problem.reason || feed.problem.error)} It is tried again in {feed.seconds} s, from the last change that was seen.</p>
          <div class="buttons"><button type="button" onClick={() => again((n) => n + 1)}>Try now</button></div>
        </div>
      )}
      <div class="bar">
        <span class={`quiet live ${feed.state}`} role="status">{told(feed, asked)}</span>
        <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? "Continue" : "Pause"}</button>
      </div>
      {feed.changes.length > 0 && <Table db={db} of={feed.changes} />}
      {feed.count > mostShown && <p class="quiet">The newest {mostShown} are shown.</p>}
    </>
  );
}

function told(feed: Feed, asked: Asked): string {
  const seen = `${count(feed.count)} ${feed.count === 1 ? "change" : "changes"}`;
  const states = { opening: "Connecting …", live: asked.filter ? "Live, filtered" : "Live", broken: "Not connected", refused: "Refused", paused: "Paused" };
  return `${states[feed.state]} · ${seen}`;
}

function Table({ db, of }: { db: string; of: Change[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Changes, the newest first">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">Sequence</th>
            <th scope="col">Document</th>
            <th scope="col">Revision</th>
            <th scope="col">Kind</th>
            <th scope="col">Seen</th>
          </tr>
        </thead>
        <tbody>
          {of.map((c) => (
            <tr key={c.n}>
              <td class="number" title={c.seq}>{c.seq.split("-")[0]}</td>
              <th scope="row">{c.deleted ? <Name of={c.id} /> : <a href={link(["doc", db, c.id])}><Name of={c.id} /></a>}</th>
              <td>{c.revs.map((r) => <code key={r} title={r}>{short(r)} </code>)}</td>
              <td>{c.deleted ? "deleted" : c.id.startsWith("_design/") ? "design document" : ""}</td>
              <td class="quiet">{c.at}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
