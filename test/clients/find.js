// pouchdb-find over HTTP: an index is made, used, deleted, made again and listed.
const assert = require('node:assert/strict');
const PouchDB = require('pouchdb');
PouchDB.plugin(require('pouchdb-find'));

module.exports = async (url) => {
  const db = new PouchDB(url + '/find');
  await db.bulkDocs([...Array(50).keys()].map(n => ({ _id: 'frog-' + n, n, colour: n % 2 ? 'green' : 'brown' })));
  const index = { index: { fields: ['colour', 'n'] }, name: 'by-colour', ddoc: 'frogs' };
  const query = { selector: { colour: 'green', n: { $gt: 40 } }, sort: ['colour', 'n'] };
  const names = async () => (await db.getIndexes()).indexes.map(i => i.name);

  for (let round = 0; round < 3; round++) {
    await assert.rejects(db.find(query), e => e.error === 'no_usable_index', 'a sort without an index');
    assert.equal((await db.createIndex(index)).result, 'created');
    assert.equal((await db.createIndex(index)).result, 'exists');
    assert.deepEqual(await names(), ['_all_docs', 'by-colour']);
    const found = await db.find(query);
    assert.deepEqual(found.docs.map(d => d.n), [41, 43, 45, 47, 49]);
    assert.equal(found.warning, undefined);
    assert.equal((await db.explain(query)).index.name, 'by-colour');
    const { ddoc, type, name } = (await db.getIndexes()).indexes[1];
    await db.deleteIndex({ ddoc, type, name });
    assert.deepEqual(await names(), ['_all_docs']);
    await assert.rejects(db.deleteIndex({ ddoc, type, name }), e => e.status === 404);
  }
  await assert.rejects(db.find({ selector: { n: { $nosuch: 1 } } }), e => e.status === 400);
  await db.destroy();
  return 'an index made three times, used, listed and deleted';
};
