// Package script runs the JavaScript of design documents in QuickJS: map and
// reduce functions, filters, validation, and the functions that make answers.
//
// An [Engine] has VMs. Each belongs to one set of functions (the program of an
// index, a reduce function, one revision of a design document) and is never
// used for another, so nothing that a script does to its VM is seen elsewhere.
// Documents go in as JSON text, and JSON text comes out; see DESIGN.md for how,
// and for what is bounded.
//
// LOCKS: Engine.mu only, held for no call of a script.
package script
