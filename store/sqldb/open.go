package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/gofrs/flock"
	"github.com/lib/pq"
	_ "modernc.org/sqlite"
)

// StatementTimeout limits the server's own statements. It is the default limit
// for the statements of requests (Options.StatementTime).
const StatementTimeout = 10 * time.Second

// Sizes of the connection pools and of SQLite's caches. SQLite has one writer,
// and readers do not wait for it.
const (
	// DefaultConnections is the default of Options.Connections.
	DefaultConnections = 32
	// DefaultCacheBytes is the default of Options.CacheBytes.
	DefaultCacheBytes   = 256 << 20
	idleConnections     = 10
	followerConnections = 2
)

// Places is how many operations may hold a connection at the same time without
// waiting.
type Places struct {
	// Statements is for cheap statements and for writes.
	Statements int
	// Searches is for statements under Searching, at most half of the cores.
	Searches int
}

// sqliteConnections returns the largest useful number of connections to a file.
// SQLite runs in this process, so the cores limit it.
func sqliteConnections() int { return 4 * max(2, runtime.GOMAXPROCS(0)) }

// placesFor divides connections between statements and searches, at least one
// for each.
func placesFor(connections int) Places {
	searches := max(1, runtime.GOMAXPROCS(0)/2)
	return Places{Statements: max(1, connections-searches), Searches: min(searches, max(1, connections/4))}
}

// CheckURL returns an error unless databaseURL is of the form sqlite://PATH or
// postgres://... and its options are valid. It opens nothing.
func CheckURL(databaseURL string) error {
	path, err := parseURL(databaseURL)
	if err == nil && path == "" {
		_, err = postgresConfig(databaseURL)
	}
	return err
}

// parseURL returns the path of a SQLite URL, or "" for PostgreSQL.
func parseURL(databaseURL string) (path string, err error) {
	scheme, rest, found := strings.Cut(databaseURL, "://")
	switch {
	case found && scheme == "sqlite" && rest != "":
		return rest, nil
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return "", nil
	}
	return "",
		errors.New("the database URL must be sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE")
}

// openDatabase opens the database of a URL, and locks a SQLite file, which one
// server uses at a time. The lock is nil on PostgreSQL and with Options.InUse.
func openDatabase(ctx context.Context, options Options) (*Database, *flock.Flock, error) {
	path, err := parseURL(options.URL)
	connections := cmp.Or(options.Connections, DefaultConnections)
	places := placesFor(connections)
	switch {
	case err != nil:
		return nil, nil, err
	case path != "" && options.InUse:
		db, err := openSQLiteInUse(path)
		return db, nil, err
	case path != "":
		return openSQLite(ctx, path, placesFor(min(connections, sqliteConnections())),
			cmp.Or(options.CacheBytes, DefaultCacheBytes))
	}
	db, err := openPostgres(ctx, options.URL, places, cmp.Or(options.StatementTime, StatementTimeout))
	if err == nil {
		db.listenAddress, err = listenAddress(db.address, options.ListenURL)
	}
	if err == nil && options.ReadURL != "" {
		err = db.readsOn(options.ReadURL, cmp.Or(options.StatementTime, StatementTimeout))
	}
	if err == nil && !options.Unprepared {
		db.prepared = newPreparedStatements()
	}
	return db, nil, err
}

// openSQLiteInUse opens an existing file without its lock, to read.
func openSQLiteInUse(path string) (*Database, error) {
	file, err := identify(path)
	if err != nil {
		return nil, fmt.Errorf("open the database file: %w", err)
	}
	pool, err := openSQLitePool(file, 1, "query_only(1)")
	if err != nil {
		return nil, err
	}
	return &Database{dialectName: dialect.SQLite, path: path, file: file,
		places: placesFor(1), prepared: newPreparedStatements(),
		writer: pool, readers: pool, searches: pool, followers: pool}, nil
}

func openSQLite(ctx context.Context, path string, places Places, cacheBytes int64) (*Database, *flock.Flock, error) {
	lock := flock.New(path + ".lock")
	held, err := lock.TryLock()
	if err != nil {
		return nil, nil, fmt.Errorf("lock the database file %s: %w", path, err)
	}
	if !held {
		return nil, nil,
			fmt.Errorf("the database file %s is in use by another server; one SQLite file serves one server, use PostgreSQL for several", path)
	}
	if err := createPrivate(path); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("create the database file: %w", err), lock.Unlock())
	}
	file, err := identify(path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database file: %w", err), lock.Unlock())
	}
	db := &Database{dialectName: dialect.SQLite, path: path, file: file,
		places: places, prepared: newPreparedStatements()}
	readers := places.Statements + places.Searches + followerConnections + 1 // one stays open, see keepLog
	cache := fmt.Sprintf("cache_size(-%d)", max(1<<10, cacheBytes>>10/int64(1+readers)))
	if db.writer, err = openSQLitePool(file, 1, "foreign_keys(1)", cache); err != nil {
		return nil, nil, errors.Join(err, lock.Unlock())
	}
	if db.readers, err = openSQLitePool(file, readers, "foreign_keys(1)", "query_only(1)", cache); err != nil {
		return nil, nil, errors.Join(err, db.writer.Close(), lock.Unlock())
	}
	db.followers, db.searches = db.readers, db.readers
	if err := db.writer.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database file %s: %w", path, err), db.Close(), lock.Unlock())
	}
	return db, lock, nil
}

