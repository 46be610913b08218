package wire

import "errors"

// Belong says which cluster this node is part of; an empty origin says that it
// is of one but does not know which. Before it is called, Raft connections are
// refused: a node that still has to find out how it begins must not hear of a
// group that counts on what it has forgotten. Afterwards every connection to a
// node of another cluster is refused, and those that are open end.
func (p *Port) Belong(origin string) {
	var stale []*Conn
	p.mu.Lock()
	p.mu.member = true
	if origin != "" {
		p.mu.origin = origin
		for c := range p.mu.conns {
			if c.with.stale(origin) {
				stale = append(stale, c)
			}
		}
	}
	p.mu.Unlock()
	for _, c := range stale {
		_ = c.Close()
	}
}

// belongs reports whether Belong was called.
func (p *Port) belongs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.member
}

// maxForeign bounds the nodes of other clusters that are told of.
const maxForeign = 100

// tellForeign tells once of a node of another cluster, if err is about one: the
// nodes of either go on trying.
func (p *Port) tellForeign(err error) {
	var foreign *foreignError
	if p.o.Foreign == nil || !errors.As(err, &foreign) {
		return
	}
	p.mu.Lock()
	told := p.mu.foreign[*foreign] || len(p.mu.foreign) == maxForeign
	if !told {
		p.mu.foreign[*foreign] = true
	}
	p.mu.Unlock()
	if !told {
		p.o.Foreign(foreign.node)
	}
}
