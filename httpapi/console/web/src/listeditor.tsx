// A list of names that a person adds to and takes from.
import { Name, visible } from "./parts";

/** List is what is in it, and what is typed and not added yet. */
export interface List {
  items: string[];
  typed: string;
}

/** itemsOf are the items, with what was typed last. */
export function itemsOf(l: List): string[] {
  return l.typed === "" || l.items.includes(l.typed) ? l.items : [...l.items, l.typed];
}

interface Props {
  label: string;
  of: List;
  change: (to: List) => void;
  empty: string; // said when there is none
}

export function ListEditor({ label, of, change, empty }: Props) {
  const add = () => change({ items: itemsOf(of), typed: "" });
  return (
    <div class="list" role="group" aria-label={label}>
      <b>{label.replace(/^.*: /, "")}</b>
      {of.items.length === 0 && <p class="quiet">{empty}</p>}
      <ul>
        {of.items.map((item) => (
          <li key={item}>
            <Name of={item} />
            <button type="button" class="remove" aria-label={`Remove ${visible(item)}`} onClick={() => change({ ...of, items: of.items.filter((i) => i !== item) })}>×</button>
          </li>
        ))}
      </ul>
      <div class="add">
        <input
          aria-label={`Add to ${label}`}
          value={of.typed}
          spellcheck={false}
          autocapitalize="none"
          onInput={(e) => change({ ...of, typed: e.currentTarget.value })}
          onKeyDown={(e) => {
            if (e.key !== "Enter") return;
            e.preventDefault();
            add();
          }}
        />
        <button type="button" disabled={of.typed === ""} onClick={add}>Add</button>
      </div>
    </div>
  );
}
