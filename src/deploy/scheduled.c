/* SPDX-License-Identifier: ISC */
#include "deploy/scheduled.h"

#include <string.h>

#include "core/buf.h"
#include "core/cron.h"
#include "core/str.h"
#include "core/zone.h"
#include "deploy/deploy.h"
#include "json/json.h"
#include "queue/move.h"
#include "store/audit.h"

#define TEXT_MAX ((size_t)4 << 20)

const struct err *
scheduled_open(struct arena *a, struct schedule *s)
{
	return json_map(a, s->variables.s, &s->env_vars);
}

static struct deployment_request
request_of(const struct schedule *s)
{
	return (struct deployment_request){ .project_id = s->project_id,
		.pipeline_id = { .n = s->pipeline_id,
		    .set = s->pipeline_id != 0 },
		.environment_id = s->environment_id,
		.branch = s->branch,
		.env_vars = s->env_vars };
}

/* Only maintainers write schedules. A deployment reads the repository as the
 * user who made the schedule. */
static struct deploy_order
order_of(const struct schedule *s, const struct deployment_request *sent)
{
	return (struct deploy_order){ .sent = sent,
		.trigger = "schedule",
		.read_by = s->created_by,
		.role = ROLE_MAINTAINER };
}

/* A schedule has no encrypted values: a secret belongs to the preset or to the
 * environment. */
static const struct err *
secrets_reject(struct deploy *deploy, const struct schedule *s,
    const struct deployment *d)
{
	const struct pair *own = s->env_vars.items;
	const struct err *e;
	struct map secret;
	size_t i, k;

	if ((e = json_map(deploy->a, d->secret_vars.s, &secret)) != NULL)
		return e;
	for (i = 0; i < s->env_vars.n; i++)
		for (k = 0; k < secret.n; k++)
			if (str_eq(own[i].key, secret.items[k].key))
				faults_add(deploy->faults,
				    fault_pointer(deploy->faults, "/envVars",
					own[i].key),
				    "is secret; a schedule cannot store it: "
				    "set it as the default of the preset or in "
				    "the environment");
	return NULL;
}

static void
time_judge(struct faults *faults, const struct schedule *s)
{
	const char *fault;
	struct cron cron;

	if (s->cron != NULL && !faults_has(faults, "/cron") &&
	    (fault = cron_parse(s->cron, &cron)) != NULL)
		faults_add(faults, "/cron", "%s", fault);
	if (s->timezone != NULL && !faults_has(faults, "/timezone") &&
	    !zone_is_known(s->timezone))
		faults_add(faults, "/timezone",
		    "is not a time zone that this host knows; use a name like "
		    "Europe/Berlin");
}

const struct err *
scheduled_judge(struct deploy *deploy, const struct schedule *s)
{
	const struct deployment_request sent = request_of(s);
	struct deploy_tip tip = { .is_missing = false };
	struct deploy_order order = order_of(s, &sent);
	const struct err *e;
	struct deployment d;

	order.tip = &tip;
	time_judge(deploy->faults, s);
	e = schedule_name_judge(deploy->db, s, deploy->faults);
	if (e != NULL || faults_has(deploy->faults, "/projectId"))
		return e;
	if ((e = deploy_judge(deploy, &order, &d)) != NULL)
		return e;
	if (tip.is_missing)
		faults_add(deploy->faults, "/environmentId",
		    "requires approval, which is given for one commit; a "
		    "schedule deploys the newest one");
	return secrets_reject(deploy, s, &d);
}

static int64_t
next_of(const struct schedule *s, int64_t time)
{
	struct cron cron;

	if (cron_parse(s->cron, &cron) != NULL || !zone_is_known(s->timezone))
		return 0;
	return cron_next(&cron, s->timezone, time);
}

const struct err *
scheduled_close(struct deploy *deploy, struct schedule *s,
    const struct schedule *old)
{
	const struct err *e;
	struct when now;
	struct buf text;

	if (!s->active) {
		s->next_at.ms = 0;
	} else if (old == NULL || !old->active || !str_eq(old->cron, s->cron) ||
	    !str_eq(old->timezone, s->timezone)) {
		if ((e = schedule_clock(deploy->db, deploy->a, &now)) != NULL)
			return e;
		s->next_at.ms = next_of(s, now.ms / 1000) * 1000;
	}
	buf_init(&text, TEXT_MAX);
	json_write_map(&text, &s->env_vars);
	if ((e = buf_check(&text)) == NULL)
		s->variables.s = arena_strndup(deploy->a, text.data, text.len);
	buf_release(&text);
	return e;
}

