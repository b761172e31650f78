-- SPDX-License-Identifier: ISC

-- sequence_list() -> struct sequence
SELECT table_name AS name, CAST(COALESCE(auto_increment, 1) AS SIGNED) AS next
FROM information_schema.tables
WHERE table_schema = DATABASE()
	AND table_name IN ('deployment', 'environment', 'project')
ORDER BY table_name;
