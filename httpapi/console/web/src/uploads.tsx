// Files that are dropped or chosen, and how far they are.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { Name, bytes, visible } from "./parts";
import { UploadQueue, type Item, type Target } from "./upload_queue";
import type { Attachments } from "./attachment";

interface Props extends Target {
  known: Attachments;
  stored: () => void;
}

export function Uploads({ db, id, owner, known, stored }: Props) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const [over, setOver] = useState(false); // a file is held above the page
  const [folders, setFolders] = useState(0);
  const queue = useRef<UploadQueue>(undefined);
  queue.current ??= new UploadQueue({ db, id, owner }, known, () => redraw(undefined), stored);
  const q = queue.current;
  useLayoutEffect(() => q.know(known), [known]);
  useEffect(() => () => q.close(), []);
  const add = (files: File[], left = 0) => {
    setFolders(left);
    q.add(files);
  };
  useLayoutEffect(() => { // before anything can be dropped
    // Anywhere on the page: a browser opens files that are dropped beside a target.
    const drag = (e: DragEvent) => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault();
      setOver(e.type === "dragover");
      if (e.type !== "drop") return;
      const items = [...e.dataTransfer.items].filter((i) => i.kind === "file");
      const files = items.filter((i) => !i.webkitGetAsEntry()?.isDirectory).map((i) => i.getAsFile()).filter((f) => f !== null);
      add(files, items.length - files.length);
    };
    const kinds = ["dragover", "dragleave", "drop"] as const;
    kinds.forEach((k) => addEventListener(k, drag));
    return () => kinds.forEach((k) => removeEventListener(k, drag));
  }, []);
  useLayoutEffect(() => {
    if (!q.sending) return;
    const stay = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [q.sending]);
  return (
    <section class="uploads" aria-label="Add attachments">
      <label class={over ? "drop over" : "drop"}>
        <span>Drop files here, or choose some:</span>
        <input
          type="file"
          multiple
          onChange={(e) => {
            add([...(e.currentTarget.files ?? [])]);
            e.currentTarget.value = "";
          }}
        />
      </label>
      {folders > 0 && <p class="note" role="status">Folders are left out: an attachment is one file.</p>}
      {q.sending && <p class="quiet">Leaving this view cancels what is on its way.</p>}
      {q.items.length > 0 && (
        <ul class="queue">
          {q.items.map((item, i) => <QueueItem key={i} item={item} queue={q} />)}
        </ul>
      )}
    </section>
  );
}

function QueueItem({ item, queue }: { item: Item; queue: UploadQueue }) {
  const { file, state, problem } = item;
  return (
    <li>
      <Name of={file.name} /> <span class="quiet">{bytes(file.size)}</span>
      {state === "sending" && <progress aria-label={`${visible(file.name)} is sent`} max={Math.max(file.size, 1)} value={item.sent} />}
      <span role="status">{says(state)}</span>
      {problem && <span class="failed" role="alert">{problem.status === 409 ? "Somebody has changed the document meanwhile. Try again to add the file to what it is now." : visible(problem.reason || problem.error)}</span>}
      {state === "asked" && <button type="button" onClick={() => queue.replace(item)}>Replace it</button>}
      {state === "failed" && <button type="button" disabled={queue.sending} onClick={() => void queue.again(item)}>Try again</button>}
      <button type="button" onClick={() => queue.remove(item)}>{state === "sending" ? "Cancel" : state === "done" || state === "accepted" || state === "failed" ? "Dismiss" : "Leave out"}</button>
    </li>
  );
}

function says(state: Item["state"]): string {
  switch (state) {
    case "waiting": return "waits";
    case "asked": return "An attachment of this name is there already.";
    case "done": return "stored";
    case "accepted": return "accepted, fewer copies than asked have it";
    default: return "";
  }
}
