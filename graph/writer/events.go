package writer

import "context"

// Events receives the next event of a subscription, for which it waits. It returns
// false where there is none any more, or the context has ended.
type Events func(ctx context.Context) (event any, ok bool)

// EventsOf returns what receives the events that are sent on a channel.
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
