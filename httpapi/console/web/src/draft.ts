// Texts that are not saved yet outlive a reload of the page, in the storage of its tab.

function key(db: string, id: string | undefined): string {
  return "draft:" + JSON.stringify([db, id ?? null]);
}

export function draftOf(db: string, id: string | undefined): string | undefined {
  try {
    return sessionStorage.getItem(key(db, id)) ?? undefined;
  } catch {
    return undefined;
  }
}

/** keepDraft reports whether the draft is kept: there may be no room, or no permission. */
export function keepDraft(db: string, id: string | undefined, text: string): boolean {
  try {
    sessionStorage.setItem(key(db, id), text);
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(db: string, id: string | undefined): void {
  try {
    sessionStorage.removeItem(key(db, id));
  } catch {
    // then there is none
  }
}
