// Package script runs the JavaScript of design documents: map and reduce
// functions, filters, validation, and the functions that make answers.
package script
