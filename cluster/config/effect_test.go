package config

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// The settings of CouchDB 3.5's default.ini, those that are comments in it as well, by what becomes of them here.
const (
	couchRead = `vendor/name couchdb/uuid couchdb/os_process_timeout couchdb/max_dbs_open couchdb/file_compression couchdb/default_security
		couchdb/maintenance_mode couchdb/changes_doc_ids_optimization_threshold couchdb/max_document_id_length couchdb/max_document_size
		couchdb/max_attachment_size couchdb/max_partition_size couchdb/single_node couchdb/users_db_security_editable
		couchdb/attachment_writer_timeout purge/max_document_id_number purge/max_revisions_number cluster/q cluster/n cluster/placement
		cluster/seedlist chttpd/port chttpd/bind_address chttpd/require_valid_user chttpd/require_valid_user_except_for_up
		chttpd/prefer_minimal chttpd/max_db_number_for_dbs_info_req chttpd/buffer_response chttpd/authentication_handlers
		chttpd/admin_only_all_dbs chttpd/secure_rewrites chttpd/allow_jsonp chttpd/enable_cors chttpd/enable_xframe_options
		chttpd/max_uri_length chttpd/changes_timeout chttpd/rewrite_limit chttpd/x_forwarded_host chttpd/x_forwarded_proto
		chttpd/x_forwarded_ssl chttpd/max_http_request_size chttpd/decode_plus_to_space chttpd/server_header_versions
		chttpd/WWW-Authenticate jwt_auth/required_claims jwt_auth/roles_claim_name jwt_auth/roles_claim_path jwt_keys/hmac:_default
		jwt_keys/rsa:foo jwt_keys/ec:bar couch_peruser/enable couch_peruser/delete_dbs couch_peruser/q couch_peruser/database_prefix
		httpd/secure_rewrites httpd/allow_jsonp httpd/enable_cors httpd/max_uri_length httpd/x_forwarded_host ssl/enable ssl/port
		ssl/cert_file ssl/key_file ssl/cacert_file ssl/verify_ssl_certificates ssl/fail_if_no_peer_cert ssl/tls_versions
		chttpd_auth/authentication_db chttpd_auth/authentication_redirect chttpd_auth/timeout chttpd_auth/auth_cache_size
		chttpd_auth/allow_persistent_cookies chttpd_auth/iterations chttpd_auth/min_iterations chttpd_auth/max_iterations
		chttpd_auth/password_scheme chttpd_auth/pbkdf2_prf chttpd_auth/password_regexp chttpd_auth/proxy_use_secret
		chttpd_auth/public_fields chttpd_auth/secret chttpd_auth/cookie_domain chttpd_auth/same_site chttpd_auth/hash_algorithms
		chttpd_auth/upgrade_hash_on_auth chttpd_auth/x_auth_username chttpd_auth/x_auth_roles chttpd_auth/x_auth_token
		couch_httpd_auth/authentication_db couch_httpd_auth/timeout couch_httpd_auth/secret chttpd_auth_lockout/mode
		chttpd_auth_lockout/threshold chttpd_auth_lockout/max_objects chttpd_auth_lockout/max_lifetime fabric/changes_duration
		fabric/request_timeout fabric/search_timeout fabric/nouveau_timeout mem3/sync_concurrency global_changes/max_event_delay
		global_changes/max_write_delay global_changes/update_db csp/showlist_enable csp/showlist_header_value csp/attachments_enable csp/attachments_header_value cors/credentials
		cors/origins cors/headers cors/methods cors/exposed_headers cors/max_age cors:http://example.com/credentials
		cors:http://example.com/origins x_frame_options/same_origin x_frame_options/hosts query_server_config/reduce_limit
		query_server_config/query_limit query_server_config/partition_query_limit mango/index_all_disabled mango/default_limit
		mango/index_scan_warning_threshold uuids/algorithm uuids/utc_id_suffix uuids/max_count attachments/compression_level
		attachments/compressible_types replicator/startup_jitter replicator/max_jobs replicator/interval replicator/max_churn
		replicator/max_history replicator/worker_processes replicator/worker_batch_size replicator/http_connections
		replicator/connection_timeout replicator/retries_per_request replicator/use_checkpoints replicator/use_bulk_get
		replicator/checkpoint_interval replicator/cert_file replicator/key_file replicator/password replicator/verify_ssl_certificates
		replicator/ssl_trusted_certificates_file replicator/ssl_certificate_max_depth replicator/usage_coeff replicator/priority_coeff
		replicator/valid_endpoint_protocols replicator/valid_proxy_protocols replicator/update_docs replicator.shares/_replicator
		log/level log/writer log/file dreyfus/limit dreyfus/limit_partitions dreyfus/max_limit dreyfus/max_limit_partitions
		reshard/max_jobs reshard/max_history reshard/max_retries reshard/retry_interval_sec reshard/require_node_param
		reshard/require_range_param prometheus/additional_port prometheus/bind_address prometheus/port vhosts/example.com admins/admin`

	couchWarned = `couchdb/database_dir couchdb/view_index_dir couchdb/util_driver_dir couchdb/plugin_dir couchdb/attachment_stream_buffer_size
		couchdb/btree_chunk_size couchdb/stem_interactive_updates couchdb/uri_file couchdb/update_lru_on_read couchdb/default_engine
		couchdb/enable_database_recovery couchdb/js_engine couchdb/write_xxhash_checksums couchdb_engines/couch
		process_priority/couch_server purge/index_lag_warn_seconds chttpd/backlog chttpd/socket_options chttpd/server_options
		chttpd/config_whitelist chttpd/bulk_get_use_batches chttpd/disconnect_check_msec httpd/port httpd/bind_address
		httpd/authentication_handlers httpd/server_options httpd/socket_options ioq/concurrency ioq/ratio ioq.bypass/os_process
		ioq.bypass/read ioq.bypass/write ioq.bypass/view_update ioq.bypass/shard_sync ioq.bypass/compaction chttpd_auth/users_db_public
		chttpd_auth_cache/max_lifetime chttpd_auth_cache/max_objects chttpd_auth_cache/max_size mem3/nodes_db mem3/shard_cache_size
		mem3/shards_db fabric/all_docs_concurrency fabric/all_docs_timeout fabric/attachments_timeout fabric/view_timeout
		fabric/partition_view_timeout fabric/shard_timeout_factor fabric/shard_timeout_min_msec fabric/uuid_prefix_len rexi/buffer_count
		rexi/server_per_node rexi/stream_limit rexi/use_kill_all view_updater/min_writer_items view_updater/min_writer_size
		csp/utils_enable csp/utils_header_value ddoc_cache/max_size
		ddoc_cache/refresh_timeout query_server_config/commit_freq query_server_config/os_process_limit
		query_server_config/os_process_idle_limit query_server_config/os_process_soft_limit query_server_config/group_info_timeout
		indexers/couch_mrview replicator/request_timeout replicator/socket_options replicator/valid_socket_options
		replicator/max_document_id_length replicator/missing_doc_retry_msec replicator/cluster_start_period
		replicator/cluster_quiet_period replicator/auth_plugins replicator/session_refresh_interval_sec log/max_message_size
		log/strip_last_msg log/filter_fields log/write_buffer log/write_delay log/syslog_host log/syslog_port log/syslog_appid
		log/syslog_facility stats/interval smoosh/db_channels smoosh/view_channels smoosh.ratio_dbs/priority smoosh.ratio_dbs/min_priority
		smoosh.slack_views/min_priority dreyfus/name dreyfus/retry_limit reshard/delete_source reshard/update_shard_map_timeout_sec
		reshard/source_close_timeout_sec nouveau/enable nouveau/url nouveau/max_sessions nouveau/max_pipeline_size
		disk_monitor/enable disk_monitor/background_view_indexing_threshold disk_monitor/interactive_view_indexing_threshold
		disk_monitor/interactive_database_writes_threshold couch_scanner/interval_sec couch_scanner_plugins/couch_scanner_plugin_find
		couch_auto_purge_plugin/min_batch_size mine/own`

	couchRefused = `native_query_servers/enable_erlang_query_server feature_flags/partitioned||* httpd_design_handlers/_view
		query_servers/javascript daemons/x external/x os_daemons/x httpd_db_handlers/x httpd_global_handlers/x`
)

