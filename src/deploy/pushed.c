/* SPDX-License-Identifier: ISC */
#include "deploy/pushed.h"

#include <string.h>

#include "core/glob.h"
#include "core/log.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "deploy/secrets.h"
#include "json/json.h"
#include "queue/push.h"
#include "store/audit.h"

#define IDS_MAX ((size_t)16 * 1024)
#define REJECTED_MAX ((size_t)64 * 1024)
#define TRIGGERS_MAX ((size_t)7 << 20)
#define MESSAGE_MAX 2000                /* characters */
#define MATCHING_MAX ((size_t)40000000) /* about 100 ms for an event */

/* A push and the triggers of its project. */
struct firing {
	struct deploy *deploy;
	struct arena *a;
	int64_t project_id;
	const struct pushed *push;
	struct list triggers;
	struct list caught; /* struct push_caught: what a runner has made */
	bool all_caught;
	struct pushed_result *out;
};

/* Where the push leaves its branch. */
static struct push_head
head_of(int64_t project_id, const struct pushed *push)
{
	return (struct push_head){ .project_id = project_id,
		.branch = push->branch,
		.commit_hash = push->commit_hash };
}

void
pushed_result_init(struct pushed_result *r)
{
	*r = (struct pushed_result){ .budget = MATCHING_MAX };
	buf_init(&r->ids, IDS_MAX);
	buf_init(&r->rejected, REJECTED_MAX);
	buf_init(&r->triggers, TRIGGERS_MAX);
}

void
pushed_result_release(struct pushed_result *r)
{
	buf_release(&r->ids);
	buf_release(&r->rejected);
	buf_release(&r->triggers);
}

static enum glob_found
change_find(const struct trigger *trigger, const struct pushed *push,
    size_t *budget)
{
	const struct trigger_path *path = trigger->paths.items;
	enum glob_found found = GLOB_NONE;
	size_t i;

	for (i = 0; found == GLOB_NONE && i < trigger->paths.n; i++)
		found = glob_find(path[i].pattern, push->files.items,
		    push->files.n, budget);
	return found;
}

static bool
is_named(const struct trigger *trigger, const struct pushed *push)
{
	const char *pattern = push->tag != NULL ? trigger->tag :
						  trigger->branch;

	return pattern != NULL &&
	    glob_matches(pattern, push->tag != NULL ? push->tag : push->branch);
}

/* One deployment too many does less harm than a missing one, so unknown files
 * match, and so do paths that are too costly.  Each trigger has its share of
 * the budget, so costly ones do not start those of others. */
static bool
trigger_matches(struct firing *f, size_t index)
{
	const struct trigger *trigger = (const struct trigger *)
					    f->triggers.items +
	    index;
	const size_t share = f->out->budget / (f->triggers.n - index);
	size_t left = share;
	enum glob_found found;

	if (trigger->paths.n == 0 || !f->push->has_files)
		return true;
	found = change_find(trigger, f->push, &left);
	f->out->budget -= share - left;
	if (found == GLOB_UNDECIDED)
		log_warn("project %lld: trigger %zu: its paths take too long "
			 "to match with %zu files, so it starts its pipeline",
		    (long long)f->project_id, index, f->push->files.n);
	return found != GLOB_NONE;
}

/* Another try of the transaction decides nothing again. */
static bool
is_matched(struct firing *f, size_t index)
{
	enum pushed_matches *known = &f->out->matches[index];

	if (index >= PUSHED_TRIGGERS)
		return trigger_matches(f, index);
	if (*known == PUSHED_UNDECIDED)
		*known = trigger_matches(f, index) ? PUSHED_MATCHES :
						     PUSHED_DIFFERS;
	return *known == PUSHED_MATCHES;
}

/* The triggers may have changed since the last try. */
static void
matches_begin(struct pushed_result *r, const char *triggers)
{
	const size_t len = strlen(triggers);

	if (r->triggers.len == len &&
	    (len == 0 || memcmp(r->triggers.data, triggers, len) == 0))
		return;
	buf_clear(&r->triggers);
	buf_add(&r->triggers, triggers, len);
	(void)memset(r->matches, 0, sizeof(r->matches));
}

/* Finds what a runner has made of this push, if the event is late. The event of a
 * push that follows the last one known is not: the branch was at the commit
 * before, and returns to it. */
static const struct err *
caught_find(struct firing *f)
{
	struct push_head head, now = head_of(f->project_id, f->push);
	const struct err *e;

	if (!f->push->is_event || f->push->branch == NULL)
		return NULL;
	e = push_head_find(f->deploy->db, f->a, f->project_id, f->push->branch,
	    &head);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (str_eq(head.commit_hash, f->push->before) &&
	    !str_eq(head.commit_hash, f->push->commit_hash))
		return NULL;
	if ((e = push_caught_of(f->deploy->db, f->a, &now, &f->caught)) != NULL)
		return e;
	/* an older program has made them */
	f->all_caught = f->caught.n == 0 && head.caught_up &&
	    str_eq(head.commit_hash, f->push->commit_hash);
	return NULL;
}

