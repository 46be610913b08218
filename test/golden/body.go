package main

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	boundaryOf  = regexp.MustCompile(`boundary="?([^";]+)"?`)
	boundarySub = regexp.MustCompile(`boundary="?[^";]+"?`)
	innerBounds = regexp.MustCompile(`boundary="?([^";\s{}]+)"?`)
	beats       = regexp.MustCompile(`(?:event: heartbeat\ndata: \n\n)+`)
	emptyLines  = regexp.MustCompile(`(?:^|\n)\n+`)
)

const beat = "event: heartbeat\ndata: \n\n"

// normalBody returns what counts of the answer's body: nil, text or a value.
func normalBody(s *step, a *answer, n *names) (any, error) {
	if s.has("status-only") || s.has("fails") {
		return nil, nil
	}
	text := string(a.body)
	if s.has("heartbeats") {
		text = foldHeartbeats(s, text)
	}
	sel, err := newSelection(s, n)
	if err != nil {
		return nil, err
	}
	ctype := a.headers["content-type"]
	switch {
	case s.has("base64"):
		return base64.StdEncoding.EncodeToString(a.body), nil
	case s.has("multipart") && strings.HasPrefix(ctype, "multipart/"):
		return multipartValue(text, ctype, n), nil
	case s.has("raw"):
		return rawText(s, text, ctype, n)
	case s.has("lines"):
		lines := []any{}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			v, err := decode(line)
			if err != nil {
				return nil, err
			}
			lines = append(lines, v)
		}
		return normal(sel.apply(lines, nil), n, ""), nil
	}
	v, err := decode(text)
	if err != nil { // what is no JSON is compared as text
		return plainText(text, n), nil
	}
	return normal(sel.apply(inOrder(s, v), nil), n, ""), nil
}

// foldHeartbeats shows a run of heartbeats as one, or leaves them out.
func foldHeartbeats(s *step, text string) string {
	text = beats.ReplaceAllString(text, beat)
	if !s.has("lines") {
		text = strings.TrimLeft(text, "\n")
	}
	switch {
	case s.opts["heartbeats"] == "drop":
		return strings.ReplaceAll(text, beat, "")
	case s.has("lines"):
		return emptyLines.ReplaceAllStringFunc(text, func(m string) string {
			if m[0] == '\n' && len(m) > 1 || strings.HasPrefix(text, m) {
				return "\n\"{{heartbeat}}\"\n"
			}
			return m
		})
	}
	return text
}

func rawText(s *step, text, ctype string, n *names) (any, error) {
	if m := boundaryOf.FindStringSubmatch(ctype); m != nil {
		text = strings.ReplaceAll(text, m[1], "{{boundary}}")
	}
	seen := map[string]bool{}
	for _, m := range innerBounds.FindAllStringSubmatch(text, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			text = strings.ReplaceAll(text, m[1], "{{boundary"+string(rune('1'+len(seen)))+"}}")
		}
	}
	if s.has("grep") {
		pattern, err := n.fill(s.opts["grep"], regexp.QuoteMeta)
		if err != nil {
			return nil, err
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		text = grep(text, re)
	}
	return plainText(text, n), nil
}

// plainText returns a text whose lines end with LF, the last one with nothing.
func plainText(text string, n *names) string {
	return n.norm(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"))
}

// grep returns the matching lines, or of each what is in parentheses.
func grep(text string, re *regexp.Regexp) string {
	var hits []string
	for line := range strings.SplitSeq(text, "\n") {
		m := re.FindStringSubmatch(line)
		switch {
		case m == nil:
		case re.NumSubexp() > 0:
			hits = append(hits, m[1])
		default:
			hits = append(hits, line)
		}
	}
	return strings.Join(hits, "\n")
}

// multipartValue shows a multipart body as a list of parts.
func multipartValue(text, ctype string, n *names) any {
	m := boundaryOf.FindStringSubmatch(ctype)
	if m == nil {
		return n.norm(text)
	}
	parts := []any{}
	if text == "" {
		return parts
	}
	pieces := strings.Split("\r\n"+text, "\r\n--"+m[1])
	if strings.Trim(pieces[0], "\r\n") != "" {
		parts = append(parts, object{{"preamble", n.norm(pieces[0])}})
	}
	pieces = pieces[1:]
	closed := len(pieces) > 0 && strings.HasPrefix(pieces[len(pieces)-1], "--")
	if closed {
		pieces = pieces[:len(pieces)-1]
	}
	for _, piece := range pieces {
		parts = append(parts, partValue(piece, n))
	}
	if !closed {
		parts = append(parts, object{{"unterminated", true}})
	}
	return parts
}

func partValue(piece string, n *names) any {
	head, body, _ := strings.Cut(piece, "\r\n\r\n")
	headers, ctype, encoding := object{}, "", ""
	for line := range strings.SplitSeq(head, "\r\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch name {
		case "content-type":
			ctype = value
		case "content-encoding":
			encoding = value
		}
		headers = append(headers, member{name, value})
	}
	if encoding == "gzip" { // the length depends on the compressor
		if plain, err := gunzip([]byte(body)); err == nil {
			body = string(plain)
		}
	}
	var value any
	switch v, err := decode(body); {
	case strings.HasPrefix(ctype, "multipart/"):
		value = multipartValue(body, ctype, n)
	case !utf8.ValidString(body):
		value = "base64:" + base64.StdEncoding.EncodeToString([]byte(body))
	case strings.Contains(ctype, "json") && err == nil:
		value = normal(v, n, "")
	default:
		value = n.norm(body)
	}
	for i, h := range headers {
		text, _ := h.value.(string) // they were put in as strings above
		switch {
		case h.key == "content-length" && encoding == "gzip":
			headers[i].value = "{{any}}"
		case h.key == "content-type" && strings.HasPrefix(ctype, "multipart/"):
			headers[i].value = n.norm(boundarySub.ReplaceAllString(text, `boundary="{{boundary}}"`))
		default:
			headers[i].value = n.norm(text)
		}
	}
	return object{{"headers", headers}, {"body", value}}
}