/* The earlier the clock, the earlier the next time: a schedule whose time is
 * later than the present clock gives was fired by a clock that was ahead. */
const struct err *
scheduled_correct(struct db *db, const struct schedule *s, int64_t *next,
    bool *out)
{
	const struct err *e = NULL;

	*out = false;
	*next = next_of(s, s->now.ms / 1000) * 1000;
	if (*next != 0 && *next < s->next_at.ms)
		e = schedule_take(db, s, (struct when){ *next }, out);
	return e;
}

struct firing {
	struct deploy deploy; /* with an own arena */
	struct faults faults;
	const struct schedule *due;
	const char *runner;
	int64_t *out;
};

/* A run that has not begun before the next time comes is not needed, unless an
 * approver wants it. */
static const struct err *
supersede(struct deploy *deploy, struct maybe id)
{
	const struct move canceled = { .id = id.n,
		.from = STATE_PENDING,
		.to = STATE_CANCELED,
		.reason = REASON_SUPERSEDED,
		.detail = state_unstarted(REASON_SUPERSEDED) };
	struct deployment d;
	const struct err *e;
	int64_t n;

	if (!id.set)
		return NULL;
	if ((e = deployment_row(deploy->db, deploy->a, id.n, &d)) != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	return str_eq(d.approval, APPROVAL_GRANTED) ?
	    NULL :
	    move_deployment(deploy->db, &canceled, &n);
}

/* Why the rules reject the deployment; NULL if the error is of another kind. */
static const char *
rejection(const struct firing *f, const struct err *e)
{
	const struct fault *fault = f->faults.item;

	if (e->code == ERR_INVALID && f->faults.n > 0)
		return str_clip(f->deploy.a,
		    arena_printf(f->deploy.a, "%s: %s", fault->pointer + 1,
			fault->detail),
		    SCHEDULE_ERROR_MAX);
	return e->code == ERR_CONFIG && e->sys == 0 && e->detail[0] != '\0' ?
	    str_clip(f->deploy.a, e->detail, SCHEDULE_ERROR_MAX) :
	    NULL;
}

static const struct err *
fire(struct firing *f)
{
	struct schedule s = *f->due;
	struct deployment_request sent;
	struct deploy_order order;
	const struct err *e;
	struct deployment d;
	const char *why;

	if ((e = scheduled_open(f->deploy.a, &s)) != NULL)
		return e;
	sent = request_of(&s);
	order = order_of(&s, &sent);
	if ((e = deploy_create(&f->deploy, &order, &d)) != NULL) {
		if ((why = rejection(f, e)) == NULL)
			return e;
		return schedule_rejected(f->deploy.db, s.id, why);
	}
	*f->out = d.id;
	if ((e = audit_start(f->deploy.db, f->runner, "fireSchedule", d.id,
		 d.project_id)) != NULL ||
	    (e = supersede(&f->deploy, s.last_deployment_id)) != NULL)
		return e;
	return schedule_fired(f->deploy.db, s.id, d.id);
}

/* Another host may know the time zone, so the schedule stays due. */
static const struct err *
zone_reject(struct firing *f)
{
	const char *why = arena_printf(f->deploy.a,
	    "timezone: the host of the runner does not know %s; install its "
	    "time zones or choose another one",
	    f->due->timezone);

	return schedule_unfired(f->deploy.db, f->due,
	    str_clip(f->deploy.a, why, SCHEDULE_ERROR_MAX));
}

/* Locks the project first, as everything that creates deployments does. */
static const struct err *
fire_body(struct db *db, void *context)
{
	struct firing *f = context;
	const struct schedule *due = f->due;
	const int64_t next = next_of(due, due->now.ms / 1000);
	const struct err *e;
	bool taken;

	*f->out = 0;
	arena_clear(f->deploy.a);
	faults_again(&f->faults, f->deploy.a);
	if (next == 0)
		return zone_reject(f);
	e = deployment_hold_project(db, f->deploy.a, due->project_id);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	e = schedule_take(db, due, (struct when){ next * 1000 }, &taken);
	return e != NULL || !taken ? e : fire(f);
}

const struct err *
scheduled_fire(struct deploy *deploy, const struct schedule *due,
    const char *runner, int64_t *out)
{
	struct firing f = { .deploy = *deploy, .due = due, .runner = runner };
	const struct err *e;

	f.out = out;
	f.deploy.a = arena_open(DEPLOY_WORK);
	f.deploy.faults = &f.faults;
	e = db_transaction(deploy->db, fire_body, &f);
	arena_close(f.deploy.a);
	return e;
}