// TestSettingsOfCouchDB goes through all settings of CouchDB's default.ini: each is read, or refused, or its setting
// is answered with a warning.
func TestSettingsOfCouchDB(t *testing.T) {
	for what, names := range map[string]string{"read": couchRead, "warned": couchWarned, "refused": couchRefused} {
		for name := range strings.FieldsSeq(names) {
			i := strings.LastIndexByte(name, '/')
			section, key := name[:i], name[i+1:]
			got := "warned"
			switch {
			case Blocked(section):
				got = "refused"
			case Effective(section, key):
				got = "read"
			}
			if got != what {
				t.Errorf("[%s] %s is %s, not %s", section, key, got, what)
			}
		}
	}
}

func TestIneffectiveFilesAreTold(t *testing.T) {
	name := filepath.Join(writeFiles(t, map[string]string{"local.ini": "[couchdb]\nuri_file = x\nmax_dbs_open = 100\n[mine]\na = 1\nb = 2\n"}), "local.ini")
	core, logged := observer.New(zap.WarnLevel)
	h, err := New(Options{Files: []string{name}, Environ: []string{"DIVAN_STATS__INTERVAL=5", "DIVAN_LOG__LEVEL=warn"}, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range logged.TakeAll() {
		f := e.ContextMap()
		got = append(got, f["section"].(string)+"/"+f["key"].(string)+" "+f["from"].(string))
	}
	if want := "couchdb/uri_file file, mine/a file, mine/b file, stats/interval environment"; strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
	if err := h.Reload(); err != nil || logged.Len() != 3 {
		t.Errorf("%d lines, %v", logged.Len(), err)
	}
}
