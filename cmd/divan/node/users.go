package node

import (
	"context"
	"errors"
	"fmt"
	"io"

	"divan/cluster"
	"divan/cluster/sequence"
	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage/fault"
)

// userStore reads and writes the authentication database for package auth.
type userStore struct{ c *cluster.Coordinator }

// Get implements auth.UserStore.
func (s userStore) Get(ctx context.Context, db, name string) (u auth.UserDoc, err error) {
	err = s.c.Do(ctx, db, func(d *cluster.DB) error {
		got, err := d.Open(ctx, cluster.OpenOptions{ID: auth.UserPrefix + name, Conflicts: true})
		if err == nil {
			u = auth.UserDoc{Name: name, Rev: got.Rev, Body: got.Body, Conflicted: len(got.Conflicts) > 0, Atts: got.Atts}
		}
		return err
	})
	return u, err
}

// Put implements auth.UserStore.
func (s userStore) Put(ctx context.Context, db string, u auth.UserDoc) error {
	edit := shard.Edit{ID: auth.UserPrefix + u.Name, Parent: u.Rev, Body: u.Body}
	for _, a := range u.Atts {
		edit.Atts = append(edit.Atts, shard.EditAttachment{Attachment: a, Stub: true})
	}
	return s.c.Do(ctx, db, func(d *cluster.DB) error {
		results, err := d.Update(ctx, cluster.UpdateOptions{NewEdits: true, User: serverUser()}, []shard.Edit{edit})
		if err != nil {
			return err
		}
		return results[0].Err
	})
}

// serverUser is whose edits those are that the server makes by itself.
func serverUser() shard.User {
	return shard.User{Anonymous: true, Roles: []string{shard.AdminRole}}
}

// Watch implements auth.UserStore.
func (s userStore) Watch(ctx context.Context, db string, ready func(), changed func(name string)) error {
	d, err := s.c.DB(ctx, db)
	if err != nil {
		return err
	}
	since, err := sequence.ParseSince("now")
	if err != nil {
		return err
	}
	feed, err := d.Changes(ctx, cluster.ChangesQuery{Since: since, Limit: cluster.NoLimit})
	if err != nil {
		return fmt.Errorf("follow %s: %w", db, err)
	}
	defer feed.Close()
	ready()
	for {
		for feed.Next() {
			if name, ok := auth.UserName(feed.Row().ID); ok {
				changed(name)
			}
		}
		if err := feed.Err(); err != nil {
			return ended(ctx, fmt.Errorf("follow %s: %w", db, err))
		}
		if err := feed.Wait(ctx); err != nil {
			return ended(ctx, fmt.Errorf("follow %s: %w", db, err))
		}
	}
}

// ended returns nil for an error that only says that ctx ended.
func ended(ctx context.Context, err error) error {
	over := ctx.Err() != nil || errors.Is(err, io.EOF) || fault.Is(err, fault.Closed)
	if over {
		err = nil
	}
	return err
}
