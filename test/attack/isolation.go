package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// habits are statements of functions that must not affect any other call: some by mistake,
// some on purpose.
var habits = []string{
	`left = 1;`,
	`globalThis.left = 1; globalThis[Symbol.for('left')] = 1;`,
	`Object.defineProperty(globalThis, 'left', {value: 1});`,
	`(0, eval)('var left = 1; function left2() {}');`,
	`(0, eval)('let left = 1; const String = function () { return "left"; };');`,
	`Object.prototype.left = 1;`,
	`({})['__proto__'].left = 1;`,
	`({}).constructor.prototype.left = 1; ({}).constructor.left = 1;`,
	`Object.defineProperty(Object.prototype, 'v', {get: function () { return 1; }, configurable: true});`,
	`Array.prototype.push = function () { return 'left'; }; Array.prototype[0] = 'left';`,
	`Array.prototype[Symbol.iterator] = function* () {};`,
	`Object.prototype.toJSON = String.prototype.toJSON = function () { return 'left'; };`,
	`JSON.stringify = JSON.parse = function () { return 'left'; };`,
	`sum = emit = toJSON = isArray = require = log = function () { return 'left'; };`,
	`delete globalThis.sum; delete Array.prototype.map;`,
	`Object.setPrototypeOf(globalThis, {left: 1});`,
	`Object.setPrototypeOf(Array.prototype, {left: 1});`,
	`Object.preventExtensions(globalThis); Object.freeze(Array.prototype);`,
	`Math.max.left = emit.left = sum.left = [].push.left = 1;`,
	`Object.defineProperty(Math.max, 'name', {value: 'left'});`,
	`Error.prototype.toJSON = null; Error.prototype.name = 'left'; Error.prepareStackTrace = function () { return 'left'; };`,
	`Function.prototype.call = Function.prototype.apply = function () { return 'left'; };`,
	`String.prototype.left = function () { return 1; }; Number.prototype.left = Date.prototype.left = RegExp.prototype.left = 1;`,
	`Object.getPrototypeOf([][Symbol.iterator]()).left = Object.getPrototypeOf(function* () {}).left = 1;`,
	`Object.getPrototypeOf(async function () {}).left = Object.getPrototypeOf(Uint8Array).prototype.left = 1;`,
	`Promise.resolve().then(function () { globalThis.left = 1; Object.prototype.left = 1; });`,
	`(async function () { for (var i = 0; i < 20; i++) { await null; } Array.prototype.left = left = 1; })();`,
	`this.left = 1; this.views = {}; delete this.shows;`,
	`this.views.lib.m = 'exports.count = function () { return 9; };'; this.views.left = 1;`,
	`require('views/lib/m').count(); require('views/lib/m').left = 1;`,
	`require('views/lib/spoil');`,
	`arguments.callee.left = 1; arguments.callee.prototype.left = 1;`,
	`registerType('left', 'text/left'); provides('left', function () { return 'left'; });`,
	`start({headers: {left: '1'}}); send('left');`,
	`Reflect.defineProperty(Object.prototype, 'left', {value: 1}); Reflect.deleteProperty(Math, 'max');`,
	`Object.assign(Object.prototype, {left: 1}); Object.assign(Math, {max: null});`,
	`class A extends (function (o) { return o; }) { #left = 1; } new A(Object.prototype); new A(Math.max); new A(globalThis);`,
	`Object.setPrototypeOf(Array.prototype, new Proxy({}, {get: function () { return 'left'; }}));`,
	`Map.prototype.get = Set.prototype.has = Promise.prototype.then = function () { return 'left'; };`,
	`left = 1; (function f() { Object.prototype.left = 1; f(); })();`,
}

// around is a function body that tells what can be seen of all this.
const around = `
	var out = [typeof left, typeof best, Object.keys(this).join(), require('views/lib/m').count()];
	[globalThis, this, this.views, Object, Array, String, Number, Function, Error, TypeError, Date, RegExp, Math, JSON, Map, Set, Promise, Reflect,
		emit, sum, toJSON, require, Math.max, [].push, Symbol.prototype, Object.getPrototypeOf(Uint8Array), Object.getPrototypeOf([][Symbol.iterator]()),
		Object.getPrototypeOf(function* () {}), Object.getPrototypeOf(async function () {}), Iterator].forEach(function (o) {
		for (; o; o = o.prototype) {
			out.push(Object.isExtensible(o), Object.getPrototypeOf(o) && Object.getPrototypeOf(o).constructor.name);
			Reflect.ownKeys(o).forEach(function (k) {
				var d = Object.getOwnPropertyDescriptor(o, k);
				out.push(String(k), typeof d.value, typeof d.value === 'object' ? '' : String(d.value).length, typeof d.get);
			});
		}
	});
	var text = out.join();`

