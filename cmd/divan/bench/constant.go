package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// writeAnswer is the constant answer to a write: what the answer to the write of a document has, 95 bytes.
const writeAnswer = `{"ok":true,"id":"0123456789abcdef0123456789abcdef","rev":"1-0123456789abcdef0123456789abcdef"}` + "\n"

// constantHandler reads a request whole and answers a constant: to GET a document of that many bytes,
// to everything else what a write is answered with.
func constantHandler(docSize int) http.Handler {
	d := &documents{size: docSize, text: newText(docSize)}
	const id = "0123456789abcdef0123456789abcdef"
	doc := d.appendDoc(nil, []byte(id), []byte("1-"+id), 0)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that goes away gets no answer
		status, answer := http.StatusCreated, []byte(writeAnswer)
		if r.Method == http.MethodGet {
			status, answer = http.StatusOK, doc
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	})
}

// ServeConstant is the constant handler, a measure of what HTTP alone costs on a machine: net/http
// with its default settings, on a free port of 127.0.0.1. It prints its address, a line, and
// serves until ctx ends or input does, which is a pipe from the process that loads it: thus it ends with that one,
// however that ends. docSize is in bytes.
func ServeConstant(ctx context.Context, input io.Reader, output io.Writer, docSize int) error {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the constant handler: %w", err)
	}
	server := &http.Server{Handler: constantHandler(docSize)} //nolint:gosec // default settings are the measure, and its one client is the bench
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		_ = server.Close()
	}()
	if _, err := fmt.Fprintln(output, l.Addr()); err != nil {
		return errors.Join(fmt.Errorf("the constant handler: %w", err), l.Close())
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the constant handler: %w", err)
	}
	return nil
}
