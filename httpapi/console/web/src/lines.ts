// The lines of an answer as they come. What is held is one line, and of a long one its start.

export interface Line {
  text: string;
  cut: boolean; // it is longer than what may be held
}

/** lines reads the body of an answer. Lines of more than longest characters are cut there. */
export async function* lines(answer: Response, longest: number): AsyncGenerator<Line> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  let cut = false;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      let from = 0;
      for (let end = part.value.indexOf("\n"); end >= 0; end = part.value.indexOf("\n", from)) {
        const text = held + part.value.slice(from, Math.min(end, from + longest + 1));
        yield { text: text.slice(0, longest), cut: cut || text.length > longest };
        held = "";
        cut = false;
        from = end + 1;
      }
      const rest = held + part.value.slice(from, from + longest + 1);
      cut ||= rest.length > longest;
      held = rest.slice(0, longest);
    }
    if (held !== "") yield { text: held, cut };
  } finally {
    await reader.cancel().catch(() => {}); // it may have broken off already
  }
}
