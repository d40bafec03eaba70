package metadefdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// ImportNamespaces imports definition files. It stores each in its own
// transaction, entirely or not at all, and continues after a refused one. An
// atomic import stores all files in one transaction or none; a dry run stores
// nothing. If several valid files define the same namespace, all but the first
// fail.
func (s *MetadefStore) ImportNamespaces(ctx context.Context,
	request metadef.ImportRequest) ([]*metadef.ImportReport, error) {
	total := len(request.Documents)
	check := metadef.NamespaceStanding.CheckImport
	if total == 0 { // there is no namespace that the viewer could edit
		check = metadef.NamespaceStanding.CheckManage
	}
	if err := s.checkOwn(ctx, "importNamespaces", check); err != nil {
		return nil, err
	}
	if err := metadef.MayImportFrom(access.ViewerFrom(ctx), request.Origin); err != nil {
		return nil, problem.Under(err, "input.origin")
	}
	var problems problem.Problems
	text.CheckCount(&problems, "input.documents", total, metadef.MaxDocuments)
	if request.Origin != nil {
		text.Check(&problems, "input.origin", *request.Origin, 1, metadef.MaxOrigin)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if request.DryRun {
		return s.tryImport(ctx, request)
	}
	if total == 0 {
		return []*metadef.ImportReport{}, s.Write(ctx, "importNamespaces", func(tx *sqldb.Tx) error {
			tx.Record(ctx, sqldb.Event{Kind: "Namespace"})
			return nil
		})
	}
	i := importing{MetadefStore: s, request: request, defining: map[string]string{}}
	if request.Atomic {
		return i.together(ctx, 0, request.Documents)
	}
	reports := make([]*metadef.ImportReport, 0, total)
	for n := range request.Documents {
		path := documentPath(n)
		report, err := i.together(sqldb.AtStep(ctx, path), n, request.Documents[n:n+1])
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", path, err)
		}
		reports = append(reports, report...)
	}
	return reports, nil
}

func documentPath(n int) string { return problem.Index("documents", n) }

// importing is an import of documents that has begun.
type importing struct {
	*MetadefStore
	request  metadef.ImportRequest
	defining map[string]string // path of each namespace's document
}

// importedDocument is a document, and the report on it so far.
type importedDocument struct {
	*metadef.Document
	begun  metadef.ImportReport
	failed bool
}

// read parses the document at a path of the request. The document fails if an
// earlier one defines the same namespace.
func (i *importing) read(ctx context.Context, path, text string) importedDocument {
	document, warnings, problems := metadef.ParseDocument(text)
	if len(problems) == 0 {
		switch first, twice := i.defining[document.Name]; {
		case !twice:
			i.defining[document.Name] = path
		case !i.IsDone(ctx):
			problems.Add("$.namespace", "is already defined by %s of the request", first)
		}
	}
	of := importedDocument{document, metadef.ImportReport{Warnings: problemTexts(warnings), Errors: []string{},
		Problems: []metadef.ReportProblem{}, Differences: []string{}, Edits: []metadef.ImportEdit{}}, len(problems) > 0}
	of.begun.Fail(problems)
	if document != nil {
		of.begun.Namespace = document.Name
	}
	return of
}

// errNotAll rolls back an import after a document failed.
var errNotAll = problem.Refuse(problem.ErrInvalidInput, "a document failed")

// together imports documents in one transaction: all of them or none. first is
// the index of the first document in the request. The reports say why documents
// failed.
func (i *importing) together(ctx context.Context, first int, texts []string) ([]*metadef.ImportReport, error) {
	documents := make([]importedDocument, len(texts))
	reports := make([]*metadef.ImportReport, len(texts))
	sound := true
	for n, text := range texts {
		documents[n] = i.read(ctx, documentPath(first+n), text)
		sound = sound && !documents[n].failed
	}
	var err error
	if sound {
		if err = i.writeAll(ctx, documents, reports); err == nil {
			return reports, nil
		}
	}
	refusal := new(problem.Refusal)
	switch {
	case !sound || errors.Is(err, errNotAll):
	case errors.As(err, &refusal) && len(texts) == 1 && !(sqldb.IsOnce(ctx) && isOfTheDatabase(refusal)):
		reports[0] = refused(documents[0].begun, refusal)
	default:
		return nil, err
	}
	for n := range reports {
		if documents[n].failed || reports[n] == nil || reports[n].Outcome != metadef.ImportFailed {
			reports[n] = documents[n].notStored()
		}
	}
	return reports, nil
}

