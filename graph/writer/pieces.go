package writer

import "sync"

// pieceBytes is the length of the pieces of an answer. A value that is longer
// than the rest of its piece makes the piece grow.
const pieceBytes = 64 << 10

// turnAt is the length after which the next value begins another piece. Most
// values fit into the rest.
const turnAt = pieceBytes - 2<<10

// Pieces lends the memory for answers. An answer takes little more memory than
// its bytes, and a new piece leaves the earlier ones in place. The zero value
// is ready to use, and safe for concurrent use.
type Pieces struct{ free sync.Pool }

// take returns an empty piece.
func (p *Pieces) take() []byte {
	if piece, ok := p.free.Get().(*[pieceBytes]byte); ok {
		return piece[:0]
	}
	return make([]byte, 0, pieceBytes)
}

// Give takes back a piece that is no longer read. It leaves a piece that has
// grown to the garbage collector.
func (p *Pieces) Give(piece []byte) {
	if cap(piece) == pieceBytes {
		p.free.Put((*[pieceBytes]byte)(piece[:pieceBytes]))
	}
}

// Whole returns the pieces as one byte slice, which several readers may share.
// Give does not take this slice back.
func (p *Pieces) Whole(pieces [][]byte) []byte {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	spare := 0
	if size == pieceBytes {
		spare = 1
	}
	text := make([]byte, 0, size+spare)
	for _, piece := range pieces {
		text = append(text, piece...)
	}
	return text
}
