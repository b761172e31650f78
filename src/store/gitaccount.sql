-- SPDX-License-Identifier: ISC

-- @unchecked
git_checked_at <= NOW(3) - INTERVAL :seconds SECOND

-- @free
(git_check_after IS NULL OR git_check_after <= NOW(3))

-- With EXISTS, MariaDB would read the tables from end to end.
-- gitaccount_unchecked(struct account_args) -> struct gitaccount
SELECT u.id AS user_id
FROM user u
WHERE u.forge = :server
	AND u.valid = 1
	AND u.status = 'active'
	AND u.git_refused_at IS NULL
	AND u.git_checked_at <= NOW(3) - INTERVAL :seconds SECOND
	AND @free
	AND COALESCE((
			SELECT 1
			FROM session s
			WHERE s.user_id = u.id AND s.expires_at > NOW(3)
			LIMIT 1), (
			SELECT 1
			FROM api_token t
			WHERE t.user_id = u.id
				AND t.valid = 1
				AND (t.expires_at IS NULL OR t.expires_at > NOW(3))
			LIMIT 1)) = 1
ORDER BY u.id LIMIT 20;

-- gitaccount_take(struct account_args)
UPDATE user
SET git_check_after = NOW(3) + INTERVAL :hold SECOND
WHERE id = :user_id AND @unchecked AND @free;

-- gitaccount_confirm(struct account_args)
UPDATE user SET git_checked_at = NOW(3), git_check_after = NULL WHERE id = :user_id;

-- gitaccount_accept(struct account_args)
UPDATE user
SET git_checked_at = NOW(3), git_check_after = NULL, git_refused_at = NULL
WHERE id = :user_id;

-- gitaccount_refuse(struct account_args)
UPDATE user SET git_refused_at = NOW(3) WHERE id = :user_id;

-- gitaccount_refuse_unchecked(struct account_args)
UPDATE user SET git_refused_at = NOW(3) WHERE id = :user_id AND @unchecked;