// sharing is a design document whose functions are shared, if anything is.
func sharing() map[string]any {
	const best = `function (keys, values) {
		for (var i = 0; i < values.length; i++) { if (typeof best === 'undefined' || values[i] > best) { best = values[i]; } }
		return best;
	}`
	const sums = `function (keys, values) {
		var out = {};
		values.forEach(function (v) {
			for (var k in v) {
				out[k] = out[k] || {};
				for (var x in v[k]) { out[k][x] = (out[k][x] || 0) + v[k][x]; }
			}
		});
		return out;
	}`
	view := func(what, reduce string) map[string]string {
		return map[string]string{"map": "function (doc) { emit(null, doc." + what + "); }", "reduce": reduce}
	}
	shows := map[string]string{"look": "function () {" + around + " return {body: text}; }"}
	updates := map[string]string{"look": "function () {" + around + " return [null, text]; }"}
	for i, habit := range habits {
		body := "function (a, b) { try { " + habit + " } catch (e) {} return {0: null, 1: ''}; }"
		shows[fmt.Sprint(i)], updates[fmt.Sprint(i)] = body, body
	}
	return map[string]any{
		"views": map[string]any{
			"best": view("v", best), "sums": view("sums", sums),
			"lib": map[string]string{
				"m":     "var n = 0; exports.count = function () { return ++n; };",
				"spoil": "require('./m').count(); String.prototype.left = 1; globalThis.left = 1;",
			},
		},
		"shows": shows, "updates": updates,
	}
}

// shop makes a database of twenty documents; evil ones have what must stay there.
func shop(ctx context.Context, s *server, db string, evil bool) error {
	if err := s.must(ctx, http.MethodPut, db+"?q=1", nil); err != nil {
		return err
	}
	docs := make([]json.RawMessage, 20)
	for i := range docs {
		docs[i] = fmt.Appendf(nil, `{"_id":"d%d","v":%d,"sums":{"a":{"eur":1000}}}`, i, i)
		if evil {
			docs[i] = fmt.Appendf(nil, `{"_id":"d%d","v":1000000,"sums":{"a":{"eur":1},"__proto__":{"eur":1000000}}}`, i)
		}
	}
	if err := s.must(ctx, http.MethodPost, db+"/_bulk_docs", map[string]any{"docs": docs}); err != nil {
		return err
	}
	return s.must(ctx, http.MethodPut, db+"/_design/d", sharing())
}

// isolation has the functions of one database leave what they can, and looks at
// another one with the same functions, at one that is made again under the same
// name, and after a restart.
func isolation(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(shop(ctx, s, "/bank", true), w.watch(ctx, s)); err != nil {
		return "", err
	}
	var counts leaks
	var looked string
	w.attacked(ctx, func(ctx context.Context) {
		counts.sums(ctx, s, "/bank") // first, so that they leave what they leave
		if err = shop(ctx, s, "/shop", false); err != nil {
			return
		}
		if looked, err = lookAround(ctx, s, "/shop", "_show"); err != nil {
			return
		}
		counts = leaks{}
		counts.sums(ctx, s, "/shop")
		for i := range habits {
			for _, leave := range []string{"_show", "_update"} {
				_, _ = s.call(ctx, http.MethodPost, fmt.Sprintf("/bank/_design/d/%s/%d", leave, i), struct{}{}, nil) // some fail
				for _, db := range []string{"/bank", "/shop"} {
					for _, look := range []string{"_show", "_update"} {
						text, err := lookAround(ctx, s, db, look)
						counts.add(err == nil && text == looked)
					}
				}
			}
		}
	})
	if err == nil {
		err = again(ctx, s, &counts)
	}
	seen := fmt.Sprintf("%d of %d answers had something of another call in them", counts.wrong, counts.all)
	if counts.wrong > 0 {
		err = errors.Join(err, errors.New("functions are not alone"))
	}
	return seen, err
}

// again makes the database again, without what was in it, and looks after a restart.
func again(ctx context.Context, s *server, counts *leaks) error {
	var old leaks
	old.sums(ctx, s, "/bank")
	if err := s.must(ctx, http.MethodDelete, "/bank", nil); err != nil {
		return err
	}
	if err := shop(ctx, s, "/bank", false); err != nil {
		return err
	}
	counts.sums(ctx, s, "/bank")
	if err := s.stop(); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	counts.sums(ctx, s, "/bank")
	counts.sums(ctx, s, "/shop")
	return nil
}

// lookAround returns what a function of a database sees.
func lookAround(ctx context.Context, s *server, db, kind string) (string, error) {
	text := ""
	status, err := s.call(ctx, http.MethodPost, db+"/_design/d/"+kind+"/look", struct{}{}, &text)
	if err == nil && status >= 300 {
		err = fmt.Errorf("status %d: %s", status, text)
	}
	return text, err
}

// leaks counts answers, and those that were wrong.
type leaks struct{ all, wrong int }

func (l *leaks) add(right bool) {
	l.all++
	if !right {
		l.wrong++
	}
}

// sums asks the reductions of a database that shop has made, without evil.
func (l *leaks) sums(ctx context.Context, s *server, db string) {
	for range 4 {
		for _, c := range []struct{ view, want string }{{"best", "19"}, {"sums", `{"a":{"eur":20000}}`}} {
			var answer struct {
				Rows []struct{ Value json.RawMessage }
			}
			_, err := s.call(ctx, http.MethodGet, db+"/_design/d/_view/"+c.view, nil, &answer)
			l.add(err == nil && len(answer.Rows) == 1 && string(answer.Rows[0].Value) == c.want)
		}
	}
}
