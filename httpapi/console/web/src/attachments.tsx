// The attachments of a document: listed, looked at, added, deleted.
import { useState } from "preact/hooks";
import { address } from "./api";
import { attachmentPath, loadAttachments, type Attachment } from "./attachment";
import { DeleteAttachment } from "./delete_attachment";
import { DocumentNavigation } from "./document_navigation";
import { useLoad } from "./load";
import { Name, Refusal, Title, bytes, count, visible } from "./parts";
import { Preview } from "./preview";
import { link, type Place } from "./route";
import { Uploads } from "./uploads";
import type { User } from "./session";

/** step is how many attachments are listed more each time. */
const step = 200;

/** toView shows what is below a long list. */
function toView(self: HTMLElement | null): void {
  self?.scrollIntoView({ block: "start" });
}

export function View({ db, id, place, user }: { db: string; id: string; place: Place; user: User }) {
  const local = id.startsWith("_local/");
  const loaded = useLoad(async (signal) => (local ? undefined : loadAttachments(db, id, signal)), [db, id, user.name]);
  const [listed, setListed] = useState(step);
  const [deleting, setDeleting] = useState<string>();
  const [told, setTold] = useState("");
  const list = loaded.value?.list ?? [];
  const shown = place.params.get("show") ?? undefined;
  const preview = list.find((a) => a.name === shown);
  return (
    <main>
      <DocumentNavigation db={db} id={id} kind="attachments" attachments={list.length} />
      <header class="bar"><Title text={id} /></header>
      {local && <p class="quiet">Local documents have no attachments.</p>}
      {told && <p class="note" role="status">{told}</p>}
      {loaded.problem && <Refusal of={loaded.problem} again={loaded.again} />}
      {!loaded.value && loaded.loading && <p class="quiet" role="status">Loading …</p>}
      {loaded.value && list.length === 0 && <p class="quiet">No attachments yet.</p>}
      {list.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of attachments">
          <table aria-busy={loaded.loading}>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col" class="number">Size</th>
                <th scope="col">Digest</th>
                <th scope="col">Do</th>
              </tr>
            </thead>
            <tbody>
              {list.slice(0, listed).map((a) => (
                <tr key={a.name}>
                  <th scope="row"><a href={link(place.segments, { show: a.name })} aria-current={a.name === shown ? "true" : undefined}><Name of={a.name} /></a></th>
                  <td>{visible(a.type.slice(0, 100))}</td>
                  <td class="number" title={`${count(a.length)} bytes`}>{bytes(a.length)}</td>
                  <td><code title={a.digest}>{a.digest.slice(0, 12)}…</code></td>
                  <td class="does"><Download db={db} id={id} of={a} /> <button type="button" class="danger" onClick={() => setDeleting(a.name)}>Delete</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.length > listed && <p><button type="button" onClick={() => setListed(listed + step)}>Show more of {count(list.length)}</button></p>}
      {shown !== undefined && loaded.value && !preview && <p class="quiet">There is no attachment <Name of={shown} />.</p>}
      {preview && (
        <section class="looked-at" key={`${preview.name} ${preview.digest}`} aria-label="Preview" ref={toView}>
          <header class="bar">
            <h2><Name of={preview.name} /></h2>
            <a class="button" href={link(place.segments)}>Close</a>
          </header>
          <Preview db={db} id={id} of={preview} />
        </section>
      )}
      {loaded.value && <Uploads db={db} id={id} owner={user.name} known={loaded.value} stored={loaded.again} />}
      {deleting !== undefined && loaded.value && (
        <DeleteAttachment
          db={db}
          id={id}
          owner={user.name}
          name={deleting}
          rev={loaded.value.rev}
          close={() => setDeleting(undefined)}
          done={(what) => {
            setDeleting(undefined);
            setTold(what);
            loaded.again();
          }}
        />
      )}
    </main>
  );
}

/** Download is a link for names that have an address. */
function Download({ db, id, of }: { db: string; id: string; of: Attachment }) {
  if (of.name === "." || of.name === "..") return <span class="quiet">no address in a browser</span>;
  return <a class="button" href={address(attachmentPath(db, id, of.name))} download={of.name}>Download</a>;
}