// openSQLitePool opens a pool with the pragmas that every connection needs, such
// as those for durability, followed by the given ones. Foreign keys are off
// unless a given pragma turns them on.
func openSQLitePool(of *sqliteFile, connections int, pragmas ...string) (*sql.DB, error) {
	settings := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_time_format": {"sqlite"}}
	pragmas = append([]string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "temp_store(MEMORY)",
	}, pragmas...)
	for _, pragma := range pragmas {
		settings.Add("_pragma", pragma)
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: of.path}).EscapedPath(), RawQuery: settings.Encode()}
	named, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(&sqliteConnector{named.Driver(), file.String(), of})
	if err := named.Close(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// postgresSettings are the connection settings for PostgreSQL.
type postgresSettings struct {
	pq.Config
	address string // the URL with defaults for missing settings
	isTimed bool   // whether the URL sets a statement timeout
}

// postgresConfig returns the settings of a URL, with defaults for missing ones.
// Session settings are part of the startup packet, so they cost no statement.
// Parameters travel with their statement in one round trip.
func postgresConfig(databaseURL string) (config postgresSettings, err error) {
	one, hosts := withoutHosts(databaseURL)
	parsed, err := url.Parse(one)
	if err != nil {
		return config, errors.New("the database URL cannot be read")
	}
	settings := parsed.Query()
	config.isTimed = settings.Has(timeoutSetting)
	defaults := map[string]string{
		"application_name":              "cadastre",
		"binary_parameters":             "yes",
		"default_transaction_isolation": "read committed",
		"jit":                           "off", // compiling a large filter takes seconds and saves less
		timeoutSetting:                  fmt.Sprint(StatementTimeout.Milliseconds()),
		"timezone":                      "UTC",
	}
	if hosts != "" { // pq reads several hosts with ports only from settings
		host, port := splitHosts(hosts)
		settings.Set("host", host)
		settings.Set("port", port)
	}
	if strings.Contains(settings.Get("host"), ",") {
		defaults["target_session_attrs"] = "read-write"
		defaults["connect_timeout"] = fmt.Sprint(severalHostsTime.Seconds())
	}
	for name, value := range defaults {
		if !settings.Has(name) {
			settings.Set(name, value)
		}
	}
	parsed.RawQuery = settings.Encode()
	config.address = parsed.String()
	if config.Config, err = pq.NewConfig(config.address); err != nil {
		return config, fmt.Errorf("read the database URL: %w", err)
	}
	return config, nil
}

// bounded returns the settings with a limit for each statement, unless the URL
// sets one.
func (s postgresSettings) bounded(limit time.Duration) pq.Config {
	config := s.Clone()
	if !s.isTimed {
		config.Runtime[timeoutSetting] = fmt.Sprint(max(0, limit.Milliseconds()))
	}
	return config
}

// withoutHosts cuts the hosts out of a URL with several. A URL with one host
// stays as it is, and hosts is "". net/url accepts one port, but PostgreSQL has
// one for each host.
func withoutHosts(databaseURL string) (one, hosts string) {
	scheme, rest, _ := strings.Cut(databaseURL, "://")
	end := len(rest)
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		end = at
	}
	user := strings.LastIndex(rest[:end], "@") + 1
	if hosts = rest[user:end]; !strings.Contains(hosts, ",") {
		return databaseURL, ""
	}
	return scheme + "://" + rest[:user] + rest[end:], hosts
}

// splitHosts splits the hosts of a URL, such as "one:5432,two", from their
// ports. A host without a port has PostgreSQL's default.
func splitHosts(text string) (hosts, ports string) {
	var host, port []string
	for one := range strings.SplitSeq(text, ",") {
		name, number, found := strings.Cut(one, ":")
		if !found {
			number = "5432"
		}
		host, port = append(host, name), append(port, number)
	}
	return strings.Join(host, ","), strings.Join(port, ",")
}

// listenAddress returns listenURL with defaults for settings; for "", address.
func listenAddress(address, listenURL string) (string, error) {
	if listenURL == "" {
		return address, nil
	}
	config, err := postgresConfig(listenURL)
	return config.address, err
}

