package sync

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/origin"
)

// Ended is called with the result of each pass of this program. pass is nil if
// the passes could not be made, such as for refused credentials.
type Ended func(pass *Pass, result Result, err error)

// Follower repeats passes, each at the interval of its kind. Several followers
// of one cloud share the work: a follower skips a pass that another one has
// just made.
type Follower struct {
	Server graphql.Client
	Passes []*Pass
	// Again reads the catalogue again, and returns the passes of the plan; nil for
	// a follower that never does so.
	Again func(ctx context.Context) ([]*Pass, error)
	Ended Ended
	// Now returns the time. Wait waits, and reports whether the whole time passed.
	// Random returns numbers from 0 to 1.
	Now    func() time.Time
	Wait   func(ctx context.Context, length time.Duration) bool
	Random func() float64
}

// catalogueAge is the age of a catalogue that a follower reads again.
const catalogueAge = 10 * time.Minute

// Follower returns a follower of passes of the plan over a cloud, with the clock of
// the machine.
func (p Plan) Follower(cloud *Cloud, server graphql.Client, passes []*Pass, random func() float64,
	ended Ended) *Follower {
	again := func(ctx context.Context) ([]*Pass, error) {
		if err := cloud.renew(ctx); err != nil {
			return nil, err
		}
		passes, _, err := p.Passes(cloud, server)
		return passes, err
	}
	return &Follower{Server: server, Passes: passes, Again: again, Ended: ended, Now: time.Now, Wait: pause.For,
		Random: random}
}

// Follow signs in and repeats the passes of the plan until the context ends. If
// it cannot sign in or make the passes, it calls ended without a pass, and
// tries again every minute.
func (p Plan) Follow(ctx context.Context, with Credentials, server graphql.Client, random func() float64, ended Ended) {
	for ctx.Err() == nil {
		cloud, err := with.SignIn(ctx, client.DefaultTimeout)
		if err == nil {
			var passes []*Pass
			if passes, _, err = p.Passes(cloud, server); err == nil {
				p.Follower(cloud, server, passes, random, ended).Run(ctx)
			}
		}
		if err != nil {
			ended(nil, Result{}, err)
		}
		pause.For(ctx, time.Minute)
	}
}

// Run makes passes until the context ends. A pass that fails does not stop the
// others. Passes over services and regions that the catalogue did not have are
// added.
func (f *Follower) Run(ctx context.Context) {
	read := f.Now()
	for ctx.Err() == nil && len(f.Passes) > 0 {
		next := slices.MinFunc(f.Passes, func(a, b *Pass) int { return a.turn.Due.Compare(b.turn.Due) })
		if wait := next.turn.Due.Sub(f.Now()); wait > 0 && !f.Wait(ctx, wait) {
			return
		}
		if now := f.Now(); f.Again != nil && now.Sub(read) >= catalogueAge {
			read = now
			f.addPasses(ctx)
			continue
		}
		next.turn.Interval = next.Kind.Interval
		next.turn = f.take(ctx, next, next.turn)
	}
}

// addPasses reads the catalogue again, and adds the passes that are new. It
// ignores an error: passes fail if the token ends and cannot be renewed.
func (f *Follower) addPasses(ctx context.Context) {
	passes, _ := f.Again(ctx)
	for _, pass := range passes {
		if !slices.ContainsFunc(f.Passes, func(is *Pass) bool {
			return is.Cloud.At.Region == pass.Cloud.At.Region && is.Kind.Name == pass.Kind.Name
		}) {
			f.Passes = append(f.Passes, pass)
		}
	}
}

// take makes a pass, unless another program makes it now or made it recently.
// It returns the turn of the next pass.
func (f *Follower) take(ctx context.Context, pass *Pass, turn origin.Turn) origin.Turn {
	now := f.Now()
	isRunning, lag, err := f.look(ctx, pass)
	if turn = turn.Look(now, isRunning, lag, f.Random()); err == nil && turn.Due.After(f.Now()) {
		return turn
	}
	var result Result
	if err == nil {
		result, err = pass.Run(ctx)
	}
	outcome := origin.Succeeded
	switch {
	case errors.As(err, new(takenError)):
		return turn.End(f.Now(), origin.Taken, f.Random())
	case err != nil:
		outcome = origin.Failed
	}
	if ctx.Err() == nil {
		f.Ended(pass, result, err)
	}
	return turn.End(f.Now(), outcome, f.Random())
}

// look reports whether a pass over the same scope is running, and returns the
// time since the end of the last complete one, nil for none.
func (f *Follower) look(ctx context.Context, pass *Pass) (isRunning bool, lag *time.Duration, err error) {
	found, err := client.ListSyncs(ctx, f.Server)
	if err != nil {
		return false, nil, err
	}
	i := slices.IndexFunc(found.Syncs, func(one *client.Sync) bool {
		return one.Origin == pass.Origin && one.Region == pass.Cloud.At.Region && one.Kind == pass.Kind.Name
	})
	if i < 0 {
		return false, nil, nil
	}
	if found.Syncs[i].Lag != nil {
		lag = new(time.Duration(*found.Syncs[i].Lag) * time.Second)
	}
	return found.Syncs[i].Running, lag, nil
}
