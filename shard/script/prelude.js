// The sandbox of a set of functions: what couchjs gives to the functions of
// design documents. It is evaluated once in every VM, gets what Go provides
// (host), and returns the functions that Go calls. What scripts may change of
// the built-in objects is taken here before they can.
(function (host) {
  'use strict';
  const global = globalThis;
  const { stringify } = JSON;
  const { create, freeze, values, defineProperty, hasOwn } = Object;
  const { isArray } = Array;
  const { apply } = Reflect;
  const IndexError = Error, IndexTypeError = TypeError;

  const show = (name, value) =>
    defineProperty(global, name, { value, writable: true, enumerable: true, configurable: true });

  defineProperty(Error.prototype, 'toJSON', {
    value() { return { error: this.name, message: this.message }; },
    writable: true, enumerable: false, configurable: true,
  });

  // What was thrown ------------------------------------------------------

  const text = (x) => (typeof x === 'string' ? x : stringify(x) ?? String(x));

  // describe makes the triple of e that couchjs would send: level, name, reason.
  function describe(e) {
    if (e === null || e === undefined) return ['error', 'unnamed_error', String(e)];
    if (e[0] === 'error' || e[0] === 'fatal') return [e[0], text(e[1]), text(e[2])];
    if (e.error && e.reason) return ['error', text(e.error), text(e.reason)];
    if (e.name) return ['error', text(e.name), text(e.message)];
    return ['error', 'unnamed_error', text(e)];
  }

  const spell = (e) => (e instanceof Error ? String(e) : text(e));

  // renderError is what functions that make answers throw instead of e.
  function renderError(e, name) {
    if (e !== null && e !== undefined && ((e.error && e.reason) || e[0] === 'error' || e[0] === 'fatal')) return e;
    const message = 'function raised error: ' + spell(e) + ' \nstacktrace: ' + (e && e.stack);
    host.log(message);
    return ['error', name, message];
  }

  // refusal is what a validation function means by throwing e: kind, reason.
  function refusal(e) {
    if (typeof e === 'string') return ['unknown_error', e];
    if (typeof e !== 'object' || e === null || isArray(e)) return ['unknown_error', text(e)];
    if (e.name && e.stack) return [text(e.name), text(e.message)];
    for (const kind of ['forbidden', 'unauthorized']) {
      if (e[kind] !== undefined) return [kind, text(e[kind])];
    }
    const all = values(e);
    return ['unknown_error', text(all.length ? all[0] : e)];
  }

  // refuse throws what index() throws.
  function refuse(name, message) {
    const e = name === 'TypeError' ? new IndexTypeError(message) : new IndexError(message);
    if (name !== 'TypeError') defineProperty(e, 'name', { value: name, writable: true, enumerable: false, configurable: true });
    throw e;
  }

  // Modules --------------------------------------------------------------

  let ddoc = {}; // frozen
  let self = {}; // what functions have as "this": changes are for them alone
  let modules = create(null);

  const pathError = (reason) => ['error', 'invalid_require_path', reason];

  // resolve follows names from at; every step knows its parent and its id. Steps are
  // frozen, because modules get them, and only own members count: what is compiled
  // for an id is kept for later uses, and must always be what the document has there.
  function resolve(names, from) {
    let at = names[0] === '.' || names[0] === '..' ? from : freeze({ current: ddoc, parent: null, id: undefined });
    for (const name of names) {
      if (name === '.' || name === '..') {
        if (!at || (name === '..' && !at.parent)) throw pathError('Object has no parent ' + stringify(at && at.current));
        if (name === '..') at = at.parent;
        continue;
      }
      const next = hasOwn(at.current, name) ? at.current[name] : null;
      if (next === null) {
        throw pathError('Object has no property "' + name + '". ' + stringify(at.current));
      }
      at = freeze({ current: next, parent: at, id: at.id === undefined ? name : at.id + '/' + name });
    }
    if (typeof at.current !== 'string') {
      throw pathError('Must require a JavaScript string, not: ' + typeof at.current);
    }
    return at;
  }

  function requireFrom(path, from) {
    const at = resolve(String(path).split('/'), from);
    if (at.id in modules) return modules[at.id];
    // Modules that require each other see an empty object, as in couchjs.
    modules[at.id] = {};
    try {
      const module = { current: at.current, parent: at.parent, id: at.id, exports: {} };
      const f = host.module(at.id, at.current);
      apply(f, global, [module, module.exports, (inner) => requireFrom(inner, at.parent)]);
      return (modules[at.id] = module.exports);
    } catch (e) {
      delete modules[at.id];
      throw ['error', 'compilation_error', "Module require('" + path + "') raised error " + spell(e)];
    }
  }

  const load = (document) => {
    seal(document);
    ddoc = document;
  };

  const call = (f, args) => {
    self = { ...ddoc };
    return apply(f, self, args);
  };

  // Formats --------------------------------------------------------------

  let typesOf, keyOf, otherTypes;
  let provided = [], contentType = null;

  // addType takes the types of a key: a method of arrays that a function has replaced
  // for a moment may see the list, which other uses read.
  function addType(key, types) {
    typesOf[key] = freeze(types);
    for (const type of types) keyOf[type] = key;
  }

  function registerType(key, ...types) {
    otherTypes = true;
    host.touched();
    addType(key, types);
  }

  const usualTypes = [
    ['all', '*/*'],
    ['text', 'text/plain; charset=utf-8', 'txt'],
    ['html', 'text/html; charset=utf-8'],
    ['xhtml', 'application/xhtml+xml', 'xhtml'],
    ['xml', 'application/xml', 'text/xml', 'application/x-xml'],
    ['js', 'text/javascript', 'application/javascript', 'application/x-javascript'],
    ['css', 'text/css'],
    ['ics', 'text/calendar'],
    ['csv', 'text/csv'],
    ['rss', 'application/rss+xml'],
    ['atom', 'application/atom+xml'],
    ['yaml', 'application/x-yaml', 'text/yaml'],
    ['multipart_form', 'multipart/form-data'],
    ['url_encoded_form', 'application/x-www-form-urlencoded'],
    ['json', 'application/json', 'text/x-json'],
  ];

  function resetTypes() {
    typesOf = create(null);
    keyOf = create(null);
    otherTypes = false;
    for (let i = 0; i < usualTypes.length; i++) {
      const [key, ...types] = usualTypes[i];
      addType(key, types);
    }
  }
  resetTypes();

  function mediaType(s) {
    const [full, ...parameters] = s.split(';');
    const name = full.trim() === '*' ? '*/*' : full.trim();
    const [type, subtype] = name.split('/');
    const media = { type, subtype, parameters: create(null), q: 1 };
    for (const p of parameters) {
      const [key, value, more] = p.split('=');
      if (value !== undefined && more === undefined) media.parameters[key.trim()] = value.trim();
    }
    const q = parseFloat(media.parameters.q);
    if (q >= 0 && q <= 1) media.q = q;
    delete media.parameters.q;
    return media;
  }

  // fit says how well a type fits the ranges of an Accept header: the fitness of
  // the best range, and its quality.
  function fit(type, ranges) {
    const target = mediaType(type);
    let best = -1, quality = 0;
    for (const range of ranges) {
      const sameType = range.type === target.type, sameSubtype = range.subtype === target.subtype;
      if (!(sameType || range.type === '*' || target.type === '*')) continue;
      if (!(sameSubtype || range.subtype === '*' || target.subtype === '*')) continue;
      let fitness = (sameType ? 100 : 0) + (sameSubtype ? 10 : 0);
      for (const p in target.parameters) {
        if (range.parameters[p] === target.parameters[p]) fitness++;
      }
      if (fitness > best) [best, quality] = [fitness, range.q];
    }
    return [best, quality];
  }

  // bestType is the type that the header likes best; the later one of equals.
  function bestType(types, header) {
    const ranges = header.split(',').map(mediaType);
    let best = '', fitness = -1, quality = 0;
    for (const type of types) {
      const [f, q] = fit(type, ranges);
      if (f > fitness || (f === fitness && q >= quality)) [best, fitness, quality] = [type, f, q];
    }
    return quality > 0 ? best : '';
  }

  function runProvides(req) {
    const accept = req.headers && req.headers.Accept;
    let key;
    if (req.query && req.query.format) {
      key = req.query.format;
      contentType = typesOf[key][0];
    } else if (accept) {
      provided.reverse();
      contentType = bestType(provided.flatMap(([k]) => typesOf[k] || []), accept);
      key = keyOf[contentType];
    } else {
      key = provided[0][0];
      contentType = typesOf[key][0];
    }
    for (const [k, f] of provided) {
      if (k === key) return apply(f, self, []);
    }
    const types = provided.map(([k]) => (typesOf[k] && typesOf[k].join(', ')) || k);
    throw ['error', 'not_acceptable',
      'Content-Type ' + (accept || key) + ' not supported, try one of: ' + types.join(', ')];
  }

  // Answers --------------------------------------------------------------

  let chunks = [], startResponse = {}, restarted = false, gotRow = false, lastRow = false, listing = false;

  function reset(list) {
    chunks = [];
    startResponse = {};
    restarted = gotRow = lastRow = false;
    listing = list;
    provided = [];
    contentType = null;
  }

  // forget ends a use of the VM: what functions left here goes.
  function forget() {
    modules = create(null);
    self = {};
    if (otherTypes) resetTypes();
    reset(false);
  }

  const kind = (x) => (x === null ? 'null' : isArray(x) ? 'array' : typeof x);
  const wrap = (response) => (typeof response === 'string' ? { body: response } : response);

  function withContentType(response) {
    response.headers = response.headers || {};
    if (contentType) response.headers['Content-Type'] = response.headers['Content-Type'] || contentType;
    return response;
  }

  // flush gives what was sent to Go. Joined text grows slower than an array.
  function flush() {
    if (restarted) respond();
    if (chunks.length) host.send(chunks.join(''));
    chunks = [];
  }

  // respond gives Go what start said, and once the lack of it.
  function respond() {
    restarted = false;
    host.start(stringify(withContentType(startResponse)));
    startResponse = {};
  }

  function begin() {
    gotRow = true;
    respond();
    flush();
  }

  function getRow() {
    if (lastRow || !listing) return null;
    if (gotRow) flush();
    else begin();
    const row = host.row();
    if (row === undefined) {
      lastRow = true;
      return null;
    }
    return row;
  }

  function runShow(f, doc, req) {
    reset(false);
    try {
      let response = wrap(call(f, [doc, req]) || {});
      if (chunks.length) {
        response.headers = response.headers || {};
        for (const name in startResponse) response.headers[name] = startResponse[name];
        response.body = chunks.join('') + (response.body || '');
        chunks = [];
      }
      if (provided.length) {
        const more = wrap(runProvides(req) || {});
        const body = (response.body || '') + chunks.join('') + (more.body || '');
        response = { ...response, ...more, headers: { ...response.headers, ...more.headers } };
        if (body !== '') response.body = body;
        response = withContentType(response);
      }
      if (kind(response) !== 'object') throw ['error', 'render_error', 'undefined response from show function'];
      return response;
    } catch (e) {
      if (doc === null && req && req.path && req.path.length > 5) throw ['error', 'not_found', 'document not found'];
      throw renderError(e, 'render_error');
    }
  }

  function runUpdate(f, doc, req) {
    reset(false);
    try {
      if (req.method === 'GET') throw ['error', 'method_not_allowed', 'Update functions do not allow GET'];
      const result = call(f, [doc, req]);
      const newDoc = result[0], response = wrap(result[1]);
      if (kind(response) !== 'object') throw ['error', 'render_error', 'undefined response from update function'];
      return [newDoc, response];
    } catch (e) {
      throw renderError(e, 'render_error');
    }
  }

  function runList(f, head, req) {
    reset(true);
    try {
      let tail = call(f, [head, req]);
      if (provided.length) tail = runProvides(req);
      if (!gotRow) begin();
      if (tail !== undefined && tail !== null) chunks.push(String(tail));
      flush();
    } catch (e) {
      throw renderError(e, 'render_error');
    } finally {
      listing = false;
    }
  }

  function runRewrite(f, req) {
    let result;
    try {
      result = call(f, [req]);
    } catch (e) {
      throw renderError(e, 'rewrite_error');
    }
    if (!result) return null;
    return typeof result === 'string' ? { path: result, method: req.method } : result;
  }

  function runFilter(f, docs, req) {
    return docs.map((doc) => !!call(f, [doc, req]));
  }

  function runFilterView(f, docs) {
    return docs.map((doc) => {
      host.emitted();
      apply(f, global, [doc]);
      return host.emitted();
    });
  }

  function runValidate(f, newDoc, oldDoc, userCtx, secObj) {
    try {
      call(f, [newDoc, oldDoc, userCtx, secObj]);
      return null;
    } catch (e) {
      return refusal(e);
    }
  }

  // seal makes x and all that it holds read-only.
  function seal(x) {
    if (typeof x !== 'object' || x === null) return;
    const all = isArray(x) ? x : values(x);
    for (let i = 0; i < all.length; i++) seal(all[i]);
    freeze(x);
  }

  // Built-in functions that loop without looking at the clock, and would need
  // guards inside (guard.go has the others).
  const method = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  function flatten(to, list, depth) {
    for (let i = 0; i < list.length; i++) {
      if (!(i in list)) continue;
      if (depth > 0 && isArray(list[i])) flatten(to, list[i], depth - 1);
      else to.push(list[i]);
    }
    return to;
  }
  method(Array.prototype, 'flat', function flat(depth = 1) { return flatten([], this, +depth || 0); });
  method(Array.prototype, 'flatMap', function flatMap(f, self) {
    const to = [];
    for (let i = 0; i < this.length; i++) {
      if (i in this) flatten(to, [apply(f, self, [this[i], i, this])], 1);
    }
    return to;
  });
  method(Iterator.prototype, 'drop', function* drop(count) {
    for (const x of this) {
      if (count > 0) count--;
      else yield x;
    }
  });
  method(String, 'raw', function raw(strings, ...values) {
    let out = '';
    const parts = strings.raw;
    for (let i = 0; i < parts.length; i++) {
      out += parts[i];
      if (i + 1 < parts.length && i < values.length) out += values[i];
    }
    return out;
  });

  // compare is how sort compares without a function.
  function compare(a, b) {
    const x = String(a), y = String(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }

  // Names of members that documents have ("__proto__") are names like all others:
  // what is put under them must not reach what other objects inherit. What is
  // called when an object has gone would run in the midst of another use.
  delete Object.prototype.__proto__;
  delete global.WeakRef;
  delete global.FinalizationRegistry;

  // What scripts see -----------------------------------------------------

  show('emit', host.emit);
  if (host.index) show('index', host.index);
  show('log', (x) => { host.log(spell(x)); });
  show('toJSON', (x) => stringify(x));
  show('isArray', isArray);
  show('sum', (list) => {
    let total = 0;
    if (isArray(list)) {
      for (let i = 0; i < list.length; i++) {
        const x = list[i];
        if (x !== undefined || i in list) total += x;
      }
      return total;
    }
    for (const i in list) total += list[i];
    return total;
  });
  show('require', (path) => requireFrom(path, null));
  show('provides', (key, f) => {
    host.touched();
    provided.push([key, f]);
  });
  show('registerType', registerType);
  show('start', (response) => {
    host.touched();
    startResponse = response || {};
    restarted = true;
  });
  show('send', (chunk) => {
    host.touched();
    chunks.push(chunk.toString());
  });
  show('getRow', getRow);

  // What functions may change for the time of a call: what libraries are known to
  // extend, and what objects of scripts inherit from, which could be given no member
  // of a name that is frozen there. All else that is built in is frozen.
  const changeable = [
    Object, Function, Array, String, Number, Boolean, Date, RegExp, Promise, Map, Set,
    Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, InternalError, AggregateError,
  ].flatMap((c) => [c, c.prototype]).concat([Math, JSON]);

  // Built-in functions that are frozen look like this.
  const frozenFunction = create(Function.prototype, { length: { value: 0 }, name: { value: '' } });

  return {
    changeable, frozenFunction, describe, refuse, load, seal, compare, forget, runShow, runUpdate, runList, runRewrite, runFilter, runFilterView, runValidate,
  };
})