// writeAll writes documents in one transaction.
func (i *importing) writeAll(ctx context.Context, documents []importedDocument,
	reports []*metadef.ImportReport) (err error) {
	// If another writer has created a namespace meanwhile, the next attempt
	// finds it.
	for range sqldb.Attempts {
		err = i.Write(ctx, "importNamespaces", func(tx *sqldb.Tx) error {
			return i.write(ctx, tx, documents, reports)
		}, &reports)
		if !sqldb.IsDuplicate(err) {
			break
		}
	}
	return err
}

// notStored returns the report on a document that is not stored because it, or
// another one, failed.
func (d *importedDocument) notStored() *metadef.ImportReport {
	if d.failed {
		d.begun.Outcome = metadef.ImportFailed
		return &d.begun
	}
	return refused(d.begun, problem.Refuse(problem.ErrInvalidInput, "is not imported because another document failed"))
}

// write imports documents in a transaction and sets their reports. It returns
// errNotAll if one of several documents is refused. If the only document is
// refused, it returns that refusal.
func (i *importing) write(ctx context.Context, tx *sqldb.Tx, documents []importedDocument,
	reports []*metadef.ImportReport) error {
	failed := false
	for n, document := range documents {
		plan, err := i.importInto(ctx, tx, document.Document, i.request)
		refusal := new(problem.Refusal)
		switch {
		case err == nil:
			reports[n] = planned(document.begun, plan)
		case len(documents) > 1 && errors.As(err, &refusal) && !isOfTheDatabase(refusal):
			reports[n] = refused(document.begun, refusal)
		default:
			return err
		}
		failed = failed || reports[n].Outcome == metadef.ImportFailed
	}
	if failed && len(documents) > 1 {
		return errNotAll
	}
	return nil
}

// refused returns the report on a refused document.
func refused(begun metadef.ImportReport, refusal *problem.Refusal) *metadef.ImportReport {
	plan := metadef.ImportPlan{Outcome: metadef.ImportFailed}
	plan.Problems.AddKind(refusal.Kind, cmp.Or(refusal.Field, "$"), "%s", refusal.Message)
	return planned(begun, plan)
}

// tryImport imports in the trial of the context. If there is none, it begins
// one. Each document sees the effects of earlier ones.
func (s *MetadefStore) tryImport(ctx context.Context,
	request metadef.ImportRequest) (reports []*metadef.ImportReport, err error) {
	request.DryRun = false
	if s.IsTrial(ctx) {
		return s.ImportNamespaces(ctx, request)
	}
	err = s.Try(ctx, func(ctx context.Context, _ *sqldb.Trial) (err error) {
		reports, err = s.ImportNamespaces(ctx, request)
		return err
	})
	return reports, err
}

// planned returns a report with the results of a plan added.
func planned(report metadef.ImportReport, plan metadef.ImportPlan) *metadef.ImportReport {
	report.Outcome = plan.Outcome
	report.Warnings = append(slices.Clone(report.Warnings), problemTexts(plan.Warnings)...)
	report.Fail(plan.Problems)
	report.Differences = append(slices.Clone(report.Differences), plan.Differences...)
	report.Edits = append(slices.Clone(report.Edits), plan.Edits...)
	return &report
}

