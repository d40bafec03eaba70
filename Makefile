# `make run` and `make test` are all that a newcomer needs; `make check` is the gate.

.PHONY: run test check generate migration fuzz soak build
GO ?= go

build: ## the program, without C
	CGO_ENABLED=0 $(GO) build -o cadastre .

run: build ## a demo cloud on http://127.0.0.1:8080
	./cadastre serve --demo

test: ## every test, on SQLite and PostgreSQL; with the race detector where a C compiler is there
	$(GO) test $(if $(shell command -v gcc cc 2>/dev/null),-race) ./...

generate: ## everything generated: ent, graph, client
	$(GO) generate ./ent
	$(GO) run github.com/99designs/gqlgen generate

migration: ## the next migration of both dialects from the ent schema: make migration NAME=add_x
	$(GO) test ./store -run '^TestWriteMigration$$' -write $(NAME)
