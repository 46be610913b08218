package search

import (
	"math"

	"divan/shard/search/postings"
)

// Radii of the earth at the equator.
const (
	earthKilometres = 6378.137
	earthMiles      = 3963.1906
)

// distance returns how far a document is from the place of a part of the order. One without
// a longitude is on the other side of the earth; one without a latitude on the equator.
func (o *order) distance(p *orderPart, s *Sort, n postings.Number) (float64, error) {
	radius := earthKilometres
	if s.Miles {
		radius = earthMiles
	}
	longitude, ok, err := greatestNumberOf(p.of, n)
	if err != nil {
		return 0, err
	}
	if !ok {
		return math.Pi * radius, nil
	}
	latitude, _, err := greatestNumberOf(p.latitude, n)
	return radius * angle(s.Longitude, s.Latitude, longitude, latitude), err
}

// angle is that between two places, in radians, by the haversine formula.
func angle(lon1, lat1, lon2, lat2 float64) float64 {
	const degree = math.Pi / 180
	north, east := math.Sin((lat2-lat1)*degree/2), math.Sin((lon2-lon1)*degree/2)
	h := north*north + east*east*math.Cos(lat1*degree)*math.Cos(lat2*degree)
	return 2 * math.Asin(math.Sqrt(max(0, min(1, h))))
}
