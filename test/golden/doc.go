// Command golden replays HTTP transcripts against a server and prints each
// step that differs.
//
//	golden http://admin:password@127.0.0.1:5984 FILE...
//
// A transcript (testdata/*/*.http) is a conversation with CouchDB 3.5.0: the
// requests as they were sent and the answers as they came. What a server makes
// up for itself (revisions, update sequences, identifiers) stands in it under a
// name, and the names must fit together over the whole file.
// testdata/README.md describes the format. The test of this package replays
// every transcript against a node in this process; testdata/exceptions.txt
// lists the steps that may differ, each with its reason.
package main
