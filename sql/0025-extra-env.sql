-- Variables outside of a project's envPresets: who may set them, where it was
-- whether anybody may.  A deployment remembers with which role its variables
-- were chosen, so that a retry can tell; NULL in older ones: unknown.
--
-- Each statement can be run again after an interruption, and also after the
-- last one has run.

ALTER TABLE project
	ADD COLUMN IF NOT EXISTS extra_env
	    ENUM('nobody', 'maintainers', 'deployers') NOT NULL
	    DEFAULT 'maintainers' AFTER secret_defaults;

SET @strict = (SELECT IF(COUNT(*) = 0, 'DO 0',
	'UPDATE project SET extra_env = ''nobody'' WHERE strict_env = 1')
	FROM information_schema.columns WHERE table_schema = DATABASE()
	AND table_name = 'project' AND column_name = 'strict_env');

EXECUTE IMMEDIATE @strict;

ALTER TABLE project
	DROP COLUMN IF EXISTS strict_env;

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS env_role ENUM('deployer', 'maintainer')
	    AFTER secret_vars;
