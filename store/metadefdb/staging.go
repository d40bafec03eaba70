package metadefdb

import (
	"context"
	"fmt"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/stagedpart"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

const (
	// stagersKey is the class of the advisory locks under which PostgreSQL adds up
	// what a project has staged.
	stagersKey = 7_261_004
	// dropEvery is how often a server drops what expired.
	dropEvery = 10 * time.Minute
	// droppedAtOnce bounds how many parts it drops in one statement.
	droppedAtOnce = 50
)

// StageNamespacePart keeps a part of a definition file until the file is imported,
// and returns what is staged of the file.
func (s *MetadefStore) StageNamespacePart(ctx context.Context, part metadef.NewPart) (*metadef.Staged, error) {
	if err := s.mayImport(ctx, "stageNamespacePart"); err != nil {
		return nil, err
	}
	name, problems := metadef.CheckPart(part.Text, "input.text")
	if part.Part < 0 || part.Part >= metadef.MaxParts {
		problems.Add("input.part", "must be between 0 and %d", metadef.MaxParts-1)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	var staged *metadef.Staged
	err := s.Write(ctx, "stageNamespacePart", func(tx *sqldb.Tx) (err error) {
		staged, err = s.stage(ctx, tx, part)
		tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: name, After: sqldb.Fields{"upload": part.Upload, "part": part.Part, "bytes": len(part.Text)}})
		return err
	}, &staged)
	if err != nil {
		return nil, fmt.Errorf("stage a part of a definition file: %w", err)
	}
	return staged, nil
}

func (s *MetadefStore) stage(ctx context.Context, tx *sqldb.Tx, part metadef.NewPart) (*metadef.Staged, error) {
	viewer := access.ViewerFrom(ctx)
	if err := tx.LockName(ctx, stagersKey, viewer.ProjectID); err != nil {
		return nil, err
	}
	mine := stagedpart.And(stagedBy(viewer), stagedpart.Upload(part.Upload))
	if _, err := tx.StagedPart.Delete().Where(mine, stagedpart.Position(part.Part)).Exec(ctx); err != nil {
		return nil, err
	}
	size := int64(len(part.Text))
	others, err := sizeOf(ctx, tx.StagedPart.Query().Where(stagedpart.ProjectID(viewer.ProjectID)))
	if err != nil {
		return nil, err
	}
	if most := s.options.StagedBytes; others.Bytes+size > most {
		return nil, problem.Refuse(problem.ErrQuotaExceeded, "project %q would stage %d bytes, at most %d are allowed; what is not imported expires within %s",
			viewer.ProjectID, others.Bytes+size, most, metadef.StagedFor).On("input.text")
	}
	now := s.Now()
	err = tx.StagedPart.Create().SetProjectID(viewer.ProjectID).SetUserID(viewer.UserID).SetUpload(part.Upload).SetPosition(part.Part).
		SetText(part.Text).SetBytes(size).SetCreatedAt(now).Exec(ctx)
	if err != nil {
		return nil, err
	}
	staged, err := sizeOf(ctx, tx.StagedPart.Query().Where(mine, s.keptParts()))
	return &metadef.Staged{Upload: part.Upload, Parts: staged.Parts, Bytes: staged.Bytes, ExpiresAt: now.Add(metadef.StagedFor)}, err
}

// stagedSize is how many parts there are, and how many bytes they have.
type stagedSize struct {
	Parts int
	Bytes int64
}

func sizeOf(ctx context.Context, parts *ent.StagedPartQuery) (stagedSize, error) {
	var sizes []stagedSize
	err := parts.Aggregate(
		func(*entsql.Selector) string { return entsql.As("COUNT(*)", "parts") },
		func(s *entsql.Selector) string {
			return entsql.As("CAST(COALESCE(SUM("+s.C(stagedpart.FieldBytes)+"), 0) AS bigint)", "bytes")
		}).Scan(ctx, &sizes)
	if err != nil || len(sizes) == 0 {
		return stagedSize{}, err
	}
	return sizes[0], nil
}

// stagedBy keeps what a viewer staged.
func stagedBy(viewer access.Viewer) predicate.StagedPart {
	return stagedpart.And(stagedpart.ProjectID(viewer.ProjectID), stagedpart.UserID(viewer.UserID))
}

// keptParts hides the parts that expired and are not dropped yet.
func (s *MetadefStore) keptParts() predicate.StagedPart {
	return stagedpart.CreatedAtGT(s.Now().Add(-metadef.StagedFor))
}

