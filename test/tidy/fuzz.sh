#!/bin/sh
# Runs every fuzz target of the repository for the time given, one after the other.
set -eu
time=${1:-60s}
for file in $(git grep -l '^func Fuzz' -- '*_test.go'); do
	dir=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $dir $target"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done
