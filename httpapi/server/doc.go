// Package server serves what is about the server as a whole: "/", _up, _uuids and
// _session.
package server
