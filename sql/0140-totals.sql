-- Totals for monitoring, which do not shrink when deployments and notices are
-- deleted.  `took` and `waited` are the upper bounds of the ranges in which the
-- times are, in milliseconds; 0 = the deployment never started.
--
-- `shard` lets processes count at the same time: each updates rows of its own.
--
-- Each statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS deployment_total (
	status VARCHAR(20) NOT NULL,
	reason VARCHAR(40) NOT NULL,
	took BIGINT NOT NULL,
	waited BIGINT NOT NULL,
	shard BIGINT NOT NULL,
	n BIGINT NOT NULL,
	took_ms BIGINT NOT NULL,
	waited_ms BIGINT NOT NULL,
	log_bytes BIGINT NOT NULL,
	PRIMARY KEY (status, reason, took, waited, shard)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS notice_total (
	kind VARCHAR(20) NOT NULL,
	result VARCHAR(20) NOT NULL,
	shard BIGINT NOT NULL,
	n BIGINT NOT NULL,
	PRIMARY KEY (kind, result, shard)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
