-- SPDX-License-Identifier: ISC

-- approval_decide(struct deployment)
UPDATE deployment
SET turn = 1, approval = :approval, approval_by = :approval_by, approval_at = NOW(3),
	approval_comment = :approval_comment
WHERE id = :id AND status = 'pending' AND approval = 'required';
