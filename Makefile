# `make run` and `make test` are all that a newcomer needs; `make check` is the gate.

GO ?= go
# The race detector needs a C compiler; nothing else does. It leaves out what takes
# most of its time and shares no data of ours: the C of SQLite, made Go, which has
# its own locks, and what reads patterns. Locks and channels are seen there, too,
# but not sync/atomic. A package with generic code that others have cannot be left
# out.
UNWATCHED := modernc.org/sqlite/lib modernc.org/libc modernc.org/memory regexp regexp/syntax
RACE := $(if $(shell command -v gcc || command -v cc),-race $(foreach package,$(UNWATCHED),-gcflags='$(package)=-race=false'))
# How many inputs each fuzz target gets in the gate. With a time, Go 1.26 may report its
# end as a failure on a slow machine: https://github.com/golang/go/issues/75804.
FUZZ ?= 20000x

# The tools of tools/go.mod, and what linters are for: what is written by hand.
TOOL := $(GO) tool -modfile=tools/go.mod
WRITTEN = $$($(GO) list ./... | grep -vE '/ent(/|$$)|/graph/generated$$') ./ent/schema

.PHONY: release test-package test-chart test-openstack test-openstack-clients test-openstack-nova test-openstack-page test-openstack-sync test-postgres counts console console-figures run test race check check-without-test lint dependencies generated build generate migration fuzz soak bench weights bench-quick bench-docs bench-million chaos failover docs

run: build ## a demo cloud on http://127.0.0.1:8080
	./cadastre serve --demo

# Runs tests and lists those that failed at the end.
TESTS = $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg --raw-command -- $(GO) test -json -timeout 60m

# The longest packages begin first, so that no processor is idle at the end.
ALL := ./web ./graph ./...

test: ## every test, on SQLite and PostgreSQL; random tests have a ninth of their rounds (all with CADASTRE_TEST_PART=1)
	$(TESTS) $(ALL)

# Versions of tools/postgres, and packages whose tests open a database.
VERSIONS ?= 15 16 17 18
PACKAGES ?= $(shell $(GO) list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | sed -n 's, .*/store/storetest.*,,p')
test-postgres: ## tests that open a database, without the half on SQLite, on each version of PostgreSQL: make test-postgres VERSIONS='17 18' PACKAGES=./store/... (needs Linux on x64, node 20 or newer)
	npm ci --loglevel error --no-audit --no-fund --prefix tools/postgres
	@failed=; for version in $(VERSIONS); do \
	  programs=$(CURDIR)/tools/postgres/node_modules/postgres$$version/native/bin; \
	  $$programs/postgres --version && CADASTRE_TEST_POSTGRES= PATH=$$programs:$$PATH $(TESTS) -count=1 -skip '/^sqlite$$' $(PACKAGES) || failed="$$failed $$version"; \
	done; [ -z "$$failed" ] || { echo "failed on PostgreSQL$$failed"; exit 1; }

# The folder of Placement's gabbi files: placement/tests/functional/gabbits of its source.
GABBITS ?= /usr/lib/python3/dist-packages/placement/tests/functional/gabbits
test-openstack: build ## the functional tests of Placement and of Glance's definitions against new servers (needs python3-placement, python3-gabbi, python3-oslotest and python3-glance)
	/usr/bin/python3 -W ignore tools/openstack/image.py ./cadastre
	/usr/bin/python3 -W ignore tools/openstack/run_gabbi.py --program ./cadastre --gabbits $(GABBITS) $(OPENSTACK)

# A folder with a short path, and an empty database of PostgreSQL.
CLOUD ?= /tmp/cadastre-cloud
test-openstack-clients: build ## the commands of OpenStack's clients against Cadastre and the real services (needs the packages of docs/openstack.md)
	/usr/bin/python3 -W ignore tools/openstack/clients.py --program ./cadastre --folder $(CLOUD) $(OPENSTACK)

test-openstack-nova: build ## Nova with Cadastre as its Placement: make test-openstack-nova POSTGRES=URL OPENSTACK='--computes 5 --servers 50'
	/usr/bin/python3 -W ignore tools/openstack/real_nova.py --program ./cadastre --folder $(CLOUD) --postgres '$(POSTGRES)' $(OPENSTACK)

