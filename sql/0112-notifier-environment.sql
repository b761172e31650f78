-- The notifiers of an environment are deleted with it.
--
-- The statement can be run again after an interruption.

ALTER TABLE notifier
	ADD KEY IF NOT EXISTS notifier_environment (environment_id, valid);
