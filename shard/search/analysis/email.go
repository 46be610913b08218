package analysis

import "strings"

// addressLimit is how long an address may be, in bytes, before the @ and in all.
const addressLimit = maxTerm

// emails finds the next token as standard does, but takes URLs and e-mail addresses
// as one.
func emails(s *Stream) (start, end int, ok bool) {
	start, end, ok = standard(s)
	for i := s.at; i < len(s.text) && (!ok || i <= start); i++ {
		if !addressByte(s.text[i]) || i > s.at && wordByte(s.text[i-1]) {
			continue // a word goes on here
		}
		if last := max(s.email(i), s.url(i)); last > i && (!ok || i < start || last > end) {
			return i, last, true
		}
	}
	return start, end, ok
}

func wordByte(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

// addressByte reports whether c may stand before the @.
func addressByte(c byte) bool { return wordByte(c) || containsByte("!#$%&'*+-/=?^_`{|}~", c) }

// email returns where the address ends that begins at i; 0 when none does.
func (s *Stream) email(i int) int {
	at := i
	for at < len(s.text) && at-i < addressLimit && (addressByte(s.text[at]) || at > i && s.text[at] == '.' && s.text[at-1] != '.') {
		at++
	}
	if at == i || at == len(s.text) || s.text[at] != '@' || s.text[at-1] == '.' {
		return 0
	}
	return s.hostname(at + 1)
}

// hostname returns where the name of a host ends that begins at i; 0 when none does.
func (s *Stream) hostname(i int) int {
	end := 0
	for from := i; from < len(s.text) && from-i < addressLimit; {
		label := from
		for label < len(s.text) && (wordByte(s.text[label]) || s.text[label] == '-' && label > from) {
			label++
		}
		for label > from && s.text[label-1] == '-' {
			label--
		}
		if label == from {
			break
		}
		end = label
		if label == len(s.text) || s.text[label] != '.' {
			break
		}
		from = label + 1
	}
	return end
}

// url returns where the URL ends that begins at i; 0 when none does. Without a scheme it
// needs a host whose last label is a top-level domain.
func (s *Stream) url(i int) int {
	rest := s.text[i:]
	host := i
	for _, scheme := range []string{"https://", "http://", "ftp://", "file://"} {
		if len(rest) > len(scheme) && strings.EqualFold(rest[:len(scheme)], scheme) {
			host += len(scheme)
		}
	}
	end := s.hostname(host)
	if end == 0 || host == i && !domain(s.text[host:end]) {
		return 0
	}
	if port := end + 1; end < len(s.text) && s.text[end] == ':' {
		for port < len(s.text) && '0' <= s.text[port] && s.text[port] <= '9' {
			port++
		}
		if port > end+1 {
			end = port
		}
	}
	if end == len(s.text) || !containsByte("/?#", s.text[end]) {
		return end
	}
	for end < len(s.text) && (wordByte(s.text[end]) || containsByte("-._~:/?#@!$&'()*+,;=%", s.text[end])) {
		end++
	}
	for containsByte("?!.,;:'", s.text[end-1]) { // the end of a sentence
		end--
	}
	return end
}

// domain reports whether the name of a host ends in a domain of a country or in one
// of the old generic ones.
func domain(host string) bool {
	dot := strings.LastIndexByte(host, '.')
	if dot < 0 {
		return false
	}
	switch top := strings.ToLower(host[dot+1:]); top {
	case "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "name", "pro", "aero", "asia", "cat", "coop",
		"jobs", "mobi", "museum", "tel", "travel", "xxx", "arpa":
		return true
	default:
		return len(top) == 2 && 'a' <= top[0] && top[0] <= 'z' && 'a' <= top[1] && top[1] <= 'z'
	}
}
