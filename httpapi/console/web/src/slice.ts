// Long work in slices, between which the page answers.

/** sliceLength is how long work goes on without a pause, in milliseconds. */
const sliceLength = 25;

export class Slice {
  private end = performance.now() + sliceLength;
  constructor(private readonly signal?: AbortSignal) {}

  /** over reports whether it is time for a pause. */
  over(): boolean {
    return performance.now() > this.end;
  }

  /** pause lets the page answer when it is time. It throws when the work is not wanted any more. */
  async pause(): Promise<void> {
    if (!this.over()) return;
    await new Promise((go) => setTimeout(go));
    this.signal?.throwIfAborted();
    this.end = performance.now() + sliceLength;
  }
}
