-- Members: the role of a user in one project, which applies if it is higher than
-- the user's own.  The values of all roles have the same order, so that their
-- numbers compare.  The role guest is below viewer: such a user sees only the
-- projects of which the user is a member.
--
-- Each statement can be run again after an interruption.

ALTER TABLE user MODIFY role
    ENUM('guest', 'viewer', 'deployer', 'maintainer', 'admin') NOT NULL;

ALTER TABLE api_token MODIFY role
    ENUM('guest', 'viewer', 'deployer', 'maintainer', 'admin') NOT NULL;

CREATE TABLE IF NOT EXISTS member (
	project_id BIGINT NOT NULL,
	user_id BIGINT NOT NULL,
	role ENUM('guest', 'viewer', 'deployer', 'maintainer', 'admin') NOT NULL,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	PRIMARY KEY (user_id, project_id),
	KEY member_list (project_id, user_id),
	CONSTRAINT member_user FOREIGN KEY (user_id) REFERENCES user (id),
	CONSTRAINT member_project FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
