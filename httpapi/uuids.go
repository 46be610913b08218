package httpapi

// uuidSource makes document ids.
type uuidSource struct{}
