// Package design holds the endpoints below a design document whose answers its
// functions make: _show, _list, _update and _rewrite (api.md section 12).
package design
