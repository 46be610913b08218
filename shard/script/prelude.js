// The sandbox of a function set: what couchjs gives to the functions of design
// documents. It is evaluated once in every VM, with what Go provides (host),
// and gives Go the functions that it calls.
(function (host) {
  'use strict';
  const global = globalThis;
  const stringify = JSON.stringify;
  const hasOwn = Object.prototype.hasOwnProperty;
  const define = Object.defineProperty;
  const freeze = Object.freeze;
  const values = Object.values;
  const parse = JSON.parse;
  const own = (object, name) => hasOwn.call(object, name);
  const hidden = (object, name, value) =>
    define(object, name, { value, writable: true, enumerable: false, configurable: true });

  hidden(Error.prototype, 'toJSON', function () {
    return { error: this.name, message: this.message };
  });

  // What is thrown, as a triple ["error", name, reason] like couchjs sends it.
  function describe(e) {
    if (e === null || e === undefined) return ['error', 'unnamed_error', String(e)];
    if (e[0] === 'error' || e[0] === 'fatal') return [e[0], text(e[1]), text(e[2])];
    if (e.error && e.reason) return ['error', text(e.error), text(e.reason)];
    if (e.name) return ['error', text(e.name), text(e.message)];
    return ['error', 'unnamed_error', typeof e === 'object' ? text(e) : String(e)];
  }

  function text(x) {
    return typeof x === 'string' ? x : x === undefined ? 'undefined' : stringify(x);
  }

  function message(e) {
    return e instanceof Error ? String(e) : text(e);
  }

  // emit of a filter by a view only says that there was one.
  global.emit = host.emit;
  global.log = function (x) { host.log(message(x)); };
  global.toJSON = function (x) { return stringify(x); };
  global.isArray = Array.isArray;
  global.sum = function (list) {
    let total = 0;
    for (const i in list) total += list[i];
    return total;
  };

  function seal(x) {
    if (typeof x !== 'object' || x === null) return x;
    for (const member of values(x)) seal(member);
    return freeze(x);
  }

  return { describe, message, seal };
})
