// Package console serves the web console at /_utils: files that are part of the program, and
// a log-in form for browsers that were refused. The console does everything through the HTTP
// API with the cookie of a session.
//
// web/ holds the sources. assets/ holds what test/console makes of them: it is checked in, so
// that building Divan needs Go alone.
package console
