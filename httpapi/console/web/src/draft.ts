// Texts that are not saved yet outlive a reload of the page, in the storage of its tab. They belong
// to the account that wrote them, and go when it logs out.

/** Draft names a text: whose it is, and of which document; of a new one without an id. */
export interface Draft {
  owner: string;
  db: string;
  id?: string;
}

function prefix(owner: string): string {
  return `draft:${encodeURIComponent(owner)}:`;
}

function key(of: Draft): string {
  return prefix(of.owner) + JSON.stringify([of.db, of.id ?? null]);
}

export function draftOf(of: Draft): string | undefined {
  try {
    return sessionStorage.getItem(key(of)) ?? undefined;
  } catch {
    return undefined;
  }
}

/** keepDraft reports whether the draft is kept: there may be no space, or no permission. */
export function keepDraft(of: Draft, text: string): boolean {
  try {
    sessionStorage.setItem(key(of), text);
    return true;
  } catch {
    dropDraft(of); // an older one would be taken for the last
    return false;
  }
}

export function dropDraft(of: Draft): void {
  try {
    sessionStorage.removeItem(key(of));
  } catch {
    // then there is none
  }
}

/** dropDrafts drops all of an account. */
export function dropDrafts(owner: string): void {
  try {
    for (const k of Object.keys(sessionStorage)) {
      if (k.startsWith(prefix(owner))) sessionStorage.removeItem(k);
    }
  } catch {
    // then there are none
  }
}