// isOfTheDatabase reports whether the refusal is due to the database or the
// idempotency key, not to the document. Then an import fails if it has an
// idempotency key, or several documents in the transaction. A retry with the
// key continues at that document.
func isOfTheDatabase(refusal *problem.Refusal) bool {
	for _, kind := range []error{problem.ErrTimeout, problem.ErrUnavailable, problem.ErrOutcomeUnknown} {
		if errors.Is(refusal.Kind, kind) {
			return true
		}
	}
	return refusal.Field == sqldb.IdempotencyKeyHeader
}

// importInto plans the effect of a document on its namespace, and writes the
// planned namespace. It refuses a viewer who may not make the change.
func (s *MetadefStore) importInto(ctx context.Context, tx *sqldb.Tx, document *metadef.Document,
	request metadef.ImportRequest) (metadef.ImportPlan, error) {
	// Viewers who may not create namespaces must not learn of invisible ones.
	mayCreate := s.checkOwn(ctx, "importNamespaces", metadef.NamespaceStanding.CheckManage)
	seen := func(*entsql.Selector) {}
	if mayCreate != nil {
		seen = visible.Namespaces(ctx)
	}
	row, err := tx.Namespace.Query().Where(namespace.Name(document.Name), seen, s.Locked()).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return metadef.ImportPlan{}, err
	}
	if row == nil && mayCreate != nil {
		return metadef.ImportPlan{}, mayCreate
	}
	if row == nil {
		return s.importNew(ctx, tx, document, request)
	}
	standing, err := s.importStanding(ctx, tx, row, document)
	if err != nil {
		return metadef.ImportPlan{}, err
	}
	if !standing.MayManage() {
		request.IncludeProtected = false // editors delete nothing in a protected namespace
		if request.Origin != nil {
			return metadef.ImportPlan{}, standing.CheckManage("importing under an origin")
		}
	}
	return s.importOver(ctx, tx, row, document, request, standing)
}

// importStanding returns the viewer's standing in a namespace, and refuses a
// viewer who may not define in it or give it the owner of a document. For a
// namespace that the viewer may not see, whose owner must not matter, it reports
// that the name is taken.
func (s *MetadefStore) importStanding(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace,
	document *metadef.Document) (metadef.NamespaceStanding, error) {
	visible, err := tx.Namespace.Query().Where(visible.Namespaces(ctx), namespace.ID(row.ID)).Exist(ctx)
	if err != nil {
		return metadef.NamespaceStanding{}, err
	}
	if !visible || document.Owner != nil && *document.Owner != row.Owner {
		if err := mayGive(ctx, document.Owner); err != nil {
			return metadef.NamespaceStanding{}, err
		}
	}
	if !visible {
		return metadef.NamespaceStanding{}, refuseTaken(row.Name, "$.namespace")
	}
	standing, err := s.standingIn(ctx, tx, row)
	if err != nil {
		return standing, err
	}
	return standing, standing.CheckDefine(tx.Mutation)
}

func (s *MetadefStore) importNew(ctx context.Context, tx *sqldb.Tx, document *metadef.Document,
	request metadef.ImportRequest) (metadef.ImportPlan, error) {
	if err := mayGive(ctx, document.Owner); err != nil {
		return metadef.ImportPlan{}, err
	}
	unloaded, err := wasUnloaded(ctx, tx, document.Name, request)
	if err != nil {
		return metadef.ImportPlan{}, err
	}
	if unloaded && request.StaysAway() {
		tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: document.Name})
		return metadef.ImportPlan{Outcome: metadef.ImportUnloaded}, nil
	}
	plan := metadef.PlanImport(nil, document, request.Mode, request.IncludeProtected)
	if err := s.checkQuota(document, "$"); err != nil {
		return plan, err
	}
	row, err := s.createDocument(ctx, tx, plan.Result)
	if err != nil || request.Origin == nil {
		return plan, err
	}
	if unloaded {
		if err := forgetUnloaded(ctx, tx, document.Name, *request.Origin); err != nil {
			return plan, err
		}
	}
	return plan, SetOrigin(ctx, tx, row, *request.Origin, document)
}

