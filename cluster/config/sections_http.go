package config

import (
	"strings"
	"time"
)

// Chttpd is section [chttpd].
type Chttpd struct {
	BindAddress string // "any" is spelled 0.0.0.0
	Port        int

	RequireValidUser     bool
	ExceptUp             bool // require_valid_user_except_for_up
	AdminOnlyAllDBs      bool
	AuthHandlers         []string // of cookie, default, proxy, jwt, null; in this order
	EnableCORS           bool
	XFrame               XFrameOptions
	ServerHeaderVersions bool
	DecodePlusToSpace    bool
	BufferResponse       bool
	AllowJSONP           bool
	BulkGetUseBatches    bool
	RequestLimits
	MaxDBsInfo          int // max_db_number_for_dbs_info_req
	ChangesTimeout      time.Duration
	DisconnectCheck     time.Duration // how often a waiting request looks whether its client is still there; 0: never
	Forwarded           Forwarded
	PreferMinimal       []string // headers kept for "Prefer: return=minimal", lower case
	AuthenticationRealm string   // value of WWW-Authenticate; empty: none is sent
}

// RequestLimits bound what one client can ask for.
type RequestLimits struct {
	MaxHTTPRequestSize int64 // bytes of a body
	MaxURILength       int64 // bytes
	AddressShare       int   // percent of all connections that one address may have: connections_per_address
	MinBodyRate        int64 // bytes per second that a body has to come with after BodyGrace; 0: any
	BodyGrace          time.Duration
	MaxBodyMemory      int64         // bytes that the bodies of all requests may take, and answers that are held; 0: by the memory of the machine
	MinAnswerRate      int64         // bytes per second that a client has to take while it is waited for; 0: any
	HeldAnswerTime     time.Duration // in which a client has to take an answer that is held in memory
}

// Forwarded names the headers a proxy in front sets.
type Forwarded struct{ Host, Proto, SSL string }

// XFrameOptions is enable_xframe_options of [chttpd] and section [x_frame_options].
type XFrameOptions struct {
	Enable     bool
	SameOrigin bool
	Hosts      []string
}

func readChttpd(r *reader) Chttpd {
	const s = "chttpd"
	return Chttpd{
		BindAddress:          anyAddress(r.text(s, "bind_address", "127.0.0.1")),
		Port:                 r.count(s, "port", 5984, between(0, 65535)),
		RequireValidUser:     r.boolean(s, "require_valid_user", false),
		ExceptUp:             r.boolean(s, "require_valid_user_except_for_up", false),
		AdminOnlyAllDBs:      r.boolean(s, "admin_only_all_dbs", true),
		AuthHandlers:         readHandlers(r),
		EnableCORS:           r.boolean(s, "enable_cors", false),
		XFrame:               readXFrame(r),
		ServerHeaderVersions: r.boolean(s, "server_header_versions", true),
		DecodePlusToSpace:    r.boolean(s, "decode_plus_to_space", true),
		BufferResponse:       r.boolean(s, "buffer_response", false),
		AllowJSONP:           r.boolean(s, "allow_jsonp", false),
		BulkGetUseBatches:    r.boolean(s, "bulk_get_use_batches", true),
		RequestLimits:        readRequestLimits(r),
		MaxDBsInfo:           r.count(s, "max_db_number_for_dbs_info_req", 100, atLeast(0)),
		ChangesTimeout:       r.duration(s, "changes_timeout", time.Minute, time.Millisecond, atLeastOrInfinity(0)),
		DisconnectCheck:      r.duration(s, "disconnect_check_msec", 30*time.Second, time.Millisecond, atLeastOrInfinity(0)),
		Forwarded: Forwarded{
			Host:  r.text(s, "x_forwarded_host", "X-Forwarded-Host"),
			Proto: r.text(s, "x_forwarded_proto", "X-Forwarded-Proto"),
			SSL:   r.text(s, "x_forwarded_ssl", "X-Forwarded-Ssl"),
		},
		PreferMinimal: lowerAll(r.list(s, "prefer_minimal", "cache-control", "content-length", "content-range",
			"content-type", "etag", "server", "transfer-encoding", "vary")),
		AuthenticationRealm: r.text(s, "WWW-Authenticate", ""),
	}
}

func readRequestLimits(r *reader) RequestLimits {
	const s = "chttpd"
	return RequestLimits{
		MaxHTTPRequestSize: r.integer(s, "max_http_request_size", 4<<30, atLeastOrInfinity(0)),
		MaxURILength:       r.integer(s, "max_uri_length", Infinity, atLeastOrInfinity(1)),
		AddressShare:       r.count(s, "connections_per_address", 50, between(1, 100)),
		MinBodyRate:        r.integer(s, "min_body_rate", 1024, atLeast(0)),
		MaxBodyMemory:      r.integer(s, "max_body_memory", 0, atLeast(0)),
		MinAnswerRate:      r.integer(s, "min_answer_rate", 1024, atLeast(0)),
		HeldAnswerTime:     r.duration(s, "held_answer_time", 10*time.Minute, time.Second, atLeast(1)),
		BodyGrace:          r.duration(s, "body_grace", 30*time.Second, time.Second, atLeast(1)),
	}
}

func readXFrame(r *reader) XFrameOptions {
	return XFrameOptions{
		Enable:     r.boolean("chttpd", "enable_xframe_options", false),
		SameOrigin: r.boolean("x_frame_options", "same_origin", true),
		Hosts:      r.list("x_frame_options", "hosts"),
	}
}

