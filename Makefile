# Divan. The tools run at pinned versions through the Go proxy.
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
BUF := github.com/bufbuild/buf/cmd/buf@v1.73.0
NFPM := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.52.0
FUZZTIME ?= 60s
SEEDS ?= 500
TIMES ?= 50
export CGO_ENABLED ?= 0
export VERSION

.PHONY: help generate build run cluster image deb up test race race-all nightly verify fix lint fuzz crash sim replay chaos outage peers clients console browser attack model bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## bin/divan, one static binary (VERSION=1.2: of that version instead of the tag or the file VERSION)
	./dev build

run: ## a working database on 127.0.0.1:5984, data in ./data
	./dev run

cluster: build ## three nodes on this machine, each a process (N=5: five; PORT=20000: on 20000, 20010, …)
	./deploy/cluster.sh

node: build ## one more node beside those of a cluster that runs, the fourth (ADD=5: the fifth)
	ADD=$${ADD:-4} ./deploy/cluster.sh

image: build ## the container image "divan", which holds nothing but the binary
	docker build -t divan -f deploy/Dockerfile .

# dpkg has 1.3~rc1 before 1.3, which is what 1.3-rc1 says. A commit that has no tag is before the
# release that it becomes, the newer one behind the older one.
deb: build ## a Debian package in bin/, with a unit for systemd
	rm -f bin/divan_*.deb # apt would choose one of several
	version=$$(./bin/divan --version | sed 's/^divan v\{0,1\}//; s/-\([abpr]\)/~\1/; s/-/+/g'); \
	case $$version in *+*) version=$${version%%+*}~$$(git log -1 --format=%cd --date=format:%Y%m%d%H%M%S)+$${version#*+} ;; esac; \
	DEB_VERSION=$$version DEB_ARCH=$$(go env GOARCH) go run $(NFPM) package --config deploy/deb/nfpm.yaml --packager deb --target bin/

up: build ## three nodes in containers, set up as a cluster
	docker compose up --build -d

test: ## every test
	./dev test

# Where goroutines meet: the packages on tidy's list of files with go statements, and of those
# that the last commits touched (more than comments) the ones whose tests start goroutines. A
# clone that lacks so many commits tests everything.
CONCURRENT = grep -qE '\bgo func|\.Go\(|synctest|httptest|t\.Parallel'
RACE = $(shell git diff --quiet HEAD~10 HEAD~10 2>/dev/null || echo ./... ./test/...; \
	{ cut -d' ' -f1 test/tidy/testdata/goroutines.txt | xargs -n1 dirname; \
	git diff --numstat -I'^[[:space:]]*//' HEAD~10 -- '*.go' 2>/dev/null | cut -f3 | xargs -n1 dirname | sort -u | \
	while read -r d; do cat $$d/*_test.go 2>/dev/null | $(CONCURRENT) && echo $$d; done; } | \
	grep -v -e '^cmd/' -e '^test/' | sort -u | while read -r d; do ls $$d/*_test.go >/dev/null 2>&1 && echo ./$$d; done)

# One processor for each test binary: with more, the timers of a synctest bubble run on
# two threads with one context of the race detector, whose stack then grows until the
# process crashes (golang/go#78156). Races are found all the same.
RACETEST = CGO_ENABLED=1 GOMAXPROCS=1 go test -race -short -vet=off -timeout 30m -p $$(getconf _NPROCESSORS_ONLN)

race: ## the race detector where goroutines meet, and on what the last ten commits touched (needs a C compiler)
	$(RACETEST) $(RACE) ./cmd/divan/node

race-all: ## every test under the race detector
	$(RACETEST) ./... ./test/...

nightly: ## what CI leaves out: all under the race detector, 500 simulated clusters, every fuzz target, power cuts, attacks
	$(MAKE) race-all
	$(MAKE) sim SEEDS=500
	$(MAKE) fuzz FUZZTIME=20s
	$(MAKE) crash
	$(MAKE) attack

lint: ## golangci-lint, which has all of go vet, and dead code
	go run -ldflags='-s -w' $(GOLANGCI) run ./... ./test/...
	@out=$$(go run $(DEADCODE) -test ./... ./test/...) && test -z "$$out" || { echo "dead code:"; echo "$$out"; exit 1; }

verify: ## what CI checks before the tests: format, module files, the console's files, lint
	@out=$$(gofmt -l $$(git ls-files '*.go')) && test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	go mod tidy -diff
	go -C test mod tidy -diff
	go run ./test/console check
	$(MAKE) lint

fix: ## repairs what verify finds, as far as a tool can
	go mod tidy
	go -C test mod tidy
	go run $(GOLANGCI) run --fix ./... ./test/...
	go run $(GOLANGCI) fmt ./... ./test/...

generate: ## the messages between nodes and of the metadata, from the .proto files
	cd cluster/wire/wirepb && go run $(BUF) generate && sed -f service.sed -i wire_grpc.pb.go && gofmt -w wire_grpc.pb.go
	cd cluster/meta/metapb && go run $(BUF) generate

fuzz: ## every fuzz target for FUZZTIME each
	sh ./test/tidy/fuzz.sh $(FUZZTIME)

crash: ## 1,000 power cuts of shards in memory, 8,000 of stores, and 20 killed processes
	DIVAN_CRASHES=1000 go test -count=1 -run 'Crash|PowerCut' -timeout 60m ./storage/... ./shard/...
	DIVAN_KILLS=20 go test -count=1 -run Kill -timeout 30m ./cmd/divan/...

sim: ## 500 simulated clusters with faults (SEEDS=20000: as many)
	GOGC=800 DIVAN_SIM_SEEDS=$(SEEDS) go test -count=1 -vet=off -timeout 12h -run Seeds ./test/sim

replay: ## one simulated cluster 50 times, and how often it fails (SEED=4711, TIMES=200)
	GOGC=800 GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 DIVAN_SIM_SEED=$(SEED) DIVAN_SIM_REPLAYS=$(TIMES) go test -count=1 -timeout 12h -run Seeds -v ./test/sim

chaos: build ## five processes in network namespaces, killed, cut off, slowed down and with full disks for 30 minutes (needs root)
	go run ./test/chaos $(CHAOS)

outage: build ## what requests take while one of three nodes is away (needs root)
	go run ./test/chaos -outage -pause 20ms

peers: build ## replicates with PouchDB and pouchdb-server in every direction (needs Node.js and the npm registry)
	go run ./test/peers $(PEERS)

console: ## the files of the web console, from httpapi/console/web
	go run ./test/console build

browser: ## the web console in Chromium, which ./dev browser installs when there is none
	DIVAN_REQUIRE_BROWSER=1 go test -count=1 -vet=off ./test/browser

clients: build ## tries pouchdb-find, PouchDB's queries, nano, couchbackup and promtool on a server (needs Node.js, the npm registry and the Go proxy)
	go run ./test/clients $(CLIENTS)

attack: build ## an attacker and a clumsy operator against real processes, in about five minutes (a full disk needs root)
	go run ./test/attack $(ATTACK)

model: ## random queries against models in memory, DIVAN_MODEL_MINUTES each (60); DIVAN_MODEL_SEED=n asks those of a failed round again
	DIVAN_MODEL_MINUTES=$${DIVAN_MODEL_MINUTES:-60} go test -count=1 -timeout 0 -v -run 'RowsAgainstModel|SelectorsAgainstModel' ./cmd/divan/node/...

bench: build ## loads a server of its own and prints the figures
	go test -count=1 -run '^$$' -bench . ./storage/... ./shard/... ./cluster/... ./httpapi/...

clean: ## removes what was built
	rm -rf bin
