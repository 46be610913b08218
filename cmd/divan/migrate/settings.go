package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"divan/cluster/meta/dbsetting"
	"divan/cmd/divan/httpclient"
	"divan/storage/doc"
)

// create makes a database on the target like that of the source. One that is
// there already must be of the same kind.
func (m *migration) create(ctx context.Context, db string, source info) error {
	target, there, err := m.target.info(ctx, db)
	if err != nil {
		return err
	}
	if !there {
		query := url.Values{}
		if q := source.Cluster.Q; m.cfg.Q > 0 {
			query.Set("q", strconv.Itoa(m.cfg.Q))
		} else if q > 0 {
			query.Set("q", strconv.Itoa(q))
		}
		if source.Props.Partitioned {
			query.Set("partitioned", "true")
		}
		_, err := m.target.Call(ctx, http.MethodPut, path(db)+"?"+query.Encode(), nil)
		if err == nil || httpclient.Status(err) != http.StatusPreconditionFailed {
			return err
		}
		if target, _, err = m.target.info(ctx, db); err != nil { // another client has made it
			return err
		}
	}
	if target.Props.Partitioned != source.Props.Partitioned {
		return fmt.Errorf("a database of this name is on %s already, and only one of the two is partitioned", m.target.Host())
	}
	return nil
}

// settings brings what a database has beside its documents, and returns what
// stayed different.
func (m *migration) settings(ctx context.Context, db string) ([]string, error) {
	var different []string
	names := []string{"_security"}
	for _, s := range dbsetting.All() {
		names = append(names, s.Path())
	}
	for _, name := range names {
		problem, err := m.setting(ctx, path(db)+"/"+name)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			different = append(different, name+" "+problem)
		}
	}
	return different, nil
}

// setting brings one of them. Problem says why the target did not take it.
func (m *migration) setting(ctx context.Context, path string) (problem string, err error) {
	want, err := m.source.Call(ctx, http.MethodGet, path, nil)
	if status := httpclient.Status(err); status >= http.StatusBadRequest && status < http.StatusInternalServerError && !strings.HasSuffix(path, "/_security") {
		return "", nil // a source that does not have it
	}
	if err != nil {
		return "", err
	}
	if want, err = doc.Canonical(nil, want); err != nil {
		return "", fmt.Errorf("%s%s: %w", m.source.Host(), path, err)
	}
	have, err := m.target.Call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	if same, err := equal(have, want); same || err != nil {
		return "", err
	}
	_, err = m.target.Call(ctx, http.MethodPut, path, want)
	if status := httpclient.Status(err); status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return fmt.Sprintf("is %s there and stays %s here (%v)", want, bytes.TrimSpace(have), reason(err)), nil
	}
	return "", err
}

// equal compares JSON texts.
func equal(a, b []byte) (bool, error) {
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		return false, fmt.Errorf("read a setting: %w", err)
	}
	return reflect.DeepEqual(x, y), nil
}
