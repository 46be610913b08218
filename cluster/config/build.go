package config

import "maps"

// build makes a snapshot that takes v over, parsing every typed field. Problems are values that do not parse; the
// snapshot has the default in their place, while Get still shows the text.
func build(v Values) (*Snapshot, []Problem) {
	r := &reader{values: v}
	// Plain text must reach neither Admins nor what Get shows.
	maps.DeleteFunc(v[adminSection], func(_, stored string) bool { return !IsHashed(stored) })
	admins := v[adminSection]
	if len(admins) == 0 {
		delete(v, adminSection)
		admins = map[string]string{}
	}
	s := buildFrom(r)
	s.Admins, s.values = admins, v
	return s, r.problems
}

// buildFrom reads all but the administrators.
func buildFrom(r *reader) *Snapshot {
	return &Snapshot{
		CouchDB:     readCouchDB(r),
		Clustering:  readClustering(r),
		Chttpd:      readChttpd(r),
		ChttpdAuth:  readChttpdAuth(r),
		Lockout:     readLockout(r),
		JWT:         readJWT(r),
		Proxy:       readProxy(r),
		UUIDs:       readUUIDs(r),
		Attachments: readAttachments(r),
		CORS:        readCORS(r),
		CSP:         readCSP(r),
		Functions:   readFunctions(r),
		Log:         readLog(r),
		Prometheus:  readPrometheus(r),
		Queries:     Queries{Mango: readMango(r), Search: readSearch(r)},
		Limits:      readLimits(r),
		Vendor:      readVendor(r),
		SSL:         readSSL(r),
	}
}
