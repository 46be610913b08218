// Which fields are columns of a table.
import { useState } from "preact/hooks";
import { Name, count } from "./parts";

/** offered is how many fields are offered at once, and mostColumns how many a table has: each cell of it costs time. */
const offered = 100;
const mostColumns = 30;

interface Props {
  names: string[]; // of all fields on the page
  shown: string[];
  byHand: boolean;
  choose: (columns: string[] | undefined) => void;
}

export function ChooseColumns({ names, shown, byHand, choose }: Props) {
  const [part, setPart] = useState("");
  const [open, setOpen] = useState(false);
  const all = [...new Set([...shown, ...names])]; // chosen ones may be of another page
  const matching = all.filter((n) => n.toLowerCase().includes(part.toLowerCase()));
  const toggle = (name: string, on: boolean) => choose(on ? [...shown, name] : shown.filter((n) => n !== name));
  return (
    <details class="columns" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{count(shown.length)} of {count(all.length)} {all.length === 1 ? "field" : "fields"}</summary>
      {open && (
        <>
          <div class="bar">
            <input type="search" aria-label="Fields whose names contain" placeholder="name contains …" value={part} spellcheck={false} onInput={(e) => setPart(e.currentTarget.value)} />
            <button type="button" disabled={!byHand} onClick={() => choose(undefined)}>The most frequent</button>
            <button type="button" disabled={shown.length === 0} onClick={() => choose([])}>None</button>
          </div>
          <div class="choices" role="group" aria-label="Fields">
            {matching.slice(0, offered).map((name) => (
              <label key={name} class="check">
                <input
                  type="checkbox"
                  checked={shown.includes(name)}
                  disabled={shown.length >= mostColumns && !shown.includes(name)}
                  onChange={(e) => toggle(name, e.currentTarget.checked)}
                />
                <Name of={name.slice(0, 200)} />
              </label>
            ))}
          </div>
          {matching.length > offered && <p class="quiet">{count(matching.length - offered)} more: narrow them down by a part of their names.</p>}
          {shown.length >= mostColumns && <p class="quiet">A table has {mostColumns} columns at most.</p>}
        </>
      )}
    </details>
  );
}
