// The views of one document.
import { Name, count } from "./parts";
import { link } from "./route";

interface Props {
  db: string;
  id: string;
  kind: "doc" | "revisions" | "attachments";
  conflicts?: number; // none: not known here
  attachments?: number;
}

export function DocumentNavigation({ db, id, kind, conflicts, attachments }: Props) {
  const views = [
    { kind: "doc", text: "Text" },
    { kind: "revisions", text: conflicts ? `Revisions: ${count(conflicts)} ${conflicts === 1 ? "conflict" : "conflicts"}` : "Revisions" },
    { kind: "attachments", text: attachments ? `Attachments: ${count(attachments)}` : "Attachments" },
  ];
  return (
    <>
      <p class="crumbs"><a href={link(["db", db], { from: id })}><Name of={db} /></a></p>
      {!id.startsWith("_local/") && (
        <nav class="tabs" aria-label="Document">
          {views.map((v) => <a key={v.kind} href={link([v.kind, db, id])} aria-current={v.kind === kind ? "page" : undefined}>{v.text}</a>)}
        </nav>
      )}
    </>
  );
}
