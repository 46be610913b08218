// What is in an attachment, as far as a browser may show it.
import { useEffect, useState } from "preact/hooks";
import { address, ask } from "./api";
import { attachmentPath, type Attachment } from "./attachment";
import { JSONBox } from "./json_box";
import { useLoad } from "./load";
import { Refusal, bytes, visible } from "./parts";
import { baseType, previewKind } from "./preview_kind";

/** mostText is how many bytes of a text are shown; mostImage how many an image has that is loaded without a question. */
const mostText = 128 * 1024;
const mostImage = 16_000_000;

interface Props {
  db: string;
  id: string;
  of: Attachment;
}

export function Preview({ db, id, of }: Props) {
  const kind = previewKind(of.type);
  const source = address(attachmentPath(db, id, of.name));
  const label = `Preview of ${visible(of.name)}`;
  switch (kind) {
    case "image": return <Image db={db} id={id} of={of} />;
    case "audio": return <audio controls preload="metadata" src={source} aria-label={label} />;
    case "video": return <video controls preload="metadata" src={source} aria-label={label} />;
    case "json":
    case "text": return <Text db={db} id={id} of={of} json={kind === "json"} />;
    case "none": return <p class="quiet">What has this type is not shown here. It can be downloaded.</p>;
  }
}

function Image({ db, id, of }: Props) {
  const [wanted, setWanted] = useState(of.length <= mostImage);
  const image = useLoad(async (signal) => {
    if (!wanted) return undefined;
    const answer = await ask(attachmentPath(db, id, of.name), { signal });
    return new Blob([await answer.arrayBuffer()], { type: baseType(of.type) });
  }, [db, id, of.name, of.digest, wanted]);
  const [url, setURL] = useState<string>();
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    if (!image.value) return;
    const made = URL.createObjectURL(image.value);
    setURL(made);
    setBroken(false);
    return () => URL.revokeObjectURL(made);
  }, [image.value]);
  if (!wanted) return <button type="button" onClick={() => setWanted(true)}>Load {bytes(of.length)}</button>;
  if (image.problem) return <Refusal of={image.problem} again={image.again} />;
  if (broken) return <p class="quiet">The browser cannot show this image.</p>;
  if (!url) return <p class="quiet" role="status">Loading …</p>;
  return <img src={url} alt={`Preview of ${visible(of.name)}`} onError={() => setBroken(true)} />;
}

interface Start {
  text: string;
  all: boolean;
}

/** readStart reads no more of a text than is shown. */
async function readStart(answer: Response): Promise<Start> {
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let read = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const space = part.value.subarray(0, mostText - read);
    text += decoder.decode(space, { stream: true });
    read += part.value.length;
    if (read <= mostText) continue;
    await reader.cancel();
    return { text, all: false };
  }
  return { text: text + decoder.decode(), all: true };
}

function Text({ db, id, of, json }: Props & { json: boolean }) {
  const start = useLoad(
    async (signal) => readStart(await ask(attachmentPath(db, id, of.name), { signal })),
    [db, id, of.name, of.digest],
  );
  if (start.problem) return <Refusal of={start.problem} again={start.again} />;
  if (!start.value) return <p class="quiet" role="status">Loading …</p>;
  const { text, all } = start.value;
  return (
    <>
      {!all && <p class="note">These are the first {bytes(mostText)} of {bytes(of.length)}.</p>}
      {json
        ? <JSONBox label={`Preview of ${visible(of.name)}`} json={text} />
        : <pre class="scroll" tabIndex={0} role="region" aria-label={`Preview of ${visible(of.name)}`}>{visibleLines(text)}</pre>}
    </>
  );
}

/** visibleLines is visible, but for the ends of lines and tabulators. */
function visibleLines(text: string): string {
  return text.split(/(\r?\n|\t)/).map((part, i) => (i % 2 === 1 ? part : visible(part))).join("");
}
