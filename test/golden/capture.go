package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

var (
	expires     = regexp.MustCompile(`Expires=[^;]*`)
	captureHead = regexp.MustCompile(`^\w+=`)
)

// captureNames gives names to values of the answer:
// "name=path.in.body; other=header Set-Cookie regex".
func captureNames(s *step, a *answer, n *names) {
	for _, item := range splitCaptures(s.opts["capture"]) {
		name, where, _ := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" {
			continue
		}
		if v, ok := capturedValue(where, a); ok {
			n.capture(name, v)
		}
	}
}

// splitCaptures splits at those semicolons that another name follows.
func splitCaptures(text string) []string {
	var out []string
	for {
		at := -1
		for i := 0; i < len(text); i++ {
			if text[i] == ';' && captureHead.MatchString(strings.TrimLeft(text[i+1:], " ")) && i+1 < len(text) && text[i+1] == ' ' {
				at = i
				break
			}
		}
		if at < 0 {
			return append(out, text)
		}
		out, text = append(out, text[:at]), strings.TrimLeft(text[at+1:], " ")
	}
}

func capturedValue(where string, a *answer) (string, bool) {
	if rest, ok := strings.CutPrefix(where, "header "); ok {
		name, pattern, _ := strings.Cut(rest, " ")
		re, err := regexp.Compile(pattern)
		if err != nil {
			return "", false
		}
		m := re.FindStringSubmatch(a.headers[strings.ToLower(name)])
		if len(m) < 2 {
			return "", false
		}
		return m[1], true
	}
	v, err := decode(string(a.body))
	if err != nil {
		return "", false
	}
	if where != "" {
		for key := range strings.SplitSeq(where, ".") {
			if v, err = descend(v, key); err != nil {
				return "", false
			}
		}
	}
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return show(v, false), true
}

// descend returns the member or item of v with that name.
func descend(v any, key string) (any, error) {
	switch v := v.(type) {
	case object:
		if x, ok := v.get(key); ok {
			return x, nil
		}
	case []any:
		i, err := strconv.Atoi(key)
		if err == nil && i >= 0 && i < len(v) {
			return v[i], nil
		}
	}
	return nil, errNoJSON
}
