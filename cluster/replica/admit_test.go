package replica

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"divan/cluster/wire"
	"divan/shard"
	"divan/storage/fault"
)

// TestOtherCopyDoesNotAnswer: a request that is meant for another copy than the one that
// lies under the name is refused, whatever it asks for, here and from another node.
func TestOtherCopyDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		for { // the server may only begin to listen
			if _, err := Info.On(t.Context(), Copy{At: p}, testCopy); !fault.Is(err, fault.NodeDown) {
				break
			}
			runtime.Gosched()
		}
		admitted(t, local, p)
	})
}

func admitted(t *testing.T, local *Local, p Remote) {
	t.Helper()
	const named, unnamed = "shards/00000000-ffffffff/named.1763600000", testCopy
	if err := local.held.Shards.Create(t.Context(), named, shard.CreateOptions{ID: 5}); err != nil {
		t.Fatal(err)
	}
	local.held.Unnamed = func(_ string, id uint64) bool { return id <= 3 }
	for at, copies := range map[string]Copies{"here": local, "elsewhere": p} {
		for _, tc := range []struct {
			name string
			id   uint64
			ok   bool
		}{
			{named, 5, true},
			{named, 0, true},
			{named, 4, false},
			{named, 6, false},
			{unnamed, 3, true},
			{unnamed, 0, true},
			{unnamed, 4, false},
			{"shards/00000000-ffffffff/none.1763600000", 1, false},
		} {
			c := Copy{At: copies, To: wire.Addressee{Copy: tc.id}}
			for what, do := range everything(c, tc.name) {
				err := do(t.Context())
				if refused := fault.Is(err, fault.NoCopy) && fault.Reason(err) == "no_db_file"; refused == tc.ok {
					t.Errorf("%s: %s of copy %d of %s: %v", at, what, tc.id, tc.name, err)
				}
			}
		}
	}
}

// everything is one call of each kind on a copy that reads or writes it. A watch only
// wakes who reads it afterwards.
func everything(c Copy, name string) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"update": func(ctx context.Context) error {
			_, err := Update.On(ctx, c, shard.UpdateRequest{Copy: name, NewEdits: true, Edits: []shard.Edit{{ID: "d", Body: []byte("{}")}}})
			return err
		},
		"open": func(ctx context.Context) error {
			_, err := Open.On(ctx, c, shard.OpenRequest{Copy: name, ID: "d"})
			return err
		},
		"list": func(ctx context.Context) error {
			s, err := AllDocs.On(ctx, c, shard.DocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"upload": func(ctx context.Context) error {
			s, err := PutAttachment.On(ctx, c, PutAttachmentRequest{name, "d", [16]byte{1}})
			if err == nil {
				s.Abort()
			}
			return err
		},
		"download": func(ctx context.Context) error {
			_, err := ReadAttachment.On(ctx, c, shard.AttachmentRange{Copy: name, ID: "d", Key: [16]byte{2}})
			return err
		},
	}
}
