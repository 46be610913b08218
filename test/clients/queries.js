// PouchDB's map/reduce queries: those that it runs itself and those that the server
// runs say the same, also about conflicts.
const assert = require('node:assert/strict');
const os = require('node:os');
const fs = require('node:fs');
const path = require('node:path');
const PouchDB = require('pouchdb');

module.exports = async (url) => {
  const remote = new PouchDB(url + '/queries');
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'divan-clients-'));
  const local = new PouchDB(path.join(dir, 'queries'));
  try {
    const leaf = (id, pos, hash, more) => ({ _id: id, _rev: pos + '-' + hash.repeat(32), _revisions: { start: pos, ids: [hash.repeat(32)] }, ...more });
    await remote.bulkDocs([
      leaf('calm', 1, 'a', { n: 1 }),
      leaf('torn', 1, 'a', { n: 2 }), leaf('torn', 1, 'b', { n: 3 }), leaf('torn', 1, 'c', { n: 4 }),
      leaf('mended', 1, 'a', { n: 5 }), leaf('mended', 1, 'b', { _deleted: true }),
    ], { new_edits: false });
    await remote.put({
      _id: '_design/q',
      views: {
        conflicts: { map: 'function (doc) { if (doc._conflicts) { emit(doc._id, doc._conflicts.length); } }', reduce: '_sum' },
        all: { map: 'function (doc) { emit(doc.n, doc._conflicts || null); }' },
        broken: { map: 'function (doc) { throw "no"; }' },
      },
    });
    await PouchDB.replicate(remote, local);
    const both = async (view, options) => {
      const [theirs, own] = [await remote.query(view, options), await local.query(view, options)];
      assert.deepEqual(theirs.rows, own.rows, view + ' ' + JSON.stringify(options));
      return own.rows;
    };
    const torn = ['1-' + 'b'.repeat(32), '1-' + 'a'.repeat(32)];
    assert.deepEqual(await both('q/conflicts', { reduce: false }), [{ id: 'torn', key: 'torn', value: 2 }]);
    assert.deepEqual(await both('q/conflicts', {}), [{ key: null, value: 2 }]);
    await both('q/conflicts', { group: true });
    await both('q/all', { descending: true });
    assert.deepEqual((await both('q/all', { key: 4 }))[0].value, torn);
    assert.deepEqual((await both('q/all', { key: 4, include_docs: true, conflicts: true }))[0].doc._conflicts, torn);
    assert.deepEqual((await remote.query('q/broken')).rows, []);
    await assert.rejects(remote.query('q/nosuch'), e => e.status === 404);

    await remote.remove(await remote.get('torn', { rev: torn[0] }));
    await PouchDB.replicate(remote, local);
    assert.deepEqual(await both('q/conflicts', { reduce: false }), [{ id: 'torn', key: 'torn', value: 1 }]);
    await remote.destroy();
    return 'views on _conflicts the same here and there, before and after one is removed';
  } finally {
    await local.destroy();
    fs.rmSync(dir, { recursive: true, force: true });
  }
};
