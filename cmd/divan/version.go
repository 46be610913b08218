package main

import "divan"

// linkedVersion is the tag, or the content of the file VERSION with the commit behind a plus; the
// linker puts it here (see ../../dev).
var linkedVersion = ""

// programVersion returns the version that the program was built as. One that ./dev has not built
// says what the file VERSION says.
func programVersion() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	return divan.Release()
}
