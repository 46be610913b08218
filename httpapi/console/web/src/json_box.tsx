// A JSON text that is only looked at. Of a very long one the start is shown, and all of it on demand.
import { useMemo, useState } from "preact/hooks";
import { EditorBox } from "./editorbox";
import { startOf } from "./json_start";
import { layOut } from "./jsontext";
import { bytes } from "./parts";

export function JSONBox({ label, json }: { label: string; json: string }) {
  const start = useMemo(() => startOf(json), [json]);
  const [full, setFull] = useState<{ of: string; text: string }>();
  const all = full?.of === json ? full.text : undefined;
  return (
    <div class="json-box">
      {!start.whole && all === undefined && (
        <p class="note">
          This is the start of {bytes(json.length)}, with long lines cut.{" "}
          <button type="button" onClick={() => void layOut(json).then((text) => setFull({ of: json, text }))}>Show all</button>
        </p>
      )}
      <EditorBox key={all ?? start.text} label={label} text={all ?? start.text} readOnly />
    </div>
  );
}
