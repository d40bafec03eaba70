package writer

import "sync"

// pieceBytes is how long the pieces are that answers are written in. A value
// that is longer than what is left of one makes it grow.
const pieceBytes = 64 << 10

// turnAt is the length from which on the next value begins another piece: most
// values fit into the rest.
const turnAt = pieceBytes - 2<<10

// Pieces lends the memory that answers are written in. An answer holds little
// more than its bytes, and nothing is copied when it grows. The zero value is
// ready for use, by several goroutines at once.
type Pieces struct{ free sync.Pool }

// take returns an empty piece.
func (p *Pieces) take() []byte {
	if piece, ok := p.free.Get().(*[pieceBytes]byte); ok {
		return piece[:0]
	}
	return make([]byte, 0, pieceBytes)
}

// Give takes back a piece that nobody reads any more. One that has grown is
// left to the garbage collector.
func (p *Pieces) Give(piece []byte) {
	if cap(piece) == pieceBytes {
		p.free.Put((*[pieceBytes]byte)(piece[:pieceBytes]))
	}
}

// Whole returns pieces as one text that several can read: Give does not take it
// back.
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
