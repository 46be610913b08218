// Command console makes the files of the web console of its TypeScript sources, with
// esbuild. It needs Go, and for the first time the npm registry; Node.js it does not need.
//
//	console build   writes httpapi/console/assets
//	console check   fails when the sources have type errors, or the files are not those of the sources
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"

	"divan/test/npm"
)

const (
	webDir    = "httpapi/console/web"
	assetsDir = "httpapi/console/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 || (args[0] != "build" && args[0] != "check") {
		return errors.New("usage, at the top of the repository: go run ./test/console build|check")
	}
	modules, err := npm.Fetch(ctx, filepath.Join(webDir, "package-lock.json"))
	if err != nil {
		return err
	}
	stage, err := os.MkdirTemp(filepath.Dir(modules), "web-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	// Paths of modules are part of what esbuild hashes: sources are built beside the modules,
	// so that they are the same on each machine.
	if err := os.CopyFS(stage, os.DirFS(webDir)); err != nil {
		return err
	}
	if args[0] == "check" {
		if err := checkTypes(ctx, modules, stage); err != nil {
			return err
		}
	}
	made, err := bundle(modules, stage)
	if err != nil {
		return err
	}
	report(made)
	if args[0] == "build" {
		return write(made)
	}
	return compare(made)
}

// checkTypes runs the compiler of TypeScript that is a program of its own.
func checkTypes(ctx context.Context, modules, stage string) error {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	compiler := filepath.Join(modules, "@typescript", "native-preview-"+runtime.GOOS+"-"+arch, "lib", "tsgo")
	out, err := exec.CommandContext(ctx, compiler, "--noEmit", "--project", stage).CombinedOutput() //nolint:gosec // its hash is in the lock file
	if err != nil {
		return fmt.Errorf("types: %w\n%s", err, bytes.ReplaceAll(out, []byte(stage), []byte(webDir)))
	}
	return nil
}
