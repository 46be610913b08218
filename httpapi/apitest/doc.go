// Package apitest has what the tests of endpoints stand on: nodes with everything in
// memory, and requests to them.
package apitest