// DropExpired drops what was staged and expired.
func (s *MetadefStore) DropExpired(ctx context.Context) error {
	for {
		ids, err := s.Ent.StagedPart.Query().Where(stagedpart.CreatedAtLTE(s.Now().Add(-metadef.StagedFor))).
			Order(stagedpart.ByCreatedAt(), stagedpart.ByID()).Limit(droppedAtOnce).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if _, err := s.Ent.StagedPart.Delete().Where(sqldb.Among(stagedpart.FieldID, ids)).Exec(ctx); err != nil {
			return err
		}
	}
}

// KeepStaged begins to drop what was staged and expired, until stop is called.
func (s *MetadefStore) KeepStaged() (stop func()) {
	return s.Repeat(dropEvery, "staged parts that expired could not be dropped, will try again", s.DropExpired)
}

// checkUploads refuses files of which a part is not staged by the viewer.
func (s *MetadefStore) checkUploads(ctx context.Context, files []metadef.StagedFile) error {
	if len(files) == 0 {
		return nil
	}
	ctx = sqldb.Apart(ctx)
	var rows []struct {
		Upload   string
		Position int
	}
	uploads := sqldb.Distinct(lists.Map(files, func(file metadef.StagedFile) string { return file.Upload }))
	err := s.Ent.StagedPart.Query().Where(stagedBy(access.ViewerFrom(ctx)), s.keptParts(), sqldb.Among(stagedpart.FieldUpload, uploads)).
		Select(stagedpart.FieldUpload, stagedpart.FieldPosition).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("look up staged parts: %w", err)
	}
	there := map[string]map[int]bool{}
	for _, row := range rows {
		if there[row.Upload] == nil {
			there[row.Upload] = map[int]bool{}
		}
		there[row.Upload][row.Position] = true
	}
	var problems problem.Problems
	text.CheckDistinct(&problems, "input.uploads", lists.Map(files, func(file metadef.StagedFile) string { return file.Upload }))
	for i, file := range files {
		file.Check(&problems, problem.Index("input.uploads", i), there[file.Upload])
	}
	return problems.Err()
}

// TriedNamespaces returns the names of the namespaces that a dry run defines, none
// for an import. Every part of a file has the name.
func (s *MetadefStore) TriedNamespaces(ctx context.Context, request metadef.ImportRequest) ([]string, error) {
	names := request.TriedNamespaces()
	if !request.DryRun || len(request.Uploads) == 0 {
		return names, nil
	}
	uploads := lists.Map(request.Uploads, func(file metadef.StagedFile) string { return file.Upload })
	ctx = sqldb.Apart(ctx)
	firsts, err := s.Ent.StagedPart.Query().
		Where(stagedBy(access.ViewerFrom(ctx)), s.keptParts(), sqldb.Among(stagedpart.FieldUpload, uploads), stagedpart.Position(0)).
		Select(stagedpart.FieldText).Strings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read staged parts: %w", err)
	}
	for _, text := range firsts {
		name, _ := metadef.CheckPart(text, "")
		names = append(names, name)
	}
	return names, nil
}

// stagedParts returns the texts of the parts of a file.
func (s *MetadefStore) stagedParts(ctx context.Context, file metadef.StagedFile) ([]string, error) {
	ctx = sqldb.Apart(ctx)
	parts, err := s.Ent.StagedPart.Query().
		Where(stagedBy(access.ViewerFrom(ctx)), stagedpart.Upload(file.Upload), stagedpart.PositionLT(file.Parts)).
		Order(stagedpart.ByPosition()).Select(stagedpart.FieldText).Strings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read staged parts: %w", err)
	}
	if len(parts) != file.Parts {
		return nil, fmt.Errorf("read staged parts: %w", problem.Refuse(problem.ErrConcurrentUpdate, "parts of the upload %s expired meanwhile", file.Upload).On("input.uploads"))
	}
	return parts, nil
}

// dropUploads drops what the viewer staged of files that are imported. What it
// fails to drop expires.
func (s *MetadefStore) dropUploads(ctx context.Context, files []metadef.StagedFile) {
	if len(files) == 0 {
		return
	}
	uploads := lists.Map(files, func(file metadef.StagedFile) string { return file.Upload })
	if _, err := s.Ent.StagedPart.Delete().Where(stagedBy(access.ViewerFrom(ctx)), sqldb.Among(stagedpart.FieldUpload, uploads)).Exec(ctx); err != nil {
		s.Log.WarnContext(ctx, "staged parts that were imported could not be dropped, they expire", "error", err)
	}
}
