package migrate

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"divan/cmd/divan/httpclient"
)

// infosAtOnce is how many databases a server describes in one answer
// (max_db_number_for_dbs_info_req).
const infosAtOnce = 100

// infos describes databases of the source; those that are not there are left
// out.
func (m *migration) infos(ctx context.Context, names []string) (map[string]info, error) {
	var mu sync.Mutex
	out := make(map[string]info, len(names))
	add := func(name string, i info) {
		mu.Lock()
		defer mu.Unlock()
		out[name] = i
	}
	one := func(ctx context.Context, name string) error {
		i, there, err := m.source.info(ctx, name)
		if there {
			add(name, i)
		}
		return err
	}
	for chunk := range slices.Chunk(names, infosAtOnce) {
		rows, err := m.source.infosOf(ctx, chunk)
		if httpclient.Status(err) != 0 { // CouchDB before 2.2
			return out, m.each(ctx, names, one)
		}
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row.Info != nil {
				add(row.Key, *row.Info)
			}
		}
	}
	return out, nil
}

// infoRow is a database in the answer of _dbs_info; without Info there is none.
type infoRow struct {
	Key  string
	Info *info
}

func (s *side) infosOf(ctx context.Context, names []string) (rows []infoRow, err error) {
	body, err := json.Marshal(map[string][]string{"keys": names})
	if err != nil {
		return nil, err
	}
	text, err := s.Call(ctx, http.MethodPost, "/_dbs_info", body)
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(text, &rows)
}
