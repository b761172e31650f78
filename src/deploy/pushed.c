/* SPDX-License-Identifier: ISC */
#include "deploy/pushed.h"

#include "core/log.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "deploy/secrets.h"
#include "json/json.h"
#include "store/push.h"

#define IDS_MAX ((size_t)16 * 1024)
#define REFUSED_MAX ((size_t)64 * 1024)

/* A push and the triggers of its project. */
struct firing {
	struct deploy *deploy;
	struct arena *a;
	int64_t project_id;
	const struct pushed *push;
	struct list triggers;
	struct pushed_result *out;
};

void
pushed_result_init(struct pushed_result *r)
{
	*r = (struct pushed_result){ .made = 0 };
	buf_init(&r->ids, IDS_MAX);
	buf_init(&r->refused, REFUSED_MAX);
}

void
pushed_result_release(struct pushed_result *r)
{
	buf_release(&r->ids);
	buf_release(&r->refused);
}

static bool
has_change(const struct trigger *trigger, const struct pushed *push)
{
	const struct trigger_path *path = trigger->paths.items;
	const char *const *file = push->files.items;
	size_t i, k;

	for (i = 0; i < trigger->paths.n; i++)
		for (k = 0; k < push->files.n; k++)
			if (str_glob(path[i].pattern, file[k]))
				return true;
	return false;
}

/* One deployment too many does less harm than a missing one, so unknown files
 * match. */
static bool
is_matched(const struct trigger *trigger, const struct pushed *push)
{
	const char *pattern = push->tag != NULL ? trigger->tag :
						  trigger->branch;

	return pattern != NULL &&
	    str_glob(pattern, push->tag != NULL ? push->tag : push->branch) &&
	    (trigger->paths.n == 0 || !push->has_files ||
		has_change(trigger, push));
}

/* Records why a matching trigger creates no deployment. */
static void
refusal_note(struct firing *f, const struct trigger *trigger, size_t index)
{
	const struct fault *fault = f->deploy->faults->item;
	struct buf *refused = &f->out->refused;

	log_warn("project %lld: trigger %zu (%s): %s %s",
	    (long long)f->project_id, index,
	    trigger->tag != NULL ? trigger->tag : trigger->branch,
	    fault->pointer, fault->detail);
	buf_printf(refused, "%strigger %zu: %s %s",
	    refused->len > 0 ? "; " : "", index,
	    str_clip(f->a, fault->pointer, 80),
	    str_clip(f->a, fault->detail, 200));
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
		.commit_hash = f->push->commit_hash,
		.commit_message = f->push->commit_message };
	struct list vars;
	struct deploy_order order = { .sent = &sent,
		.vars = &vars,
		.trigger = "webhook",
		.before = f->push->before,
		.created_by = f->push->deployer,
		.role = ROLE_MAINTAINER }; /* that of those who may write
					    * triggers */
	const struct err *e;

	arena_clear(f->deploy->a);
	faults_init(f->deploy->faults, f->deploy->a);
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
	refusal_note(f, trigger, index);
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
	buf_clear(&out->refused);
	out->made = out->matching = 0;
	e = json_items(a, &trigger_shape, p->triggers.s, &f.triggers);
	trigger = f.triggers.items;
	for (i = 0; e == NULL && i < f.triggers.n; i++) {
		if (!is_matched(&trigger[i], push))
			continue;
		out->matching++;
		e = trigger_fire(&f, i);
	}
	if (out->made > 0)
		buf_putc(&out->ids, ']');
	return e != NULL ? e : buf_check(&out->ids);
}