test-openstack-page: build ## the commands of docs/openstack.md against a cloud: make test-openstack-page CLOUD=DIR POSTGRES=URL
	tools/openstack/page.sh $(CLOUD) ./cadastre '$(POSTGRES)'

test-openstack-sync: build ## cadastre sync openstack against the real services: make test-openstack-sync OPENSTACK='--changes 100 --kills 6'
	/usr/bin/python3 -W ignore tools/openstack/sync.py --program ./cadastre --folder $(CLOUD) $(OPENSTACK)

# Long tests whose time is the browser's, and one that two servers on PostgreSQL make
# in the same way. The detector sees only Go, and other tests call the same Go.
LONG := ^(TestFormsOfTheConsole|TestTheConsoleRunsInABrowser|TestTheConsoleDrawsTenThousandHosts)$$|^TestNoUpdateIsLost$$/^sqlite$$

race: ## every test with the race detector, except the long ones above, and the ones that start the program, which has none
	$(TESTS) $(RACE) -skip '$(LONG)' $$($(GO) list $(ALL) | grep -vx github.com/cadastre-dev/cadastre)

check: test race check-without-test ## everything that must hold before a change lands

check-without-test: generated
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo "gofmt wants changes in the files above"; exit 1; }
	$(GO) vet ./...
	$(MAKE) lint
	$(MAKE) counts
	$(MAKE) dependencies
	$(MAKE) bench-quick
	CADASTRE_TEST_PART=1 $(GO) test ./store/resourcedb -run '^TestMetadataIsFoundByAnIndex$$'
	$(MAKE) fuzz

generated: generate ## what is generated is what is committed
	@git diff --exit-code --stat || { echo "make generate changed the files above: commit them"; exit 1; }

lint: ## what linters find in what is written by hand: all of them run, then make fails
	@failed=0; written="$(WRITTEN)"; \
	lint() { echo "lint: $$1"; $(TOOL) "$$@" || failed=1; }; \
	lint gocyclo -over 15 -ignore '^ent/([^s]|s[^c])|^graph/generated/|\.generated\.go$$|^client/generated\.go$$' .; \
	lint ineffassign $$written; \
	lint revive -config tools/revive.toml $$written; \
	lint unparam $$written; \
	lint errcheck -exclude tools/errcheck.txt $$written; \
	lint staticcheck $$written; \
	echo "lint: prose"; GO=$(GO) .ci/prose || failed=1; \
	exit $$failed

counts: ## lines, files, flags and exported names, each at most its bound in tools/counts/bounds.txt
	cd tools && $(GO) run ./counts .. counts/bounds.txt

dependencies: ## licences, known vulnerabilities and newer versions of what Cadastre is built from
	GO=$(GO) .ci/dependencies

build: ## the program, without C
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -o cadastre .

release: ## archives, checksums and bills of materials of HEAD, and the TypeScript client: make release VERSION=1.0.0 (needs node 20 or newer)
	cd tools && $(GO) run ./release -version '$(VERSION)' $(RELEASE)

# The package of the last release; without one, a package is upgraded to itself.
OLD ?= $(NEW)
test-package: ## installs, starts, upgrades and purges a Debian package on a new root, and runs docs/operations.md: make test-package OLD=FILE NEW=FILE (needs mmdebstrap and root)
	tools/package/test.sh '$(OLD)' '$(NEW)'
	tools/package/operations.py '$(NEW)'

test-chart: build ## renders deploy/chart, checks it and deploy/compose.yaml by their schemas, and runs the program as they do
	cd tools/chart && $(GO) vet . && $(GO) test -count=1 .

generate: ## ent, the merged schema, graph, client and the reference of commands, from ent/schema and schema
	$(GO) generate ./ent
	$(GO) run ./internal/generate
	$(GO) run ./internal/generate/commands

console: ## web/console from the sources of the console, byte for byte the same anywhere (needs node 20 or newer)
	npm ci --silent --no-audit --no-fund --prefix clients/typescript
	npm ci --silent --no-audit --no-fund --prefix console
	npm run --silent build --prefix console

