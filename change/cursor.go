package change

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/problem"
)

// KeySize is the size in bytes of the key of a Sealer.
const KeySize = 32

// Sealer turns positions into cursors that reveal nothing, and back. All
// cursors have the same length, equal positions have equal cursors, and a
// cursor of another key is refused. The sealer encrypts a position under a
// synthetic initialization vector, which also authenticates it.
type Sealer struct {
	block         cipher.Block
	authenticator []byte
}

// NewSealer returns a sealer with a key, which must be random.
func NewSealer(key []byte) (*Sealer, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("the key of cursors has %d bytes, it must have %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(code(key, []byte("encrypt cursors of changes")))
	return &Sealer{block: block, authenticator: code(key, []byte("authenticate cursors of changes"))}, err
}

func code(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// Sizes of the parts of a cursor, in bytes.
const (
	positionSize = 24
	vectorSize   = aes.BlockSize
)

// Seal returns the cursor of a position. It keeps the times in microseconds.
func (s *Sealer) Seal(p Position) string {
	var text [positionSize]byte
	binary.BigEndian.PutUint64(text[:8], uint64(p.ID))
	binary.BigEndian.PutUint64(text[8:], uint64(p.Row.UnixMicro()))
	binary.BigEndian.PutUint64(text[16:], uint64(p.At.UnixMicro()))
	vector := code(s.authenticator, text[:])[:vectorSize]
	sealed := make([]byte, vectorSize+positionSize)
	copy(sealed, vector)
	cipher.NewCTR(s.block, vector).XORKeyStream(sealed[vectorSize:], text[:])
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns the position of a cursor, or ErrInvalidInput for a string that
// this sealer did not make.
func (s *Sealer) Open(cursor string) (Position, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(sealed) != vectorSize+positionSize {
		return Position{}, refuseCursor()
	}
	var text [positionSize]byte
	cipher.NewCTR(s.block, sealed[:vectorSize]).XORKeyStream(text[:], sealed[vectorSize:])
	if !hmac.Equal(code(s.authenticator, text[:])[:vectorSize], sealed[:vectorSize]) {
		return Position{}, refuseCursor()
	}
	return Position{ID: int64(binary.BigEndian.Uint64(text[:8])), Row: timeIn(text[8:]), At: timeIn(text[16:])}, nil
}

func timeIn(text []byte) time.Time { return time.UnixMicro(int64(binary.BigEndian.Uint64(text))).UTC() }

func refuseCursor() error { return problem.Invalid("after", "is not a cursor of this feed") }
