// Documents as a table of their fields.
import { useMemo } from "preact/hooks";
import { ask, path } from "./api";
import { ChooseColumns } from "./choose_columns";
import { cellOf, chosenColumns, fieldNames, type Fields } from "./columns";
import { short } from "./documents";
import { lines } from "./lines";
import { useLoad } from "./load";
import { member, membersOf } from "./jsonparts";
import { Name, Refusal } from "./parts";
import { link, replace, type Place } from "./route";
import { Slice } from "./slice";
import { SelectAll, SelectOne, type Selection } from "./selection";
import type { Row } from "./documents";

const columnsAtFirst = 20;

/** longest is how many characters a row may have whose fields are shown; all those of a page take space. */
const longest = 256 * 1024;

/** load returns the fields of documents by their ids, without those that are too long, or gone. */
async function load(db: string, ids: string[], signal: AbortSignal): Promise<Map<string, Fields>> {
  const found = new Map<string, Fields>();
  if (ids.length === 0) return found;
  const answer = await ask(path(db, "_all_docs") + "?include_docs=true", { method: "POST", body: JSON.stringify({ keys: ids }), signal });
  const slice = new Slice(signal);
  for await (const line of lines(answer, longest)) { // each row is a line
    const id = line.cut ? undefined : member(line.text, "id");
    if (id !== undefined) found.set(JSON.parse(id) as string, fieldsOf(member(line.text, "doc") ?? "null"));
    await slice.pause();
  }
  return found;
}

function fieldsOf(document: string): Fields {
  const fields: Fields = new Map();
  for (const [name, value] of membersOf(document)) {
    if (name !== "_id" && name !== "_rev") fields.set(name, value);
  }
  return fields;
}

interface Props {
  db: string;
  place: Place;
  rows: Row[];
  busy: boolean;
  selection: Selection;
}

export function View({ db, place, rows, busy, selection }: Props) {
  const ids = rows.map((r) => r.id);
  const fields = useLoad((signal) => load(db, ids, signal), [db, JSON.stringify(rows)]);
  const names = useMemo(() => fieldNames(fields.value?.values() ?? []), [fields.value]);
  const chosen = chosenColumns(place.params.get("columns"));
  const shown = chosen ?? names.slice(0, columnsAtFirst);
  const choose = (columns: string[] | undefined) => {
    const params = Object.fromEntries(place.params);
    delete params.columns;
    replace(link(place.segments, columns ? { ...params, columns: JSON.stringify(columns) } : params));
  };
  return (
    <>
      {fields.problem && <Refusal of={fields.problem} again={fields.again} />}
      <ChooseColumns names={names} shown={shown} byHand={chosen !== undefined} choose={choose} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of documents">
        <table class="fields" aria-busy={busy || fields.loading}>
          <thead>
            <tr>
              <td class="select"><SelectAll rows={rows} selection={selection} /></td>
              <th scope="col">Id</th>
              {shown.map((name) => <th key={name} scope="col"><Name of={name.slice(0, 200)} /></th>)}
              <th scope="col">Revision</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <tr key={r.id}>
                <td class="select"><SelectOne row={r} selection={selection} /></td>
                <th scope="row"><a href={link(["doc", db, r.id])}><Name of={r.id} /></a></th>
                <Values of={fields.value?.get(r.id)} shown={shown} tooLong={fields.value !== undefined && !fields.loading && !fields.value.has(r.id)} />
                <td><code title={r.value.rev}>{short(r.value.rev)}</code></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Values({ of, shown, tooLong }: { of?: Fields; shown: string[]; tooLong: boolean }) {
  if (tooLong && shown.length > 0) return <td colSpan={shown.length} class="quiet">too large for a table, or gone</td>;
  return shown.map((name) => {
    const value = of?.get(name);
    if (value === undefined) return <td key={name} />;
    const cell = cellOf(value);
    return <td key={name} class={cell.number ? "number" : undefined} title={cell.title}>{cell.text}</td>;
  });
}
