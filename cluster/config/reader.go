package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Problem is a value that does not parse; the default counts in its place.
type Problem struct {
	Section, Key string
	Want         string // what the value should have been
}

// Error says it without the value, which may be a secret.
func (p Problem) Error() string {
	return fmt.Sprintf("[%s] %s: the value should be %s", p.Section, p.Key, p.Want)
}

// reader parses the text values of one build and notes what does not parse.
type reader struct {
	values   Values
	problems []Problem
	seen     map[[2]string]bool // section and key of all that was looked up; nil: not noted
}

// formerly maps a section to the one that held its keys before CouchDB 3.2,
// so that an older local.ini is understood.
func formerly(section string) string {
	switch section {
	case "chttpd":
		return "httpd"
	case "chttpd_auth":
		return "couch_httpd_auth"
	}
	return ""
}

// renamed reports whether a key went to another section with its meaning: those of the port of one node stayed.
func renamed(key string) bool {
	return key != "port" && key != "bind_address" && key != "authentication_handlers"
}

// lookup returns a value with the section it was found in. An empty value
// counts as unset: that is how CouchDB's clients take a setting back.
func (r *reader) lookup(section, key string) (value, found string) {
	if r.seen != nil {
		r.seen[[2]string{section, key}] = true
	}
	if v := r.values[section][key]; v != "" {
		return v, section
	}
	if old := formerly(section); old != "" && renamed(key) {
		if v := r.values[old][key]; v != "" {
			return v, old
		}
	}
	return "", ""
}

func (r *reader) bad(section, key, want string) {
	r.problems = append(r.problems, Problem{Section: section, Key: key, Want: want})
}

func (r *reader) text(section, key, def string) string {
	if v, found := r.lookup(section, key); found != "" {
		return v
	}
	return def
}

// oneOf accepts the listed words only.
func (r *reader) oneOf(section, key, def string, words ...string) string {
	v, found := r.lookup(section, key)
	if found == "" {
		return def
	}
	for _, w := range words {
		if v == w {
			return v
		}
	}
	r.bad(found, key, "one of "+strings.Join(words, ", "))
	return def
}

func (r *reader) boolean(section, key string, def bool) bool {
	v, found := r.lookup(section, key)
	switch {
	case found == "":
	case v == "true":
		return true
	case v == "false":
		return false
	default:
		r.bad(found, key, "true or false")
	}
	return def
}

// span is the interval of numbers a key accepts.
type span struct {
	min, max int64
	infinity bool // the word infinity is accepted too
}

func atLeast(n int64) span           { return span{min: n, max: math.MaxInt64 - 1} }
func atLeastOrInfinity(n int64) span { return span{min: n, max: math.MaxInt64 - 1, infinity: true} }
func between(lo, hi int64) span      { return span{min: lo, max: hi} }

func (s span) String() string {
	text := fmt.Sprintf("an integer from %d to %d", s.min, s.max)
	if s.max == math.MaxInt64-1 {
		text = fmt.Sprintf("an integer of at least %d", s.min)
	}
	if s.infinity {
		text += " or infinity"
	}
	return text
}

// integer returns Infinity for the word infinity.
func (r *reader) integer(section, key string, def int64, ok span) int64 {
	v, found := r.lookup(section, key)
	if found == "" {
		return def
	}
	if ok.infinity && v == "infinity" {
		return Infinity
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < ok.min || n > ok.max {
		r.bad(found, key, ok.String())
		return def
	}
	return n
}

func (r *reader) count(section, key string, def int, ok span) int {
	ok.max = min(ok.max, math.MaxInt32)
	return int(r.integer(section, key, int64(def), ok))
}

// duration reads a number of units. With ok.infinity, infinity reads as 0.
func (r *reader) duration(section, key string, def, unit time.Duration, ok span) time.Duration {
	ok.max = min(ok.max, int64(math.MaxInt64/unit))
	switch n := r.integer(section, key, -1, ok); n {
	case -1:
		return def
	case Infinity:
		return 0
	default:
		return time.Duration(n) * unit
	}
}

func (r *reader) float(section, key string, def float64) float64 {
	v, found := r.lookup(section, key)
	if found == "" {
		return def
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		r.bad(found, key, "a number of at least 0")
		return def
	}
	return f
}

// list reads items separated by commas; empty items are dropped.
func (r *reader) list(section, key string, def ...string) []string {
	v, found := r.lookup(section, key)
	if found == "" {
		return def
	}
	return splitList(v)
}

func splitList(v string) []string {
	var out []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
