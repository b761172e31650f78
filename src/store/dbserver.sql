-- SPDX-License-Identifier: ISC

-- dbserver_client() -> struct words
SELECT SUBSTRING_INDEX(USER(), '@', -1) AS text;

-- dbserver_has_account(struct words) -> struct words
SELECT COUNT(*) AS n
FROM (
	SELECT COUNT(DISTINCT privilege_type) AS had,
		1 + LENGTH(:rights) - LENGTH(REPLACE(:rights, ',', '')) AS wanted
	FROM information_schema.schema_privileges
	WHERE FIND_IN_SET(privilege_type, REPLACE(:rights, ', ', ','))
		AND :database LIKE table_schema
		AND CONCAT('''', :name, '''@''', :host, '''') LIKE grantee
	GROUP BY grantee) AS accounts
WHERE had = wanted;

-- The server does not accept parameters in such statements, so it writes the text
-- of each, which quotes them: of this and the next two.
-- dbserver_create_database(struct words) -> struct words
SELECT CONCAT(
		'CREATE DATABASE IF NOT EXISTS `', REPLACE(:database, '`', '``'),
		'` CHARACTER SET utf8mb4') AS text;

-- dbserver_create_account(struct words) -> struct words
SELECT CONCAT(
		'CREATE USER IF NOT EXISTS ', QUOTE(:name), '@', QUOTE(:host),
		IF(
			:password IS NULL, ' IDENTIFIED VIA unix_socket',
			CONCAT(' IDENTIFIED BY PASSWORD ', QUOTE(PASSWORD(:password)))),
		' ', :tls) AS text;

-- In GRANT, _ and % of the database's name are patterns.
-- dbserver_grant(struct words) -> struct words
SELECT CONCAT(
		'GRANT ', :rights, ' ON `',
		REPLACE(REPLACE(REPLACE(REPLACE(:database, '\\', '\\\\'), '_', '\\_'),
			'%', '\\%'), '`', '``'),
		'`.* TO ', QUOTE(:name), '@', QUOTE(:host)) AS text;