func (s *MetadefStore) importOver(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, document *metadef.Document,
	request metadef.ImportRequest, standing metadef.NamespaceStanding) (metadef.ImportPlan, error) {
	there, err := documents(ctx, tx.Client(), []*ent.Namespace{row})
	if err != nil {
		return metadef.ImportPlan{}, err
	}
	existing := there[0]
	base := baseOf(row, request.Origin)
	plan, isFollowed := planOver(base, existing, document, request)
	if err := standing.CheckChange(existing, plan.Result); err != nil {
		return plan, err
	}
	if err := s.checkResultQuota(ctx, tx, row, plan.Result); err != nil {
		return plan, err
	}
	if plan.Outcome == metadef.ImportFailed {
		return plan, nil
	}
	if plan.Result != nil {
		if err := s.sawNamespaces(ctx, tx, row); err != nil {
			return plan, err
		}
		if err := s.rewriteDocument(ctx, tx, row, plan.Result); err != nil {
			return plan, err
		}
		if err := s.touchNamespace(ctx, tx, row); err != nil {
			return plan, err
		}
		tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: row.Name, Before: documentFields(existing),
			After: documentFields(plan.Result)})
		tx.Changed("Namespace", row.Name)
		seesNamespace(tx, row)
	} else if !isFollowed { // passes that follow an origin and change nothing have no events
		tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: row.Name})
	}
	if base != nil && plan.Outcome != metadef.ImportSkipped ||
		request.Origin != nil && request.Mode == metadef.Overwrite {
		return plan, SetOrigin(ctx, tx, row, *request.Origin, document)
	}
	return plan, nil
}

// planOver plans the import into an existing namespace. isFollowed reports
// whether the origin's values replace local edits (PlanFollow). base is nil if
// the namespace is not from the origin of the import.
func planOver(base, existing, document *metadef.Document,
	request metadef.ImportRequest) (plan metadef.ImportPlan, isFollowed bool) {
	switch {
	case base != nil && request.Mode == metadef.PreferNew:
		return metadef.PlanFollow(base, existing, document), true
	case base != nil && request.Mode == metadef.Skip:
		return metadef.PlanUpgrade(base, existing, document), false
	}
	return metadef.PlanImport(existing, document, request.Mode, request.IncludeProtected), false
}

// checkResultQuota refuses the result of an import if the namespace would be
// too large or its new owner would own too many namespaces. A nil result is no
// change.
func (s *MetadefStore) checkResultQuota(ctx context.Context, tx *sqldb.Tx,
	row *ent.Namespace, result *metadef.Document) error {
	if result == nil {
		return nil
	}
	if err := s.checkQuota(result, "$"); err != nil || *result.Owner == row.Owner {
		return err
	}
	return s.checkNamespaceQuota(ctx, tx, *result.Owner)
}

// baseOf returns the document that the origin last delivered for a namespace.
// It returns nil if origin is nil, if the namespace is not from that origin, or
// if the document is no longer valid.
func baseOf(row *ent.Namespace, origin *string) *metadef.Document {
	if origin == nil || row.Origin == nil || *row.Origin != *origin || row.OriginDocument == nil {
		return nil
	}
	base, _, problems := metadef.ParseDocument(*row.OriginDocument)
	if len(problems) > 0 {
		return nil
	}
	return base
}

// SetOrigin makes a namespace one of an origin, and stores the document that
// the origin delivered as the base of the next upgrade.
func SetOrigin(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, origin string, document *metadef.Document) error {
	delivered := document.Text()
	if row.Origin != nil && *row.Origin == origin && text.OrEmpty(row.OriginDocument) == delivered {
		return nil
	}
	row.Origin, row.OriginDocument = &origin, &delivered
	tx.Changed("Namespace", row.Name)
	seesNamespace(tx, row)
	return tx.Namespace.Update().Where(namespace.ID(row.ID)).SetOrigin(origin).SetOriginDocument(delivered).Exec(ctx)
}

func problemTexts(problems problem.Problems) []string {
	return lists.Map(problems, problem.Problem.Reported)
}