// readHandlers reads CouchDB's Erlang notation, "{chttpd_auth,
// cookie_authentication_handler}, …", or the bare names.
func readHandlers(r *reader) []string {
	const s, key = "chttpd", "authentication_handlers"
	def := []string{"cookie", "default"}
	// Not looked up under [httpd]: there it names the handlers of another port.
	v := r.values[s][key]
	if v == "" {
		return def
	}
	var out []string
	v = strings.NewReplacer("{", " ", "}", " ", ",", " ").Replace(v)
	for _, word := range strings.Fields(v) {
		name := strings.TrimSuffix(word, "_authentication_handler")
		switch name {
		case "cookie", "default", "proxy", "jwt", "null":
			out = append(out, name)
		case "chttpd_auth", "couch_httpd_auth": // modules
		case "proxy_authentification_handler", "proxy_authentification": // CouchDB's old spelling
			out = append(out, "proxy")
		default:
			r.bad(s, key, "a list of {chttpd_auth, <cookie|default|proxy|jwt>_authentication_handler}")
			return def
		}
	}
	return out
}

func lowerAll(items []string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = strings.ToLower(item)
	}
	return out
}

// CORS is section [cors] and its variants for one host, [cors:<host>].
type CORS struct {
	CORSRules
	Hosts map[string]CORSRules // by the Host header of the request, lower case
}

// CORSRules says which pages of other origins may call.
type CORSRules struct {
	Credentials    bool
	Origins        []string // lower case; "*" is any
	Headers        []string // lower case; nil: the built-in list
	Methods        []string // upper case; nil: the built-in list
	ExposedHeaders []string // lower case; nil: the built-in list
	MaxAge         time.Duration
}

func readCORS(r *reader) CORS {
	c := CORS{CORSRules: readCORSRules(r, "cors"), Hosts: map[string]CORSRules{}}
	for section := range r.values {
		if host, ok := strings.CutPrefix(section, "cors:"); ok {
			c.Hosts[strings.ToLower(host)] = readCORSRules(r, section)
		}
	}
	return c
}

func readCORSRules(r *reader, s string) CORSRules {
	rules := CORSRules{
		Credentials: r.boolean(s, "credentials", false),
		Origins:     lowerAll(r.list(s, "origins")),
		MaxAge:      r.duration(s, "max_age", 10*time.Minute, time.Second, atLeast(0)),
	}
	if list := r.list(s, "headers"); len(list) > 0 {
		rules.Headers = lowerAll(list)
	}
	if list := r.list(s, "exposed_headers"); len(list) > 0 {
		rules.ExposedHeaders = lowerAll(list)
	}
	for _, m := range r.list(s, "methods") {
		rules.Methods = append(rules.Methods, strings.ToUpper(m))
	}
	return rules
}

// CSP is section [csp].
type CSP struct {
	Utils, Attachments, ShowList CSPRule
}

// CSPRule is one Content-Security-Policy header.
type CSPRule struct {
	Enable bool
	Value  string
}

func readCSP(r *reader) CSP {
	rule := func(prefix, value string) CSPRule {
		return CSPRule{
			Enable: r.boolean("csp", prefix+"_enable", true),
			Value:  r.text("csp", prefix+"_header_value", value),
		}
	}
	return CSP{
		Utils: rule("utils", "default-src 'self'; img-src 'self' data:; font-src 'self'; "+
			"script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"),
		Attachments: rule("attachments", "sandbox"),
		ShowList:    rule("showlist", "sandbox"),
	}
}

// Functions is the keys of [chttpd] about functions of design documents.
type Functions struct {
	ScrubRequest   bool // scrub_json_request: they do not see who the user is by the headers
	SecureRewrites bool // rules cannot lead out of the database
	RewriteLimit   int  // of rewrites of rewrites
}

func readFunctions(r *reader) Functions {
	const s = "chttpd"
	return Functions{
		ScrubRequest:   r.boolean(s, "scrub_json_request", true),
		SecureRewrites: r.boolean(s, "secure_rewrites", true),
		RewriteLimit:   r.count(s, "rewrite_limit", 100, atLeast(1)),
	}
}

// SSL is section [ssl].
type SSL struct {
	Enable      bool
	BindAddress string
	Port        int
	CertFile    string
	KeyFile     string
	CACertFile  string
	VerifyPeer  bool // verify_ssl_certificates
	RequireCert bool // fail_if_no_peer_cert
	TLSVersions []string
}

func readSSL(r *reader) SSL {
	const s = "ssl"
	var versions []string
	for _, v := range splitList(strings.NewReplacer("[", "", "]", "", "'", "").Replace(r.text(s, "tls_versions", ""))) {
		versions = append(versions, v)
		switch v {
		case "tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3":
		default:
			r.bad(s, "tls_versions", "a list of tlsv1, tlsv1.1, tlsv1.2, tlsv1.3")
			versions = nil
		}
	}
	return SSL{
		Enable:      r.boolean(s, "enable", false),
		BindAddress: r.text(s, "bind_address", ""),
		Port:        r.count(s, "port", 6984, between(0, 65535)),
		CertFile:    r.text(s, "cert_file", ""),
		KeyFile:     r.text(s, "key_file", ""),
		CACertFile:  r.text(s, "cacert_file", ""),
		VerifyPeer:  r.boolean(s, "verify_ssl_certificates", false),
		RequireCert: r.boolean(s, "fail_if_no_peer_cert", false),
		TLSVersions: versions,
	}
}
