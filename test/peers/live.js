// Keeps a PouchDB in sync with a remote database, live and with retries, and
// obeys lines on standard input:
//   write FIRST COUNT   puts documents "pouch-<n>" and edits "shared-<n>"
//   dump                prints [[id, [leaf revisions]], …] as one line
//   end
const PouchDB = require('pouchdb');
const [remote, dir] = process.argv.slice(2);
const db = new PouchDB(dir);
const sync = db.sync(remote, { live: true, retry: true, back_off_function: d => Math.min(500, (d || 50) * 2) });
sync.on('error', e => { console.error(e); process.exit(1); });

// A request that fails with its server is tried again by the sync; PouchDB also
// leaves a promise of it behind that nobody looks at.
process.on('unhandledRejection', e => { if (!e || !e.code) { console.error(e); process.exit(1); } });

async function write(first, count) {
  for (let n = first; n < first + count; n++) {
    await db.put({ _id: 'pouch-' + n, n, _attachments: { a: { content_type: 'application/octet-stream', data: Buffer.from('content ' + n).toString('base64') } } });
    const id = 'shared-' + (n % 20);
    let rev;
    try { rev = (await db.get(id))._rev; } catch (e) { if (e.status !== 404) throw e; }
    try { await db.put({ _id: id, _rev: rev, by: 'pouch', n }); } catch (e) { if (e.status !== 409) throw e; }
  }
}

async function dump() {
  const all = await db.changes({ since: 0, style: 'all_docs' });
  console.log(JSON.stringify(all.results.map(r => [r.id, r.changes.map(c => c.rev).sort()])));
}

const lines = require('readline').createInterface({ input: process.stdin });
(async () => {
  for await (const line of lines) {
    const [word, a, b] = line.split(' ');
    if (word === 'write') { await write(+a, +b); console.log('written'); }
    if (word === 'dump') await dump();
    if (word === 'end') process.exit(0);
  }
})().catch(e => { console.error(e); process.exit(1); });
