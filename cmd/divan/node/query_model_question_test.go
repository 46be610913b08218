package node

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// viewQuestion is one query of a view. Keys are JSON.
type viewQuestion struct {
	design    *modelDesign
	view      modelView
	partition string

	params     []string // name and value of each, in turns
	start, end string   // empty: no bound
	startID    string
	endID      string
	exclusive  bool
	desc       bool
	keys       []string // nil: none
	skip       int
	limit      int // -1: none
	reduces    bool
	level      int // -1: each key
	docs       bool
	conflicts  bool
	unsorted   bool // and uncounted
	update     string
}

func (q *viewQuestion) set(name string, value any) {
	q.params = append(q.params, name, fmt.Sprint(value))
}

// key draws a key that the view may have.
func (q *viewQuestion) key(m *queryModel, name string) string {
	key := rapid.SampledFrom(modelTexts()).Draw(m.T, name)
	switch rapid.IntRange(0, 4).Draw(m.T, name+" form") {
	case 0:
		return fmt.Sprintf("[%d,%s]", rapid.IntRange(0, 3).Draw(m.T, "g"), key)
	case 1:
		return fmt.Sprintf("[%d]", rapid.IntRange(0, 3).Draw(m.T, "g"))
	case 2:
		return fmt.Sprintf("[%d,{}]", rapid.IntRange(0, 3).Draw(m.T, "g"))
	case 3:
		return fmt.Sprintf("%q", m.id())
	default:
		return key
	}
}

// drawView draws a question.
func (m *queryModel) drawView(of *modelDesign) *viewQuestion {
	q := &viewQuestion{design: of, view: pick(m.T, of.views, "view"), limit: -1, update: "true"}
	if of.partitioned {
		q.partition = rapid.SampledFrom([]string{"a", "b", "c", "none"}).Draw(m.T, "partition")
	}
	q.reduces = q.view.reduce != ""
	if rapid.IntRange(0, 3).Draw(m.T, "reduce?") == 0 && q.reduces {
		q.reduces = rapid.Bool().Draw(m.T, "reduce")
		q.set("reduce", q.reduces)
	}
	q.drawRange(m)
	if q.desc = rapid.Bool().Draw(m.T, "descending"); q.desc {
		q.set("descending", true)
	}
	if rapid.IntRange(0, 2).Draw(m.T, "skip?") == 0 {
		q.skip = rapid.IntRange(0, 5).Draw(m.T, "skip")
		q.set("skip", q.skip)
	}
	if rapid.Bool().Draw(m.T, "limit?") {
		q.limit = rapid.SampledFrom([]int{0, 1, 2, 5, 20, 1000}).Draw(m.T, "limit")
		q.set("limit", q.limit)
	}
	q.drawGroups(m)
	if q.docs = !q.reduces && rapid.IntRange(0, 3).Draw(m.T, "docs") == 0; q.docs {
		q.set("include_docs", true)
		if q.conflicts = rapid.Bool().Draw(m.T, "conflicts"); q.conflicts {
			q.set("conflicts", true)
		}
	}
	if q.unsorted = rapid.IntRange(0, 7).Draw(m.T, "unsorted") == 0; q.unsorted {
		q.set("sorted", false)
	}
	if rapid.IntRange(0, 5).Draw(m.T, "update?") == 0 {
		q.update = rapid.SampledFrom([]string{"true", "false", "lazy"}).Draw(m.T, "update")
		q.set("update", q.update)
	}
	if rapid.IntRange(0, 5).Draw(m.T, "stable?") == 0 {
		q.set("stable", rapid.Bool().Draw(m.T, "stable"))
	}
	return q
}

// drawRange draws which keys are asked for.
func (q *viewQuestion) drawRange(m *queryModel) {
	switch rapid.IntRange(0, 5).Draw(m.T, "range") {
	case 0: // all
		return
	case 1:
		q.start = q.key(m, "key")
		q.end = q.start
		q.set("key", q.start)
	case 2:
		q.keys = []string{}
		for range rapid.IntRange(0, 4).Draw(m.T, "keys") {
			q.keys = append(q.keys, q.key(m, "one of keys"))
		}
		q.set("keys", "["+strings.Join(q.keys, ",")+"]")
		if len(q.keys) == 1 {
			q.start, q.end, q.keys = q.keys[0], q.keys[0], nil
		}
		return
	default:
		if rapid.IntRange(0, 3).Draw(m.T, "start?") > 0 {
			q.start = q.key(m, "startkey")
			q.set(rapid.SampledFrom([]string{"startkey", "start_key"}).Draw(m.T, "name"), q.start)
		}
		if rapid.IntRange(0, 3).Draw(m.T, "end?") > 0 {
			q.end = q.key(m, "endkey")
			q.set(rapid.SampledFrom([]string{"endkey", "end_key"}).Draw(m.T, "name"), q.end)
		}
	}
	if rapid.IntRange(0, 2).Draw(m.T, "startkey_docid?") == 0 {
		q.startID = m.id()
		q.set("startkey_docid", q.startID)
	}
	if rapid.IntRange(0, 2).Draw(m.T, "endkey_docid?") == 0 {
		q.endID = m.id()
		q.set("endkey_docid", q.endID)
	}
	if q.exclusive = rapid.IntRange(0, 2).Draw(m.T, "exclusive") == 0; q.exclusive {
		q.set("inclusive_end", false)
	}
}

func (q *viewQuestion) drawGroups(m *queryModel) {
	switch {
	case !q.reduces:
	case q.keys != nil || rapid.Bool().Draw(m.T, "group"):
		q.level = -1
		q.set("group", true)
	case rapid.Bool().Draw(m.T, "group by level"):
		q.level = rapid.IntRange(0, 4).Draw(m.T, "group_level")
		q.set("group_level", q.level)
	}
}

// path is where the view is asked.
func (q *viewQuestion) path() string {
	if q.partition != "" {
		return "/db/_partition/" + q.partition + q.design.path() + q.view.name
	}
	return "/db" + q.design.path() + q.view.name
}

// isText reports whether a parameter is no JSON in a query string.
func isText(name string) bool { return strings.HasSuffix(name, "docid") || name == "update" }

// query is the parameters as a query string, object as the body of a request.
func (q *viewQuestion) query() string {
	out := url.Values{}
	for i := 0; i < len(q.params); i += 2 {
		out.Set(q.params[i], q.params[i+1])
	}
	return out.Encode()
}

func (q *viewQuestion) object() string {
	var out []string
	for i := 0; i < len(q.params); i += 2 {
		value := q.params[i+1]
		if isText(q.params[i]) {
			value = strconv.Quote(value)
		}
		out = append(out, fmt.Sprintf("%q:%s", q.params[i], value))
	}
	return "{" + strings.Join(out, ",") + "}"
}
