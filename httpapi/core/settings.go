package core

import (
	"strconv"

	"divan/cluster/config"
	"divan/httpapi/auth"
)

// settings is the part of the configuration that each request reads, made
// ready once per snapshot: sets, header values.
type settings struct {
	from *config.Snapshot

	maxRequestSize int64 // bytes of a body
	bodyMemory     int64 // bytes that all bodies and held answers may take
	minAnswerRate  int64 // bytes per second that a client has to take; 0: any
	heldSeconds    int64 // in which it has to take what is held for it
	maxActive      int64 // requests at the same time
	allowJSONP     bool
	serverHeader   []string
	preferMinimal  map[string]bool // lower case
	cors           *corsSettings   // nil: off
	requireUser    bool
	peers          auth.PeerRule
	vhosts         vhosts
}

// defaultMaxActive bounds the requests that are under way at the same time,
// feeds included: about 30 KB each.
const defaultMaxActive = 10_000

// newSettings makes a snapshot ready. version is the server's own.
func newSettings(cfg *config.Snapshot, version string) *settings {
	s := &settings{
		from:           cfg,
		maxRequestSize: cfg.Chttpd.MaxHTTPRequestSize,
		maxActive:      defaultMaxActive,
		minAnswerRate:  cfg.Chttpd.MinAnswerRate,
		heldSeconds:    max(1, int64(cfg.Chttpd.HeldAnswerTime.Seconds())),
		allowJSONP:     cfg.Chttpd.AllowJSONP,
		serverHeader:   []string{"CouchDB"},
		preferMinimal:  make(map[string]bool, len(cfg.Chttpd.PreferMinimal)),
		requireUser:    cfg.Chttpd.RequireValidUser,
		peers:          auth.NewPeerRule(cfg),
		vhosts:         newVHosts(cfg),
	}
	if text, ok := cfg.Get("chttpd", "max_connections"); ok {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			s.maxActive = n
		}
	}
	for _, name := range cfg.Chttpd.PreferMinimal {
		s.preferMinimal[name] = true
	}
	if cfg.Chttpd.ServerHeaderVersions {
		s.serverHeader = []string{"CouchDB/" + CouchDBVersion + " (Divan/" + version + ")"}
	}
	if cfg.Chttpd.EnableCORS {
		s.cors = newCORSSettings(cfg.CORS)
	}
	return s
}

// ServerHeader is the value of the Server header of every answer.
func (a *API) ServerHeader() string { return a.settings(a.Deps.Config.Load()).serverHeader[0] }

// CouchDBVersion is the version of CouchDB that clients are told.
const CouchDBVersion = "3.5.0"
