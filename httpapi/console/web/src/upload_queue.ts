// Files that become attachments, one after the other: each makes a revision that the next one is added to.
import { Problem, query } from "./api";
import { attachmentPath, loadAttachments, type Attachments } from "./attachment";
import { asProblem } from "./load";
import { sameAccount } from "./same_account";
import { upload } from "./upload";

/** Item is a file in the queue. asked: an attachment has its name, and a person has to say what to do. */
export interface Item {
  file: File;
  state: "waiting" | "asked" | "sending" | "done" | "accepted" | "failed";
  replaces: boolean; // a person has said so
  sent: number; // bytes
  problem?: Problem;
}

export interface Target {
  db: string;
  id: string;
  owner: string | null;
}

export class UploadQueue {
  items: Item[] = [];
  private current?: AbortController;
  private running = false;
  private closed = false;

  /** changed is called whenever there is something else to show, stored with what the document has then. */
  constructor(
    private readonly to: Target,
    private known: Attachments,
    private readonly changed: () => void,
    private readonly stored: () => void,
  ) {}

  /** know takes over what the document has now, unless a file is on its way. */
  know(now: Attachments): void {
    if (!this.running) this.known = now;
  }

  add(files: File[]): void {
    this.items.push(...files.map((file): Item => ({ file, state: "waiting", replaces: false, sent: 0 })));
    void this.run();
  }

  replace(item: Item): void {
    item.replaces = true;
    item.state = "waiting";
    void this.run();
  }

  remove(item: Item): void {
    if (item.state === "sending") this.current?.abort();
    this.items = this.items.filter((i) => i !== item);
    this.changed();
    void this.run(); // others may have waited for it
  }

  /** again tries a file once more, on top of what the document has now. */
  async again(item: Item): Promise<void> {
    if (this.running) return;
    item.problem = undefined;
    try {
      this.known = await loadAttachments(this.to.db, this.to.id);
      item.state = "waiting";
    } catch (e) {
      item.problem = asProblem(e);
    }
    await this.run();
  }

  /** close cancels what is on its way. */
  close(): void {
    this.closed = true;
    this.current?.abort();
  }

  get sending(): boolean {
    return this.running;
  }

  private async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    let stored = false;
    for (let item = this.next(); item; item = this.next()) {
      if (!item.replaces && this.known.list.some((a) => a.name === item!.file.name)) item.state = "asked";
      else if (await this.send(item)) stored = true;
      else if (item.problem?.status === 409) break; // the others would be refused too
    }
    this.running = false;
    if (this.closed) return;
    this.changed();
    if (stored) this.stored();
  }

  private next(): Item | undefined {
    return this.closed ? undefined : this.items.find((i) => i.state === "waiting");
  }

  private async send(item: Item): Promise<boolean> {
    const { db, id, owner } = this.to;
    const call = new AbortController();
    this.current = call;
    item.state = "sending";
    item.sent = 0;
    this.changed();
    try {
      await sameAccount(owner);
      call.signal.throwIfAborted();
      const path = attachmentPath(db, id, item.file.name) + query({ rev: this.known.rev });
      const { rev, accepted } = await upload(path, item.file, call.signal, (sent) => {
        item.sent = sent;
        this.changed();
      });
      const { name, size, type } = item.file;
      this.known = { rev, list: [...this.known.list.filter((a) => a.name !== name), { name, type, length: size, digest: "" }] };
      item.state = accepted ? "accepted" : "done";
      return true;
    } catch (e) {
      item.problem = call.signal.aborted ? new Problem(0, "cancelled", "It was cancelled.") : asProblem(e);
      item.state = "failed";
      return false;
    }
  }
}
