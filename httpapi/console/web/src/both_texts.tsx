// What somebody else has saved meanwhile, and which of both texts is to stay.
import { Name } from "./parts";
import { short } from "./documents";
import { revOf } from "./jsontext";
import type { OtherAccount } from "./same_account";

interface Theirs {
  text: string;
  deleting: boolean; // a person wanted to delete, not to save
  busy: boolean;
  take: () => void;
  save: () => void;
}

export function TheirsNote({ text, deleting, busy, take, save }: Theirs) {
  return (
    <div class="note" role="alert">
      <p>
        {deleting && "Nothing was deleted. "}Somebody else has saved revision <code>{short(revOf(text))}</code> meanwhile. Yours is on the left, theirs on the right.
      </p>
      <div class="buttons">
        <button type="button" disabled={busy} onClick={take}>Take theirs</button>
        <button type="button" class="main" disabled={busy} onClick={save}>Save mine over theirs</button>
      </div>
    </div>
  );
}

interface Other {
  of: OtherAccount;
  busy: boolean;
  again: () => void;
  anyway: () => void;
}

/** OtherNote says that the session is another account's by now. */
export function OtherNote({ of, busy, again, anyway }: Other) {
  return (
    <div class="note" role="alert">
      <p>Not saved. {of.reason}</p>
      <div class="buttons">
        <button type="button" disabled={busy} onClick={again}>Try again</button>
        <button type="button" disabled={busy} onClick={anyway}>Save as <Name of={of.now} /></button>
      </div>
    </div>
  );
}
