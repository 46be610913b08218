// couchbackup there and back: what is restored is what was there, with its attachments.
const assert = require('node:assert/strict');
const { PassThrough } = require('node:stream');
const couchbackup = require('@cloudant/couchbackup');
const Nano = require('nano');

// run waits for one of couchbackup's functions and returns what it sums up.
const run = (f, from, to, options) => new Promise((resolve, reject) => f(from, to, options, (e, sum) => (e ? reject(e) : resolve(sum))));

// held is what a database holds: leaves with bodies and attachments.
async function held(db) {
  const { rows } = await db.list({ include_docs: true, attachments: true });
  return rows.map(r => {
    for (const a of Object.values(r.doc._attachments || {})) { delete a.revpos; }
    return r.doc;
  });
}

module.exports = async (url) => {
  const server = Nano(url);
  await server.db.create('backup');
  const db = server.use('backup');
  const docs = [...Array(1200).keys()].map(n => ({
    _id: 'doc-' + n, n, text: 'x'.repeat(n % 300),
    ...(n % 100 ? {} : { _attachments: {
      bytes: { content_type: 'application/octet-stream', data: Buffer.alloc(2000 * (n / 100 + 1), n % 251).toString('base64') },
      'some/text ü.txt': { content_type: 'text/plain', data: Buffer.from('text '.repeat(500)).toString('base64') },
    } }),
  }));
  await db.bulk({ docs });
  await db.insert({ language: 'javascript', views: {} }, '_design/d');
  await db.destroy('doc-7', (await db.get('doc-7'))._rev);

  const file = new PassThrough();
  const chunks = [];
  file.on('data', c => chunks.push(c));
  const saved = await run(couchbackup.backup, url + '/backup', file, { attachments: true, parallelism: 2, bufferSize: 100 });
  assert.equal(saved.total, 1201);

  await server.db.create('restored');
  const again = new PassThrough();
  again.end(Buffer.concat(chunks));
  await run(couchbackup.restore, again, url + '/restored', { attachments: true, parallelism: 2, bufferSize: 100 });
  assert.deepEqual(await held(server.use('restored')), await held(db));
  assert.equal((await server.use('restored').attachment.get('doc-1100', 'bytes')).length, 24000);
  await assert.rejects(server.use('restored').get('doc-7'), e => e.statusCode === 404);

  const more = new PassThrough();
  more.end(Buffer.concat(chunks));
  await assert.rejects(run(couchbackup.restore, more, url + '/restored', { attachments: true }), e => e.name === 'DatabaseNotEmpty');
  await assert.rejects(run(couchbackup.backup, url + '/none', new PassThrough(), {}), e => e.name === 'DatabaseNotFound');
  await server.db.destroy('backup');
  await server.db.destroy('restored');
  return saved.total + ' documents there and back, attachments the same';
};
