// nano, the client of the Apache CouchDB project.
const assert = require('node:assert/strict');
const Nano = require('nano');

module.exports = async (url) => {
  const at = new URL(url);
  const server = Nano(url);
  const status = n => e => e.statusCode === n;
  await server.db.create('nano', { q: 2 });
  await assert.rejects(server.db.create('nano'), status(412));
  assert.ok((await server.db.list()).includes('nano'));
  const db = server.use('nano');

  const { rev } = await db.insert({ n: 1 }, 'frog');
  await assert.rejects(db.insert({ n: 2 }, 'frog'), status(409));
  await db.insert({ n: 2, _rev: rev }, 'frog');
  assert.equal((await db.get('frog', { revs_info: true }))._revs_info.length, 2);
  await assert.rejects(db.get('newt'), status(404));
  const bulk = await db.bulk({ docs: [...Array(20).keys()].map(n => ({ _id: 'toad-' + n, n })) });
  assert.ok(bulk.every(r => r.ok));
  assert.equal((await db.fetch({ keys: ['toad-3', 'newt'] })).rows[1].error, 'not_found');
  assert.equal((await db.list({ startkey: 'toad', limit: 5, include_docs: true })).rows.length, 5);

  const content = Buffer.from([...Array(256).keys()]);
  const head = (await db.head('frog')).etag.replace(/"/g, '');
  await db.attachment.insert('frog', 'bytes', content, 'application/octet-stream', { rev: head });
  assert.deepEqual(await db.attachment.get('frog', 'bytes'), content);
  await db.multipart.insert({ many: true }, [{ name: 'a', data: content, content_type: 'image/png' }, { name: 'b', data: 'text', content_type: 'text/plain' }], 'newt');
  assert.deepEqual(await db.attachment.get('newt', 'a'), content);

  await db.insert({ views: { n: { map: 'function (doc) { if (doc.n) { emit(doc.n, 1); } }', reduce: '_count' } } }, '_design/d');
  assert.equal((await db.view('d', 'n', { reduce: true })).rows[0].value, 20);
  assert.equal((await db.view('d', 'n', { keys: [1, 2], reduce: false })).rows.length, 3);
  await db.createIndex({ index: { fields: ['n'] }, name: 'n' });
  assert.equal((await db.find({ selector: { n: { $gte: 15 } } })).docs.length, 5);

  const seen = await new Promise((resolve, reject) => {
    db.changesReader.get({ since: '0', batchSize: 7, timeout: 1000 }).on('error', reject).on('end', resolve).on('batch', b => assert.ok(b.length <= 7));
  });
  assert.equal((await db.changes({ since: seen })).results.length, 0);
  assert.equal((await db.bulk({ docs: [{ _id: 'toad-3' }] }))[0].error, 'conflict');
  await db.destroy('toad-4', (await db.get('toad-4'))._rev);
  await assert.rejects(db.get('toad-4'), e => e.statusCode === 404 && e.reason === 'deleted');

  const anonymous = Nano(at.origin);
  await assert.rejects(anonymous.db.list(), status(401));
  await assert.rejects(anonymous.auth(at.username, 'wrong'), status(401));
  await anonymous.auth(at.username, at.password); // with a cookie from here on
  assert.equal((await anonymous.session()).userCtx.name, at.username);
  assert.equal((await anonymous.use('nano').get('frog')).n, 2);
  await server.db.destroy('nano');
  await assert.rejects(server.db.get('nano'), status(404));
  return 'documents, attachments, views, queries, changes and a session';
};
