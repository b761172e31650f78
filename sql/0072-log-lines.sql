-- When a chunk of a log was written, and how many line breaks it has.  Chunks of
-- older versions have neither; their lines are counted when they are read.
--
-- The statement can be run again after an interruption.

ALTER TABLE log_chunk
	ADD COLUMN IF NOT EXISTS breaks BIGINT,
	ADD COLUMN IF NOT EXISTS written_at DATETIME(3);
