package config

// build parses every typed field. Problems are values that do not parse; the
// snapshot has the default in their place, while Get still shows the text.
func build(v Values) (*Snapshot, []Problem) {
	r := &reader{values: v}
	admins := make(map[string]string, len(v[adminSection]))
	for name, stored := range v[adminSection] {
		admins[name] = stored
	}
	return &Snapshot{
		CouchDB:     readCouchDB(r),
		Cluster:     readCluster(r),
		Chttpd:      readChttpd(r),
		ChttpdAuth:  readChttpdAuth(r),
		Lockout:     readLockout(r),
		JWT:         readJWT(r),
		Proxy:       readProxy(r),
		Admins:      admins,
		UUIDs:       readUUIDs(r),
		Attachments: readAttachments(r),
		CORS:        readCORS(r),
		CSP:         readCSP(r),
		Log:         readLog(r),
		Prometheus:  readPrometheus(r),
		Mango:       readMango(r),
		Limits:      readLimits(r),
		Fabric:      readFabric(r),
		Vendor:      readVendor(r),
		SSL:         readSSL(r),
		values:      v,
	}, r.problems
}
