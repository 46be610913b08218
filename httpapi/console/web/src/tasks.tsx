// What the nodes are at work on.
import { json } from "./api";
import { Name, Refusal, Title, count, visible } from "./parts";
import { usePolled } from "./poll";
import { link } from "./route";
import { ageOf, byNode, doneOf, errorOf, kindOf, progressOf, subjectOf, type Task } from "./taskrows";

const mostShown = 200;

export function Tasks() {
  const tasks = usePolled((signal) => json<Task[]>("_active_tasks", { signal }), 3000, []);
  const all = tasks.value ?? [];
  return (
    <main>
      <header class="bar">
        <Title text="Active tasks">Active tasks</Title>
        {tasks.value && <span class="quiet">as of now, every 3 s</span>}
      </header>
      {tasks.problem && <Refusal of={tasks.problem} again={tasks.again} />}
      {!tasks.value && tasks.loading && <p class="quiet" role="status">Loading …</p>}
      {tasks.value && all.length === 0 && <p class="quiet">No node has anything to do.</p>}
      {all.length > mostShown && <p class="note">The first {mostShown} of {count(all.length)} tasks are shown.</p>}
      {byNode(all.slice(0, mostShown)).map(([node, own]) => (
        <section key={node} class="group">
          <h2><Name of={node} /> <span class="quiet">{own.length}</span></h2>
          <div class="scroll" tabIndex={0} role="region" aria-label={`Tasks of ${visible(node)}`}>
            <table>
              <thead>
                <tr>
                  <th scope="col">Kind</th>
                  <th scope="col">Of</th>
                  <th scope="col">Progress</th>
                  <th scope="col">Done</th>
                  <th scope="col" class="number">For</th>
                </tr>
              </thead>
              <tbody>{own.map((t) => <Row key={t.pid + t.type} of={t} />)}</tbody>
            </table>
          </div>
        </section>
      ))}
    </main>
  );
}

function Row({ of }: { of: Task }) {
  const subject = subjectOf(of);
  const progress = progressOf(of);
  const error = errorOf(of);
  const label = `${kindOf(of)} ${visible(subject.db ?? subject.text)}`;
  return (
    <tr>
      <th scope="row">{kindOf(of)}</th>
      <td class="wraps">
        {subject.db !== undefined && <a href={link(["db", subject.db])}><Name of={subject.db} /></a>}{" "}
        <span class={subject.db !== undefined ? "quiet" : ""}><Name of={subject.text} /></span>
        {of.doc_id != null && of.database != null && (
          <> <a href={link(["doc", of.database, of.doc_id])}><Name of={of.doc_id} /></a></>
        )}
        {error && <p class="failed">{visible(error)}</p>}
      </td>
      <td>
        {progress === undefined ? <span class="quiet">{of.continuous ? "continuous" : "no end known"}</span> : (
          <span class="share"><progress max={100} value={progress} aria-label={label} /> {progress} %</span>
        )}
      </td>
      <td>{doneOf(of)}</td>
      <td class="number">{ageOf(of)}</td>
    </tr>
  );
}