console-figures: ## how soon the console draws 10,000 hosts, and how it scrolls, on a machine that does nothing else
	CADASTRE_TEST_FIGURES=1 $(GO) test ./web -count=1 -v -run '^TestTheConsoleDrawsTenThousandHosts$$'

docs: ## docs/ as a static site in build/site, with a reference of the API; a dead link fails (needs node 20 or newer)
	$(GO) run ./internal/generate reference
	npm ci --silent --no-audit --no-fund --prefix tools/site
	npm run --silent build --prefix tools/site

migration: ## the next migration of both dialects, from ent/schema: make migration NAME=add_x (needs PostgreSQL)
	$(GO) test ./store/sqldb -run '^TestWriteMigration$$' -write $(NAME)

fuzz: ## every fuzz target with $(FUZZ) inputs
	@for package in $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./...); do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9]+' $$package/*_test.go | cut -d' ' -f2); do \
	    echo "fuzz $$target"; \
	    $(GO) test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ) || exit 1; \
	  done; \
	done

soak: ## the large counts, written to docs/measured/soak.md: make soak SEED=20260101 DURATION=10m SCHEDULES=100000 REPLAYS=200 WRITES=100000 ANSWERS=20000 CUTS=25000 RETRIES=1000 DOCUMENTS=1000000 FORGED=100000 METADATA=10000 FOLLOWERS=100 KILLS=60
	GO=$(GO) SEED=$(SEED) DURATION=$(DURATION) SCHEDULES=$(SCHEDULES) REPLAYS=$(REPLAYS) WRITES=$(WRITES) ANSWERS=$(ANSWERS) CUTS=$(CUTS) RETRIES=$(RETRIES) DOCUMENTS=$(DOCUMENTS) FORGED=$(FORGED) METADATA=$(METADATA) FOLLOWERS=$(FOLLOWERS) KILLS=$(KILLS) PARTS="$(PARTS)" .ci/soak

bench: ## works timed on both databases and beside peers, and what prices weigh: make bench BENCH='-binary before=/old -binary after=/new'
	$(GO) -C bench run . $(BENCH)
	$(MAKE) weights

weights: ## what the work of an operation takes, for the weights in graph/document/price.go
	$(GO) test ./graph -run '^$$' -bench '^BenchmarkWeights$$' -benchtime 1x

bench-quick: ## vets and tests bench, a module of its own: among them the shapes and the growth of its works, which hold on every machine
	$(GO) -C bench vet ./...
	$(GO) -C bench test -count=1 -timeout 30m ./...

chaos: ## attacks and faults, on servers of its own: make chaos CHAOS='-attacks contains -for 1m'
	$(GO) -C bench run ./chaos $(CHAOS)

# How often a primary fails, and how many PostgreSQL there are.
ROUNDS ?= 100
NODES ?= 3
failover: ## fail-overs of PostgreSQL with Patroni under load: make failover ROUNDS=5 NODES=2 (needs etcd-server, patroni, python3-etcd, haproxy, pgbouncer)
	$(GO) -C bench run ./chaos -failovers $(ROUNDS) -nodes $(NODES) -timeout 6h $(CHAOS)

bench-docs: ## docs/measured, and the tables and drawings of docs/performance.md and docs/scale.md, anew, in about 15 minutes
	$(GO) -C bench run . -peers none -skip '$(LARGEST)' -providers 1000 -resources 1000 -rounds 3 -within 90s -json ../docs/measured/1000.jsonl
	$(GO) -C bench run . -rounds 5 -within 3m -json ../docs/measured/10000.jsonl
	$(GO) -C bench run . -peers none -skip '$(LARGEST)' -providers 100000 -resources 100000 -rounds 3 -within 4m -json ../docs/measured/100000.jsonl
	$(GO) -C bench run ./page

# What is measured at one size alone.
LARGEST = beside|several|smaller world|trees

bench-million: ## the same of a million providers and resources, which takes longer; bench-docs keeps what it wrote
	$(GO) -C bench run . -db postgres -peers none -skip '$(LARGEST)' -providers 1000000 -resources 1000000 -rounds 2 -timeout 3h -within 3h -json ../docs/measured/1000000.jsonl
	$(GO) -C bench run ./page
