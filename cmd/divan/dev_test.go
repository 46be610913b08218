package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"divan"
)

// script runs ./dev in a directory of its own, where the compiler and the program only
// tell how they are called, and returns what they told. more are further files.
func script(t *testing.T, environ []string, more map[string]string, args ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "dev"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{
		"dev":       string(text),
		"bin/divan": "#!/bin/sh\necho divan \"$@\"\n",
		"tools/go":  "#!/bin/sh\n[ \"$1\" = env ] && { echo go1.99; exit; }\necho \"GOWORK=${GOWORK-} go\" \"$@\"\n",
	}
	maps.Copy(files, more)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "dev"), args...)
	cmd.Env = append([]string{"PATH=" + filepath.Join(dir, "tools") + ":" + os.Getenv("PATH"), "VERSION=v1.2"}, environ...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestDev: the program is built in one way for every target, with its version, and has
// the administrator of the README unless one is named or other machines reach it.
func TestDev(t *testing.T) {
	const build = "GOWORK=off go build -trimpath -ldflags -s -w -X main.linkedVersion=v1.2 -o bin/divan ./cmd/divan\n"
	const admin = "--admin admin:password "
	if got := script(t, nil, nil, "build"); got != build {
		t.Errorf("build: %s", got)
	}
	for args, want := range map[string]string{
		"--data x": admin + "--data x", "--data x --admin root:p": "--data x --admin root:p", "--admin=root:p": "--admin=root:p",
		"--listen 127.0.0.1:1": admin + "--listen 127.0.0.1:1", "--listen 0.0.0.0:1": "--listen 0.0.0.0:1",
	} {
		if got := script(t, nil, nil, append([]string{"run"}, strings.Fields(args)...)...); got != build+"divan serve "+want+"\n" {
			t.Errorf("run %s: %s", args, got)
		}
	}
	if got := script(t, []string{"COUCHDB_USER=root"}, nil, "run"); got != build+"divan serve\n" {
		t.Errorf("run with an administrator in the environment: %s", got)
	}
}

// TestVersionOfBuild: a build is of its tag, and without one of the file VERSION, with the commit behind it.
func TestVersionOfBuild(t *testing.T) {
	if got := divan.Release(); !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(got) || programVersion() != got {
		t.Errorf("VERSION says %q, the program %q", got, programVersion())
	}
	for want, git := range map[string]string{
		"v1.3":               "v1.3",          // what git describe says of the tag, and of the commit
		"1.2.3+0123456789ab": " 0123456789ab", //
		"1.2.3+01-dirty":     " 01-dirty",     //
		"1.2.3":              "",              // no repository
	} {
		tag, commit, _ := strings.Cut(git, " ")
		answer := func(text string) string {
			if text == "" {
				return "exit 1"
			}
			return "echo " + text
		}
		fake := "#!/bin/sh\ncase \"$*\" in *--exact-match*) " + answer(tag) + " ;; *) " + answer(commit) + " ;; esac\n"
		if got := script(t, []string{"VERSION="}, map[string]string{"tools/git": fake, "VERSION": "1.2.3\n"}, "build"); !strings.Contains(got, "linkedVersion="+want+" ") {
			t.Errorf("git says %q: %s", git, got)
		}
	}
}

// TestClusterPorts: no connection gets a port that the nodes of ./dev cluster listen on,
// and what the cluster runs is built as everything is.
func TestClusterPorts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "cluster.sh"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\tset -- "\$1" ([0-9 ]+)$`).FindStringSubmatch(string(text))
	if line == nil || len(strings.Fields(line[1])) != 5 {
		t.Fatalf("%q", line)
	}
	for _, word := range strings.Fields(line[1]) {
		if port, err := strconv.Atoi(word); err != nil || port < 1024 || port+2 >= 32768 {
			t.Errorf("port %s: %v", word, err)
		}
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil || !regexp.MustCompile(`(?m)^cluster: build `).Match(makefile) || !regexp.MustCompile(`(?m)^build: .*\n\t\./dev build$`).Match(makefile) {
		t.Errorf("the cluster is not built by ./dev build: %v", err)
	}
}
