-- SPDX-License-Identifier: ISC

-- @too_much
privilege_type IN ('ALTER', 'CREATE', 'CREATE USER', 'DROP', 'FILE', 'SUPER')

-- capacity_read() -> struct capacity
SELECT @@innodb_flush_log_at_trx_commit AS flush_log,
	@@max_allowed_packet AS max_packet, @@max_connections AS max_connections,
	@@datadir AS datadir,
	(SELECT COUNT(*) FROM information_schema.user_privileges WHERE @too_much) +
		(SELECT COUNT(*)
		FROM information_schema.schema_privileges
		WHERE DATABASE() LIKE table_schema AND @too_much) AS rights,
	(SELECT COALESCE(MAX(id), 0) FROM project) AS newest_project,
	(SELECT CAST(COALESCE(SUM(data_length), 0) AS SIGNED)
		FROM information_schema.tables
		WHERE table_schema = DATABASE()
			AND table_name = 'log_chunk') AS log_bytes;