static bool
is_caught(const struct firing *f, size_t index)
{
	const struct push_caught *one = f->caught.items;
	const char *key;
	size_t i;

	if (f->caught.n == 0)
		return f->all_caught;
	key = secrets_trigger_key(f->a, &f->triggers, index);
	for (i = 0; i < f->caught.n; i++)
		if (str_eq(one[i].trigger_key, key))
			return true;
	return false;
}

/* What Git servers' own pipelines heed, and the same for this service alone. */
static const char *
skip_find(const char *message)
{
	static const char *const marks[] = { "[skip ci]", "[ci skip]",
		"[no ci]", "[skip slipway]", "[slipway skip]", NULL };
	size_t i = 0;

	if (message == NULL)
		return NULL;
	while (marks[i] != NULL && strcasestr(message, marks[i]) == NULL)
		i++;
	return marks[i];
}

/* Records why a matching trigger creates no deployment. */
static void
rejection_note(struct firing *f, const struct trigger *trigger, size_t index)
{
	const struct fault *fault = f->deploy->faults->item;
	struct buf *rejected = &f->out->rejected;

	log_warn("project %lld: trigger %zu (%s): %s %s",
	    (long long)f->project_id, index,
	    trigger->tag != NULL ? trigger->tag : trigger->branch,
	    fault->pointer, fault->detail);
	buf_printf(rejected, "%strigger %zu: %s %s",
	    rejected->len > 0 ? "; " : "", index,
	    str_clip(f->a, fault->pointer, 80),
	    str_clip(f->a, fault->detail, 200));
}

/* Cuts the message to the length that a client may send. */
static const char *
message_cut(struct arena *a, const char *message)
{
	const char *end = message;
	size_t n;

	if (message == NULL)
		return NULL;
	for (n = 0; *end != '\0' && n < MESSAGE_MAX; n++)
		for (end++; (*end & 0xc0) == 0x80; end++)
			;
	return arena_strndup(a, message, (size_t)(end - message));
}

/* Creates the deployment, and cancels those that it replaces. */
static const struct err *
trigger_deploy(struct firing *f, const struct trigger *trigger,
    const struct deploy_order *order)
{
	struct buf *ids = &f->out->ids;
	const struct err *e;
	struct deployment d;

	if ((e = deploy_create(f->deploy, order, &d)) != NULL ||
	    (e = f->push->audit(f->push->context, &d)) != NULL)
		return e;
	buf_printf(ids, "%s%lld", f->out->made > 0 ? "," : "[",
	    (long long)d.id);
	f->out->made++;
	if (!trigger->supersede)
		return NULL;
	return push_supersede(f->deploy->db, f->deploy->a, d.id, order->before);
}

static const struct err *
trigger_fire(struct firing *f, size_t index)
{
	const struct trigger *trigger = (const struct trigger *)
					    f->triggers.items +
	    index;
	struct deployment_request sent = { .project_id = f->project_id,
		.pipeline_id = { .n = trigger->pipeline_id, .set = true },
		.environment_id = trigger->environment_id,
		.branch = f->push->branch,
		.tag = f->push->tag,
		.commit_hash = f->push->commit_hash };
	struct list vars;
	struct deploy_order order = { .sent = &sent,
		.vars = &vars,
		.trigger = "webhook",
		.before = f->push->before,
		.created_by = f->push->deployer,
		.read_by = f->push->reader,
		.role = ROLE_MAINTAINER }; /* that of those who may write
					    * triggers */
	const struct err *e;

	arena_clear(f->deploy->a);
	faults_again(f->deploy->faults, f->deploy->a);
	sent.commit_message = message_cut(f->deploy->a,
	    f->push->commit_message);
	order.moved = !trigger->supersede ? DEPLOY_MOVED_IGNORE :
	    trigger->paths.n > 0          ? DEPLOY_MOVED_FOLLOW :
					    DEPLOY_MOVED_CANCEL;
	order.trigger_key = secrets_trigger_key(f->deploy->a, &f->triggers,
	    index);
	e = secrets_trigger(f->deploy, f->project_id, &f->triggers, index,
	    &vars);
	if (e != NULL)
		return e;
	e = trigger_deploy(f, trigger, &order);
	if (e == NULL || e->code != ERR_INVALID || f->deploy->faults->n == 0)
		return e;
	rejection_note(f, trigger, index);
	return NULL;
}

