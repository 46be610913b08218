package config

import (
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// TextNoEffect says of a setting that setting it changes nothing.
const TextNoEffect = "nothing reads this setting"

// Effective reports whether a setting has an effect: some part of the program reads it, by this name or by
// the one that it has today. Any other is kept and shown, and the client that sets it is told.
func Effective(section, key string) bool {
	switch section {
	case adminSection, "jwt_keys", "vhosts", "replicator.shares", "vendor", "couch_peruser":
		return true // the keys are names, or shown as they are
	}
	if strings.HasPrefix(section, "cors:") {
		section = "cors"
	}
	if slices.Contains(strings.Fields(inert), section+"/"+key) {
		return false
	}
	r := &reader{values: Values{}, seen: map[[2]string]bool{}}
	buildFrom(r)
	for _, name := range strings.Fields(readElsewhere) {
		s, k, _ := strings.Cut(name, "/")
		r.seen[[2]string{s, k}] = true
	}
	if r.seen[[2]string{section, key}] {
		return true
	}
	for _, now := range []string{"chttpd", "chttpd_auth"} {
		if formerly(now) == section && r.seen[[2]string{now, key}] {
			return renamed(key)
		}
	}
	return false
}

// inert are settings that are checked when they are set, and that nothing goes by. docs/configuration.md
// lists them.
const inert = `couchdb/stem_interactive_updates couchdb/js_engine cluster/reconnect_interval_sec
	chttpd/bulk_get_use_batches chttpd/disconnect_check_msec chttpd_auth/users_db_public
	csp/utils_enable csp/utils_header_value prometheus/interval purge/index_lag_warn_seconds
	query_server_config/os_process_limit query_server_config/os_process_soft_limit query_server_config/os_process_idle_limit
	fabric/all_docs_timeout fabric/attachments_timeout fabric/view_timeout fabric/partition_view_timeout fabric/all_docs_concurrency
	replicator/cluster_start_period replicator/socket_options replicator/valid_socket_options replicator/request_timeout
	replicator/session_refresh_interval_sec`

// readElsewhere are settings that other packages read as text.
const readElsewhere = `couchdb/uuid couchdb/single_node chttpd/authentication_handlers chttpd/max_connections chttpd/peer_header
	chttpd/trusted_proxies chttpd/vhost_global_handlers chttpd_auth/allow_conflicted_user_docs uuids/format`

// warnIneffective tells of the settings of files or of the environment that have no effect, a line for each.
func (h *Holder) warnIneffective(level Level, l Layer) {
	for _, section := range slices.Sorted(maps.Keys(l.Set)) {
		for _, key := range slices.Sorted(maps.Keys(l.Set[section])) {
			if !Effective(section, key) {
				h.log.Warn("setting has no effect: "+TextNoEffect, zap.String("section", section), zap.String("key", key), zap.Stringer("from", level))
			}
		}
	}
}
