// Small parts that several views are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Problem } from "./api";

/** Name shows a name that a user has chosen: its direction of writing ends with it. */
export function Name({ of }: { of: string }) {
  return <bdi class="name" title={of.length > 40 ? visible(of.slice(0, 1000)) : undefined}>{visible(of)}</bdi>;
}

/** visible shows characters that are not seen, and would make two names look the same. */
export function visible(s: string): string {
  return s.replace(/[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu, (c) => {
    const code = c.codePointAt(0)!.toString(16).padStart(4, "0");
    return code.length > 4 ? `\\u{${code}}` : `\\u${code}`;
  });
}

/** Refusal tells what the server has said. */
export function Refusal({ of, again }: { of: Problem; again?: () => void }) {
  return (
    <div class="refusal" role="alert">
      <p>
        <b>{visible(of.reason || of.error)}</b> {of.status > 0 && <span class="quiet">{of.status} {visible(of.error)}</span>}
      </p>
      {again && <button type="button" onClick={again}>Try again</button>}
    </div>
  );
}

/** Title is the heading of a view. It has the focus when the view appears, so that a screen reader tells where one is. */
export function Title({ text, children }: { text: string; children?: ComponentChildren }) {
  const self = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${visible(text).slice(0, 200)} · Divan`;
    if (document.activeElement === document.body || document.activeElement === null) self.current?.focus();
  }, [text]);
  return <h1 ref={self} tabIndex={-1}>{children ?? <Name of={text} />}</h1>;
}

/** Dialog is shown above everything, and closed by Escape. */
export function Dialog({ title, close, children }: { title: string; close?: () => void; children: ComponentChildren }) {
  const self = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = self.current!;
    dialog.showModal();
    return () => dialog.close(); // gives the focus back
  }, []);
  return (
    <dialog
      ref={self}
      aria-label={title}
      onCancel={(e) => {
        e.preventDefault();
        close?.();
      }}
    >
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

/** bytes says a size as people do. */
export function bytes(n: number): string {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return `${i > 0 && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

const numbers = new Intl.NumberFormat("en");

/** count says a number with separators. */
export function count(n: number): string {
  return numbers.format(n);
}