const struct err *
pushed_fire(struct deploy *deploy, struct arena *a, const struct project *p,
    const struct pushed *push, struct pushed_result *out)
{
	struct firing f = { .deploy = deploy,
		.a = a,
		.project_id = p->id,
		.push = push,
		.out = out };
	const struct trigger *trigger;
	const struct err *e;
	size_t i;

	buf_clear(&out->ids);
	buf_clear(&out->rejected);
	out->made = out->matching = out->caught = 0;
	out->is_watched = false;
	out->skip = skip_find(push->commit_message);
	if ((e = caught_find(&f)) == NULL)
		e = json_items(a, &trigger_shape, p->triggers.s, &f.triggers);
	if (e == NULL)
		matches_begin(out, p->triggers.s);
	trigger = f.triggers.items;
	for (i = 0; e == NULL && i < f.triggers.n; i++) {
		if (!is_named(&trigger[i], push))
			continue;
		out->is_watched = true;
		if (out->skip == NULL && !is_matched(&f, i))
			continue;
		out->matching++;
		if (is_caught(&f, i))
			out->caught++;
		else if (out->skip == NULL)
			e = trigger_fire(&f, i);
	}
	if (out->made > 0)
		buf_putc(&out->ids, ']');
	return e != NULL ? e : buf_check(&out->ids);
}

const struct err *
pushed_note(struct deploy *deploy, int64_t project_id,
    const struct pushed *push, const struct pushed_result *result)
{
	const struct push_head head = head_of(project_id, push);

	if (push->branch == NULL || result->caught > 0)
		return NULL;
	return result->is_watched ? push_head_put(deploy->db, &head) :
				    push_head_move(deploy->db, &head);
}

struct catching {
	struct deploy deploy; /* with an own arena */
	struct faults faults;
	struct arena *a;
	int64_t project_id;
	struct pushed push;
	const char *runner;
	struct pushed_result result;
};

static const struct err *
caught_audit(void *context, const struct deployment *d)
{
	const struct catching *c = context;
	const struct push_caught caught = { .deployment_id = d->id,
		.project_id = c->project_id,
		.branch = c->push.branch,
		.commit_hash = c->push.commit_hash };
	const struct err *e;

	if ((e = push_caught_put(c->deploy.db, &caught)) != NULL)
		return e;
	return audit_start(c->deploy.db, c->runner, "catchUp", d->id,
	    d->project_id);
}

/* Whether no event has come since the runner read the stored commit, and the
 * head of the branch is not what the last event deployed. */
static const struct err *
is_missed(struct catching *c, const struct push_head *now, bool *out)
{
	struct push_head last;
	const struct err *e;
	bool current;

	*out = false;
	e = push_head_find(c->deploy.db, c->a, c->project_id, now->branch,
	    &last);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (!str_eq(last.commit_hash, c->push.before))
		return NULL;
	e = push_is_current(c->deploy.db, c->a, now, &current);
	*out = e == NULL && !current;
	return e;
}

static const struct err *
catching_body(struct db *db, void *context)
{
	struct catching *c = context;
	struct push_head now = head_of(c->project_id, &c->push);
	const struct err *e;
	struct project p;
	bool missed;

	arena_clear(c->a);
	c->result.made = 0;
	if ((e = project_lock(db, c->a, c->project_id, &p)) != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if ((e = is_missed(c, &now, &missed)) != NULL || !missed)
		return e;
	if ((e = pushed_fire(&c->deploy, c->a, &p, &c->push, &c->result)) !=
	    NULL)
		return e;
	if (c->result.skip != NULL && c->result.matching > 0)
		log_info("project %lld: the push of %s to %s is ignored: its "
			 "message contains %s",
		    (long long)c->project_id, now.commit_hash, now.branch,
		    c->result.skip);
	now.caught_up = c->result.made > 0;
	return push_head_put(db, &now);
}

const struct err *
pushed_catch_up(struct deploy *deploy, int64_t project_id,
    const struct pushed *push, const char *runner, size_t *made)
{
	struct catching c = { .deploy = *deploy,
		.project_id = project_id,
		.push = *push,
		.runner = runner };
	const struct err *e;

	c.push.audit = caught_audit;
	c.push.context = &c;
	c.a = arena_open(DEPLOY_WORK);
	c.deploy.a = arena_open(DEPLOY_WORK);
	c.deploy.faults = &c.faults;
	pushed_result_init(&c.result);
	e = db_transaction(deploy->db, catching_body, &c);
	*made = e == NULL ? c.result.made : 0;
	pushed_result_release(&c.result);
	arena_close(c.deploy.a);
	arena_close(c.a);
	return e;
}
