package sqldb_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestANewerDatabaseIsRefused opens a database that a newer program migrated,
// and checks that nothing changes in it.
func TestANewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, closeDB, err := sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"INSERT INTO schema_migrations (version_id, is_applied) VALUES (9999, true)",
			"DELETE FROM traits WHERE name = 'HW_CPU_X86_AVX2'", // a start would insert it again
		} {
			if _, err := db.SQL().Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		before := countedRows(t, db)
		if err := closeDB(); err != nil {
			t.Fatal(err)
		}
		s, err = store.Open(t.Context(), store.Options{URL: url})
		if err == nil {
			_ = s.Close()
		}
		if err == nil ||
			!strings.Contains(err.Error(), "the database is newer than this program: its schema has version 9999") {
			t.Errorf("got %v", err)
		}
		db, closeDB, err = sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closeDB() }()
		if after := countedRows(t, db); !reflect.DeepEqual(before, after) {
			t.Errorf("rows before %v and after %v", before, after)
		}
	})
}

// countedRows returns the number of rows of each table.
func countedRows(t *testing.T, db sqldb.OpenedDatabase) map[string]int {
	t.Helper()
	rows := map[string]int{}
	for _, table := range append(tablesOf(t, db), "schema_migrations") {
		var n int
		if err := db.SQL().QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		rows[table] = n
	}
	return rows
}

// TestDatabaseFilesArePrivate checks the file modes of a new database, and of
// one that others could read before.
func TestDatabaseFilesArePrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cadastre.db")
	for _, mode := range []os.FileMode{0, 0o644, 0o666} {
		if mode != 0 {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite://" + path})
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) != 4 { // the database, its WAL, its shared memory, the lock
			t.Errorf("files %q, %v", files, err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", file, info.Mode(), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAClosedFileIsWhole closes stores while canceled transactions are rolled
// back. The file must then have the whole database, without a log next to it.
func TestAClosedFileIsWhole(t *testing.T) {
	t.Parallel()
	for round := range 40 {
		path := filepath.Join(t.TempDir(), "cadastre.db")
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite://" + path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(storetest.AsAdmin())
		for name, pool := range s.Pools() {
			if _, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: name == "readers"}); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + "-wal"); err == nil {
			t.Fatalf("round %d: a part of the database is in the log", round)
		}
	}
}

// TestTheModeOfTLSIsExplained connects to PostgreSQL servers whose TLS differs
// from the URL's sslmode.
func TestTheModeOfTLSIsExplained(t *testing.T) {
	t.Parallel()
	opens := func(t *testing.T, url, want string) {
		t.Helper()
		db, err := sqldb.Open(t.Context(), sqldb.Options{URL: url})
		if err == nil {
			_ = db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
	t.Run("no TLS", func(t *testing.T) {
		t.Parallel()
		url := storetest.EmptyPostgres(t)
		if !strings.Contains(url, "sslmode=disable") {
			t.Skip("the server of the tests may have TLS")
		}
		opens(t, strings.Replace(url, "sslmode=disable", "sslmode=require", 1), "add ?sslmode=disable")
		opens(t, strings.Replace(url, "sslmode=disable", "application_name=x", 1), "add ?sslmode=disable")
	})
	t.Run("an unknown certificate", func(t *testing.T) {
		t.Parallel()
		address := fakePostgres(t, func(connection net.Conn) {
			if _, err := connection.Write([]byte("S")); err == nil {
				_ = tls.Server(connection, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}).
					HandshakeContext(t.Context())
			}
		})
		for _, mode := range []string{"verify-full", "verify-ca"} {
			opens(t, "postgres://u:secret@"+address+"/db?sslmode="+mode,
				"sslmode="+mode+" verifies the certificate of the server: add sslrootcert=FILE")
		}
	})
	t.Run("TLS only", func(t *testing.T) {
		t.Parallel()
		address := fakePostgres(t, func(connection net.Conn) {
			refusal := "SFATAL\x00C28000\x00Mno pg_hba.conf entry for host, no encryption\x00\x00"
			_, _ = fmt.Fprintf(connection, "E\x00\x00\x00%c%s", len(refusal)+4, refusal)
		})
		opens(t, "postgres://u:secret@"+address+"/db?sslmode=disable", "use sslmode=require")
	})
	opens(t, "postgres://u:secret@127.0.0.1:1/db?sslmode=sometimes",
		`"sometimes" is not supported; supported values are`)
}

// fakePostgres starts a server that reads the first message of a PostgreSQL
// client and answers. It returns the address.
func fakePostgres(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			var length [4]byte
			if _, err := io.ReadFull(connection, length[:]); err == nil {
				_, _ = io.CopyN(io.Discard, connection, int64(length[3])-4+int64(length[2])<<8)
				answer(connection)
			}
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}

// selfSigned returns a self-signed certificate for 127.0.0.1.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "test"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestCheckURL checks URLs without opening the databases.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	for url, want := range map[string]string{
		"sqlite://" + path:                        "",
		"postgres://u@127.0.0.1:1/db":             "",
		"sqlite://":                               "the database URL must be",
		"cadastre.db":                             "the database URL must be",
		"mysql://u@h/db":                          "the database URL must be",
		"postgres://u:p@h:port/db":                "the database URL cannot be read",
		"postgres://u@h/db?sslmode=sometimes":     "supported values are",
		"postgresql://u@h/db?connect_timeout=now": "connect_timeout",
	} {
		err := sqldb.CheckURL(url)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a check makes the database file")
	}
}
