package writer

import "context"

// Events waits for the next event of a subscription. It returns false after the
// last event, or when the context ends.
type Events func(ctx context.Context) (event any, ok bool)

// EventsOf returns an Events function that receives from a channel.
func EventsOf[Event any](sent <-chan Event) Events {
	return func(ctx context.Context) (any, bool) {
		select {
		case event, ok := <-sent:
			return event, ok
		case <-ctx.Done():
			return nil, false
		}
	}
}
