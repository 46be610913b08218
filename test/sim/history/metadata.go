package history

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearTimeout bounds the search for an order of the operations on one
// database.
const linearTimeout = 20 * time.Second

// database is the metadata of one database.
type database struct {
	exists   bool
	security int
}

// metadataIsLinear: the changes of one database, and the answers that it does
// not exist, have one order that agrees with time. That it exists, and its
// security object, may be read from a node that does not know yet of what
// others did, but not from one through which it was done.
func (c *checker) metadataIsLinear() {
	byDB := map[string][]*Meta{}
	for i := range c.h.Metas {
		m := &c.h.Metas[i]
		byDB[m.DB] = append(byDB[m.DB], m)
	}
	for _, db := range slices.Sorted(maps.Keys(byDB)) {
		var ops []porcupine.Operation
		for i, m := range byDB[db] {
			if !m.strict() {
				c.readsOwnWrites(byDB[db], m)
				continue
			}
			until := int64(m.Return)
			if m.unknown() {
				until = math.MaxInt64 // it may still happen
			}
			ops = append(ops, porcupine.Operation{ClientId: i, Input: m, Output: m.Status, Call: int64(m.Call), Return: until})
		}
		if porcupine.CheckOperationsTimeout(metadataModel(), ops, linearTimeout) == porcupine.Illegal {
			c.report("the metadata of %s have no order: %s", db, describe(byDB[db]))
		}
	}
}

// unknown reports whether it may or may not have happened.
func (m *Meta) unknown() bool { return m.Status == 0 || m.Status >= 500 }

// strict reports whether an operation takes part in the one order.
func (m *Meta) strict() bool {
	read := m.Kind == Look || m.Kind == GetSecurity
	return !read || m.Status == 404
}

func metadataModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{database{}} },
		Step: func(state, input, _ any) []any {
			s, okState := state.(database)
			m, okInput := input.(*Meta)
			if !okState || !okInput {
				return nil
			}
			return m.step(s)
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return m.ToModel()
}

// step returns the states that may follow, none when the answer is wrong.
func (m *Meta) step(s database) []any {
	same, made, gone := s, database{exists: true}, database{}
	changed := database{true, m.Value}
	switch {
	case m.unknown() && m.Kind == Create && !s.exists:
		return []any{same, made}
	case m.unknown() && m.Kind == Delete && s.exists:
		return []any{same, gone}
	case m.unknown() && m.Kind == SetSecurity && s.exists:
		return []any{same, changed}
	case m.unknown():
		return []any{same}
	case m.Status == 404 && !s.exists, m.Status == 412 && m.Kind == Create && s.exists:
		return []any{same}
	case m.Status == 404 || m.Status == 412:
		return nil
	case m.Kind == Create && !s.exists:
		return []any{made}
	case m.Kind == Delete && s.exists:
		return []any{gone}
	case m.Kind == SetSecurity && s.exists:
		return []any{changed}
	}
	return nil
}

// readsOwnWrites looks at a database that was read: a node that has answered a deletion
// does not show it any more, and nothing is read that no client wrote.
func (c *checker) readsOwnWrites(all []*Meta, read *Meta) {
	if read.Status != 200 {
		return
	}
	var deleted *Meta
	for _, m := range all {
		if m.Kind == Delete && m.Status == 200 && m.Node == read.Node && m.Return < read.Call && (deleted == nil || m.Call > deleted.Call) {
			deleted = m
		}
	}
	made, written := false, read.Value == 0
	for _, m := range all {
		if m.Call > read.Return || m.Status == 404 || m.Status == 412 {
			continue
		}
		made = made || m.Kind == Create && (deleted == nil || m.unknown() || m.Return >= deleted.Call)
		written = written || m.Kind == SetSecurity && m.Value == read.Value
	}
	if !made || !written {
		c.report("%s: %s through %s at %v to %v shows what is not there: %s", read.DB, read.text(), read.Node, read.Call, read.Return, describe(all))
	}
}

func (m *Meta) text() string {
	name := [...]string{"create", "delete", "look", "set security", "get security"}[m.Kind]
	if m.Kind == SetSecurity || m.Kind == GetSecurity {
		name += fmt.Sprint(" ", m.Value)
	}
	return fmt.Sprintf("%s: %d", name, m.Status)
}

// describe lists operations by time.
func describe(all []*Meta) string {
	var out strings.Builder
	for _, m := range slices.SortedFunc(slices.Values(all), func(a, b *Meta) int { return int(a.Call - b.Call) }) {
		fmt.Fprintf(&out, "\n    %v to %v through %s: %s", m.Call, m.Return, m.Node, m.text())
	}
	return out.String()
}
