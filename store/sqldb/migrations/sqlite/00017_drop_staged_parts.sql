-- +goose Up
-- drop "staged_parts" table
DROP TABLE `staged_parts`;

-- +goose Down
-- reverse: drop "staged_parts" table
CREATE TABLE `staged_parts` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `project_id` text NOT NULL,
  `user_id` text NOT NULL,
  `upload` text NOT NULL,
  `position` integer NOT NULL,
  `text` text NOT NULL,
  `bytes` integer NOT NULL,
  `created_at` datetime NOT NULL
);
CREATE UNIQUE INDEX `stagedpart_project_id_user_id_upload_position` ON `staged_parts` (`project_id`, `user_id`, `upload`, `position`);
CREATE INDEX `stagedpart_created_at` ON `staged_parts` (`created_at`);
