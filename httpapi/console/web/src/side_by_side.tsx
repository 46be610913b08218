// Two revisions of a document beside each other.
import { documentPath, query, text } from "./api";
import { short } from "./documents";
import { JSONBox } from "./json_box";
import { useLoad } from "./load";
import { membersOf } from "./jsonparts";
import { Name, Refusal } from "./parts";
import type { User } from "./session";

const mostNames = 20;

/** mostCompared is how many characters two texts have that are compared field by field. */
const mostCompared = 2_000_000;

export function SideBySide({ db, id, revs, user }: { db: string; id: string; revs: string[]; user: User }) {
  const texts = useLoad(
    async (signal) => ({ of: revs, texts: await Promise.all(revs.map((rev) => text(documentPath(db, id) + query({ rev }), { signal }))) }),
    [db, id, JSON.stringify(revs), user.name],
  );
  if (revs.length === 0) return <p class="quiet">Choose one or two leaves to see their texts.</p>;
  if (texts.problem) return <Refusal of={texts.problem} again={texts.again} />;
  if (texts.value?.of !== revs && JSON.stringify(texts.value?.of) !== JSON.stringify(revs)) return <p class="quiet" role="status">Loading …</p>;
  const shown = texts.value!.texts;
  const [left, right] = shown;
  return (
    <>
      {left !== undefined && right !== undefined && <Differences left={left} right={right} />}
      <div class={revs.length === 2 ? "editors two" : "editors"}>
        {revs.map((rev, i) => (
          <section key={rev} class="beside" aria-label={`Revision ${rev}`}>
            <h2><code title={rev}>{short(rev)}</code></h2>
            <JSONBox label={`Revision ${rev}`} json={shown[i]!} />
          </section>
        ))}
      </div>
    </>
  );
}

/** Differences names the fields that are not the same. */
function Differences({ left, right }: { left: string; right: string }) {
  if (left.length + right.length > mostCompared) return <p class="differences">They are too large to be compared field by field.</p>;
  const fields = (json: string) => new Map([...membersOf(json)].map(([name, value]) => [name, value]));
  const [l, r] = [fields(left), fields(right)];
  const names = [...new Set([...l.keys(), ...r.keys()])].filter((n) => n !== "_rev" && l.get(n) !== r.get(n));
  if (names.length === 0) return <p>Both have the same fields with the same values.</p>;
  return (
    <p class="differences">
      Different: {names.slice(0, mostNames).map((n, i) => <>{i > 0 && ", "}<Name key={n} of={n.slice(0, 200)} /></>)}
      {names.length > mostNames && ` and ${names.length - mostNames} more`}
    </p>
  );
}
