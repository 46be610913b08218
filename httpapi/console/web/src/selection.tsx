// Documents that are selected, also on other pages than the one that is shown.
import { useState } from "preact/hooks";
import { visible } from "./parts";

/** mostSelected bounds what one request deletes. */
export const mostSelected = 1000;

export interface Selectable {
  id: string;
  value: { rev: string };
}

export interface Selection {
  revs: Map<string, string>; // by the ids
  set: (rows: Selectable[], on: boolean) => void;
  clear: () => void;
}

export function useSelection(): Selection {
  const [revs, setRevs] = useState(new Map<string, string>());
  const set = (rows: Selectable[], on: boolean) => {
    setRevs((before) => {
      const now = new Map(before);
      for (const { id, value } of rows) {
        if (!on) now.delete(id);
        else if (now.size < mostSelected || now.has(id)) now.set(id, value.rev);
      }
      return now;
    });
  };
  return { revs, set, clear: () => setRevs(new Map()) };
}

export function SelectOne({ row, selection }: { row: Selectable; selection: Selection }) {
  return (
    <input
      type="checkbox"
      aria-label={`Select ${visible(row.id.slice(0, 200))}`}
      checked={selection.revs.has(row.id)}
      onChange={(e) => selection.set([row], e.currentTarget.checked)}
    />
  );
}

/** SelectAll selects the documents of a page. */
export function SelectAll({ rows, selection }: { rows: Selectable[]; selection: Selection }) {
  const selected = rows.filter((r) => selection.revs.has(r.id)).length;
  return (
    <input
      type="checkbox"
      aria-label="Select all on this page"
      checked={rows.length > 0 && selected === rows.length}
      indeterminate={selected > 0 && selected < rows.length}
      onChange={(e) => selection.set(rows, e.currentTarget.checked)}
    />
  );
}
