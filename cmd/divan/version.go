package main

import "runtime/debug"

// unversioned is the version of a program that was built without its history.
const unversioned = "devel"

// linkedVersion is the tag or commit, which the linker puts here (see ../../dev).
var linkedVersion = ""

// programVersion returns the tag or commit that the program was built from.
func programVersion() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unversioned
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if len(revision) < 12 {
		return unversioned
	}
	return revision[:12] + dirty
}
