package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := replayFiles(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

// replayFiles replays the files against the server and returns the exit status: 0 when
// every step passed, 1 when one differs, 2 for wrong arguments.
func replayFiles(ctx context.Context, args []string, out io.Writer) int {
	if len(args) < 2 {
		fmt.Fprintln(out, "usage: golden http://admin:password@HOST:PORT FILE...")
		return 2
	}
	base, err := url.Parse(args[0])
	if err != nil || base.Host == "" || base.User == nil {
		fmt.Fprintln(out, "the first argument must be a URL that carries the administrator: http://admin:password@HOST:PORT")
		return 2
	}
	passed, failed := 0, 0
	for _, name := range args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(out, err)
			return 2
		}
		for _, r := range replay(ctx, transcript{name: name, text: string(text), base: base}) {
			if len(r.diffs) == 0 {
				passed++
				continue
			}
			failed++
			fmt.Fprintf(out, "--- %s: %s\n    %s %s\n", name, r.title, r.method, r.path)
			for _, d := range r.diffs[:min(len(r.diffs), 12)] {
				fmt.Fprintf(out, "    %s\n", d)
			}
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return 1
	}
	return 0
}
