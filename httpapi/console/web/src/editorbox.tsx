// The place of an editor in a view. The editor itself is loaded when the first one is shown.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** EditorHandle is there from the first rendering on: until the editor is loaded it keeps the text for it. */
export interface EditorHandle {
  text(): string;
  replace(text: string): void;
  close(): void;
}

interface Props {
  label: string;
  text: string; // what it begins with
  readOnly?: boolean;
  focus?: boolean; // false: not when it appears
  language?: "javascript"; // none: JSON
  handle?: { current: EditorHandle | undefined };
  onChange?: (text: string) => void;
  onSave?: () => void;
}

export function EditorBox(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const newest = useRef(props); // of its functions, the editor calls those of the last rendering
  newest.current = props;
  const [failed, setFailed] = useState(false);
  useLayoutEffect(() => {
    let editor: EditorHandle | undefined;
    let text = props.text; // until then
    let gone = false;
    if (props.handle) {
      props.handle.current = {
        text: () => editor?.text() ?? text,
        replace: (by) => {
          if (editor) return editor.replace(by);
          text = by;
          newest.current.onChange?.(by);
        },
        close: () => editor?.close(),
      };
    }
    const language = props.language && import("./javascript").then((m) => m.javascript);
    Promise.all([import("./editor"), language]).then(
      ([{ open }, language]) => {
        if (gone || !host.current) return;
        editor = open(host.current, {
          label: props.label,
          text,
          readOnly: props.readOnly ?? false,
          focus: props.focus ?? !props.readOnly,
          language,
          onChange: (text) => newest.current.onChange?.(text),
          onSave: () => newest.current.onSave?.(),
        });
      },
      () => setFailed(true),
    );
    return () => {
      gone = true;
      editor?.close(); // tells what was typed last
      if (props.handle) props.handle.current = undefined;
    };
  }, []);
  return (
    <div class="editor" ref={host}>
      {failed && <p class="refusal" role="alert">The editor could not be loaded. Reload the page.</p>}
    </div>
  );
}
