// A document that is too long to be edited without a question: its start.
import { useState } from "preact/hooks";
import { DeleteDocument } from "./delete_document";
import { EditorBox } from "./editorbox";
import { Title, bytes } from "./parts";
import type { Draft } from "./draft";

interface Props {
  of: Draft;
  id: string;
  rev: string;
  length: number; // characters of the whole text
  start: string;
  edit: () => void;
  reload: () => void;
}

export function LargeDocument({ of, id, rev, length, start, edit, reload }: Props) {
  const [deleting, setDeleting] = useState(false);
  const [told, setTold] = useState("");
  return (
    <>
      <header class="bar">
        <Title text={id} />
        <button type="button" class="danger" onClick={() => setDeleting(true)}>Delete</button>
        <button type="button" class="main" onClick={edit}>Edit all of it</button>
      </header>
      {told && <p class="note" role="status">{told}</p>}
      <p class="note">This is the start of {bytes(length)}, with long lines cut. With all of it in the editor, the page may not answer for some seconds.</p>
      <div class="editors"><EditorBox key={start} label="Start of the document" text={start} readOnly /></div>
      {deleting && (
        <DeleteDocument
          of={of}
          id={id}
          rev={rev}
          close={() => setDeleting(false)}
          changed={() => {
            setDeleting(false);
            setTold("Nothing was deleted: somebody has changed the document meanwhile. This is what it is now.");
            reload();
          }}
        />
      )}
    </>
  );
}
