//go:build !unix

package main

// leaveToOwner has nothing to do where files are not their maker's alone.
func leaveToOwner(string) error { return nil }