// severalHostsTime limits how long a connection to one of several hosts takes.
// If a host hangs, each new connection waits that long before it tries another.
const severalHostsTime = 2 * time.Second

// timeoutSetting is PostgreSQL's setting that limits each statement.
const timeoutSetting = "statement_timeout"

// openPostgres opens one pool each for ordinary statements of requests, for
// searches, and for followers of other servers. A statement timeout in the URL
// applies to all pools.
func openPostgres(ctx context.Context, databaseURL string, places Places, limit time.Duration) (*Database, error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	of := new(history)
	bounded, err := of.connectorTo(config.bounded(limit))
	if err != nil {
		return nil, err
	}
	unbounded, err := of.connectorTo(config.Config)
	if err != nil {
		return nil, err
	}
	pool := newPool(bounded, places.Statements, idleConnections)
	searches := newPool(bounded, places.Searches, places.Searches)
	followers := newPool(unbounded, followerConnections, followerConnections)
	of.pools = []*sql.DB{pool, searches, followers}
	bounded.meet(ctx)
	if err := pool.PingContext(ctx); err != nil {
		err = fmt.Errorf("reach the database: %w", explainTLS(err, cmp.Or(config.SSLMode, pq.SSLModeRequire)))
		return nil, errors.Join(err, pool.Close(), searches.Close(), followers.Close())
	}
	return &Database{dialectName: dialect.Postgres, address: config.address,
		places: places, writer: pool, readers: pool,
		searches: searches, followers: followers, history: of}, nil
}

// connectorTo returns a connector to the primary.
func (h *history) connectorTo(config pq.Config) (*postgresConnector, error) {
	connector, err := newConnector(config)
	if err != nil {
		return nil, err
	}
	hosts, err := connectorsOf(config)
	return &postgresConnector{connector, h, hosts}, err
}

// newConnector returns a connector to the hosts of settings.
func newConnector(config pq.Config) (*pq.Connector, error) {
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	connector.Dialer(Dialer{Limit: answerLimit(config.Runtime[timeoutSetting])})
	return connector, nil
}

// connectorsOf returns a connector for each of several hosts, nil for one host.
func connectorsOf(config pq.Config) (connectors []*pq.Connector, err error) {
	if len(config.Multi) == 0 {
		return nil, nil
	}
	for _, one := range eachHost(config) {
		connector, err := newConnector(one)
		if err != nil {
			return nil, err
		}
		connectors = append(connectors, connector)
	}
	return connectors, nil
}

// eachHost returns the settings for each host of settings.
func eachHost(config pq.Config) (each []pq.Config) {
	first := pq.ConfigMultihost{Host: config.Host, Hostaddr: config.Hostaddr, Port: config.Port}
	for _, host := range append([]pq.ConfigMultihost{first}, config.Multi...) {
		one := config.Clone()
		one.Host, one.Hostaddr, one.Port, one.Multi = host.Host, host.Hostaddr, host.Port, nil
		each = append(each, one)
	}
	return each
}

// newPool returns a pool with limits for open and idle connections. It does not
// connect.
func newPool(by driver.Connector, connections, idle int) *sql.DB {
	pool := sql.OpenDB(by)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(idle)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool
}

// dialTime limits how long dialing takes.
const dialTime = 5 * time.Second

// Dialer dials connections with a limit for each single read or write, 0 for
// none. The PostgreSQL driver waits for an answer without a limit. If the
// server hangs or the network drops packets, neither a canceled context nor TCP
// keep-alive ends that wait.
type Dialer struct{ Limit time.Duration }

var (
	_ pq.Dialer        = Dialer{}
	_ pq.DialerContext = Dialer{}
)

// Dial dials a connection.
func (d Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout dials a connection with a timeout.
func (d Dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext dials a connection with a context.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil || d.Limit == 0 {
		return conn, err
	}
	return &boundedConn{Conn: conn, limit: d.Limit}, nil
}

// boundedConn is a connection with a time limit for each read and write, and the
// deadline that the driver sets while it connects.
type boundedConn struct {
	net.Conn
	limit    time.Duration
	deadline time.Time
}

func (c *boundedConn) SetDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func (c *boundedConn) next() time.Time {
	next := time.Now().Add(c.limit)
	if !c.deadline.IsZero() && c.deadline.Before(next) {
		return c.deadline
	}
	return next
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(c.next()); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.next()); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// answerLimit returns the limit for a statement and its answer: the statement
// timeout, as PostgreSQL prints it, plus a second. 0 is no limit.
func answerLimit(statement string) time.Duration {
	if milliseconds, err := strconv.Atoi(statement); err == nil {
		statement = fmt.Sprint(milliseconds, "ms")
	}
	limit, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(statement, "min", "m"), " ", ""))
	if err != nil || limit == 0 {
		return 0
	}
	return limit + time.Second
}
