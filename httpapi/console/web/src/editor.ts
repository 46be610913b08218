// The editor, for JSON when no other language is given. It stands in a shadow root: there its styles need no exception from the
// Content-Security-Policy of the page.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, linter } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, Transaction, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { EditorHandle } from "./editorbox";

export interface EditorOptions {
  label: string;
  text: string;
  readOnly: boolean;
  focus: boolean;
  language?: Extension;
  onChange: (text: string) => void;
  onSave: () => void;
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-name)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-value)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.regexp], color: "var(--code-value)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--quiet)" },
  { tag: tags.invalid, color: "var(--danger)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--paper)", color: "var(--ink)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line-active)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--border)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--raised)", color: "var(--quiet)", border: "none" },
});

/**
 * typeOver replaces what is selected by what is typed. Chromium would keep the colors of what was there
 * by an attribute, which the Content-Security-Policy forbids.
 */
const typeOver = EditorView.domEventHandlers({
  beforeinput: (e, view) => {
    const { from, to, empty } = view.state.selection.main;
    if (e.inputType !== "insertText" || !e.data || e.isComposing || empty || view.state.selection.ranges.length > 1) return false;
    const text = e.data;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((f) => f(view, from, to, text, insert))) view.dispatch(insert());
    e.preventDefault();
    return true;
  },
});

/** tellAfter is how long after the last key the view is told, in milliseconds: large texts cost time. */
const tellAfter = 300;

/** mostChecked is how many characters a text has that is checked while it is typed. */
const mostChecked = 1_000_000;

export function open(host: HTMLElement, o: EditorOptions): EditorHandle {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  let timer: number | undefined;
  const tell = () => {
    clearTimeout(timer);
    timer = undefined;
    o.onChange(view.state.doc.toString());
  };
  const editable = [
    history(),
    typeOver,
    closeBrackets(),
    indentOnInput(),
    lintGutter(),
    o.language ? [] : linter((v) => (v.state.doc.length === 0 || v.state.doc.length > mostChecked ? [] : jsonParseLinter()(v)), { delay: 500 }),
    keymap.of([
      { key: "Mod-s", run: () => (tell(), o.onSave(), true) },
      ...closeBracketsKeymap, ...historyKeymap, ...lintKeymap,
    ]),
    EditorView.updateListener.of((u) => {
      if (!u.docChanged) return;
      clearTimeout(timer);
      timer = setTimeout(tell, tellAfter);
    }),
  ];
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: o.text,
      extensions: [
        lineNumbers(), foldGutter(), highlightSpecialChars(), drawSelection(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(),
        o.language ?? json(), syntaxHighlighting(colors), theme, EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": o.label, tabindex: "0" }),
        o.readOnly ? EditorState.readOnly.of(true) : editable,
        keymap.of([...searchKeymap, ...foldKeymap, ...defaultKeymap]),
      ],
    }),
  });
  const flush = () => {
    if (timer !== undefined) tell();
  };
  addEventListener("pagehide", flush);
  if (o.focus) view.focus();
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => {
      view.dispatch({ changes: difference(view.state.doc.toString(), text), annotations: Transaction.addToHistory.of(true) });
      tell();
    },
    close: () => {
      removeEventListener("pagehide", flush);
      flush();
      view.destroy();
    },
  };
}

/** difference is the change of one text to another: what they have in common stays, and the cursor in it. */
function difference(from: string, to: string): { from: number; to: number; insert: string } {
  const shorter = Math.min(from.length, to.length);
  let head = 0;
  while (head < shorter && from[head] === to[head]) head++;
  let tail = 0;
  while (tail < shorter - head && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail++;
  return { from: head, to: from.length - tail, insert: to.slice(head, to.length - tail) };
}
