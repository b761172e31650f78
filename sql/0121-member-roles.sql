-- Every request reads the highest role that its user has as a member.
--
-- The statement can be run again after an interruption.

ALTER TABLE member ADD INDEX IF NOT EXISTS member_role (user_id, role);
