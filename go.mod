module github.com/cadastre-dev/cadastre

go 1.26.0

require (
	entgo.io/ent v0.14.6
	github.com/99designs/gqlgen v0.17.95
	github.com/Khan/genqlient v0.8.1
	github.com/alecthomas/kong v1.17.0
	github.com/google/uuid v1.6.0
	github.com/lib/pq v1.12.3
	github.com/pressly/goose/v3 v3.29.0
	github.com/schollz/progressbar/v3 v3.19.1
	github.com/vektah/gqlparser/v2 v2.5.64
	github.com/vikstrous/dataloadgen v0.0.10
	golang.org/x/text v0.43.0
	gopkg.in/yaml.v3 v3.0.1
	honnef.co/go/tools v0.7.0
	modernc.org/sqlite v1.61.1
	pgregory.net/rapid v1.3.0
)
