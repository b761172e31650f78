/* SPDX-License-Identifier: ISC */
/* Signing in a device that has no browser, such as the command line: OAuth 2.0
 * device authorization grant (RFC 8628). */
#include <ctype.h>
#include <string.h>

#include "api/grant.h"
#include "api/resources.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "store/device.h"
#include "store/user.h"
#include "web/audited.h"

/* Anyone can begin, so the number of requests is limited: those of one address
 * or network, which many people may share, and all. */
#define HERE_MAX 50
#define ALL_MAX 2000
#define RETRY_SECONDS 60
#define TRIES 3 /* to find a user code that is not in use */
/* Letters for user codes (RFC 8628, section 6.1): no vowels, so no words, and
 * none that looks like a digit. Eight of them have 34 bits. */
#define LETTERS "BCDFGHJKLMNPQRSTVWXZ"
#define CODE_LEN 8
#define CODE_SIZE (CODE_LEN + 1)
#define PAGE "/slipway/device"

struct device_begin {
	const char *name;
};
struct device_codes {
	const char *device_code;
	const char *user_code;
	const char *verification_uri;
	const char *verification_uri_complete;
	int64_t expires_in;
	int64_t interval;
};
struct device_token {
	const char *device_code;
};
struct device_decision {
	const char *user_code;
	const char *role;
	struct when expires_at;
};

#define LINE FIELD_IN | FIELD_LINE
#define USER_CODE(T)                                                           \
	FIELD(T, user_code, LINE | FIELD_MUST, .min = 1, .max = 50,            \
	    .doc = "User code that the device shows. Case, hyphens and "       \
		   "spaces do not matter.")

static const struct field begin_fields[] = {
	FIELD(struct device_begin, name, LINE | FIELD_NULL, .min = 1,
	    .max = 100,
	    .doc = "How the device calls itself, which becomes the name of "
		   "its token."),
	FIELD_END,
};
static const struct shape begin_shape = {
	.name = "DeviceStart",
	.fields = begin_fields,
	.size = sizeof(struct device_begin),
	.doc = "A device that wants to be signed in.",
};

#define C(m, ...) FIELD(struct device_codes, m, FIELD_OUT, __VA_ARGS__)
static const struct field codes_fields[] = {
	C(device_code,
	    .doc = "Secret of the device, with which it polls for the token."),
	C(user_code, .doc = "Code for the user to enter."),
	C(verification_uri, .doc = "Page on which the user enters the code."),
	C(verification_uri_complete,
	    .doc = "The same page with the code filled in."),
	C(expires_in, .doc = "Seconds until both codes expire."),
	C(interval, .doc = "Minimum number of seconds between two polls."),
	FIELD_END,
};
static const struct shape codes_shape = {
	.name = "DeviceCodes",
	.fields = codes_fields,
	.size = sizeof(struct device_codes),
	.doc = "Codes of a device that waits to be signed in.",
};

static const struct field token_fields[] = {
	FIELD(struct device_token, device_code, LINE | FIELD_MUST, .min = 1,
	    .max = 100, .doc = "Device code."),
	FIELD_END,
};
static const struct shape token_shape = {
	.name = "DevicePoll",
	.fields = token_fields,
	.size = sizeof(struct device_token),
	.doc = "A request of a device for its token.",
};

#define R(m, ...) FIELD(struct device, m, FIELD_OUT, __VA_ARGS__)
static const struct field request_fields[] = {
	R(user_code, .doc = "Code that the device shows."),
	R(name, .doc = "How the device calls itself."),
	R(address, .doc = "Address from which the device sent its request."),
	R(created_at, .doc = "Time of its request."),
	R(expires_at, .doc = "When the request expires."),
	FIELD_END,
};
static const struct shape request_shape = {
	.name = "DeviceRequest",
	.fields = request_fields,
	.size = sizeof(struct device),
	.doc = "A device that asks to be signed in.",
};

static const struct field approval_fields[] = {
	USER_CODE(struct device_decision),
	FIELD(struct device_decision, role, FIELD_IN,
	    .values = ROLE_NAMES_VIEWER, .named = "TokenRole",
	    .doc = "Role of the device's token; the default and maximum is "
		   "the highest role that the caller has anywhere."),
	FIELD(struct device_decision, expires_at, FIELD_IN | FIELD_NULL,
	    .doc = "When the device's token expires; null = never. The "
		   "default and maximum is the expiry of the token with which "
		   "the caller is signed in."),
	FIELD_END,
};
static const struct shape approval_shape = {
	.name = "DeviceApproval",
	.fields = approval_fields,
	.size = sizeof(struct device_decision),
	.doc = "Consent to sign in a device as the caller.",
};
static const struct field denial_fields[] = {
	USER_CODE(struct device_decision),
	FIELD_END,
};
static const struct shape denial_shape = {
	.name = "DeviceDenial",
	.fields = denial_fields,
	.size = sizeof(struct device_decision),
	.doc = "Refusal to sign in a device.",
};

/* Eight random letters. */
static void
code_make(char out[CODE_SIZE])
{
	const size_t letters = sizeof(LETTERS) - 1;
	unsigned char byte;
	size_t n = 0;

	while (n < CODE_LEN) {
		crypto_random(&byte, 1);
		if (byte < 256 / letters * letters)
			out[n++] = LETTERS[byte % letters];
	}
	out[n] = '\0';
}

/* The letters of a code as a person enters it; false if it cannot be one. */
static bool
code_read(const char *text, char out[CODE_SIZE])
{
	size_t n = 0;
	char c;

	for (; *text != '\0'; text++) {
		c = (char)toupper((unsigned char)*text);
		if (c == '-' || c == ' ')
			continue;
		if (n == CODE_LEN || strchr(LETTERS, c) == NULL)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return n == CODE_LEN;
}

static const char *
code_shown(struct arena *a, const char *code)
{
	return arena_printf(a, "%.4s-%s", code, code + 4);
}

/* The address of the page for codes. */
static const struct err *
page_address(struct req *rq, const char **out)
{
	const char *base = settings_url(rq->settings, rq->a);
	const char *host = rq->in[IN_HOST];

	*out = NULL;
	if (base == NULL && host == NULL)
		return err_public(ERR_BAD_REQUEST,
		    "The request has no Host, and api.url is not set.");
	if (base == NULL)
		base = arena_printf(rq->a, "http%s://%s",
		    rq->in[IN_HTTPS] != NULL ? "s" : "", host);
	*out = arena_printf(rq->a, "%s" PAGE, base);
	return NULL;
}

static const struct err *
check_number(struct req *rq, const char *address)
{
	const struct err *e;
	int64_t here, all;

	if ((e = device_count(rq->db, rq->a, address, &here, &all)) != NULL)
		return e;
	if (here < HERE_MAX && all < ALL_MAX)
		return NULL;
	return err_public_number(ERR_RATE, RETRY_SECONDS,
	    "Too many devices%s wait to be signed in. Wait until some of the "
	    "codes have expired, at most 15 minutes.",
	    here < HERE_MAX ? "" : " at your address");
}

static const struct err *
device_store(struct req *rq, struct device *d, char code[CODE_SIZE])
{
	const struct err *e;
	int i = 0;

	do {
		code_make(code);
		d->user_code = code;
		e = device_insert(rq->db, d);
	} while (e != NULL && e->code == ERR_CONFLICT && ++i < TRIES);
	return e;
}

static const struct err *
api_device_start(struct req *rq)
{
	const struct device_begin *sent = rq->body;
	char secret[CRYPTO_TOKEN_MAX], hash[CRYPTO_HASH_HEX], code[CODE_SIZE];
	struct device d = { .hash = hash, .name = sent->name };
	struct device_codes codes = { .device_code = secret,
		.expires_in = DEVICE_SECONDS,
		.interval = DEVICE_INTERVAL };
	const struct err *e;

	if (rq->unready != NULL)
		return rq->unready;
	audited_nothing(rq); /* the user is not known yet */
	d.address = rq->in[IN_REMOTE_ADDR] != NULL ? rq->in[IN_REMOTE_ADDR] :
						     "";
	if (d.name == NULL)
		d.name = "device";
	crypto_token("", secret);
	crypto_sha256(secret, strlen(secret), hash);
	if ((e = page_address(rq, &codes.verification_uri)) != NULL ||
	    (e = check_number(rq, d.address)) != NULL ||
	    (e = device_store(rq, &d, code)) != NULL)
		return e;
	codes.user_code = code_shown(rq->a, code);
	codes.verification_uri_complete = arena_printf(rq->a, "%s#%s",
	    codes.verification_uri, codes.user_code);
	answer_item(rq, &codes_shape, &codes, 0);
	return NULL;
}

static const struct err *
reject(struct req *rq, const char *error, const char *why)
{
	rq->device_error = error;
	return err_public(ERR_BAD_REQUEST, "%s", why);
}

static const struct err *
reject_expired(struct req *rq)
{
	return reject(rq, "expired_token",
	    "The device code is unknown, used or expired. Start again.");
}

static const struct err *
still_pending(struct req *rq, const struct device_poll *p)
{
	const struct err *e = device_polled(rq->db, p);

	if (e != NULL)
		return e;
	if (p->is_early)
		return reject(rq, "slow_down",
		    "No user has decided yet, and this device polls too "
		    "often: wait five seconds longer from now on.");
	return reject(rq, "authorization_pending",
	    "No user has decided yet: poll again after the interval.");
}

struct taking {
	struct req *rq;
	const char *hash;
	struct device_poll poll;
	struct api_token made;
	char secret[CRYPTO_TOKEN_MAX];
	char token_hash[CRYPTO_HASH_HEX];
};

/* The user who approved must still be allowed to create the token. */
static const struct err *
check_approved(struct req *rq, const struct device_poll *p)
{
	if (strcmp(p->status, DEVICE_APPROVED) != 0)
		return reject(rq, "access_denied",
		    "A user has denied this request.");
	if (p->user_id == 0 || p->is_revoked ||
	    (p->is_refused && !rq->settings->auth.remote_user))
		return reject(rq, "access_denied",
		    "The user who has approved this request, or the token "
		    "with which the user was signed in, is disabled or "
		    "deleted.");
	return NULL;
}

static const struct err *
take_body(struct db *db, void *context)
{
	struct taking *t = context;
	struct req *rq = t->rq;
	const struct err *e;
	struct api_token new;
	int64_t id;

	if ((e = device_find(db, rq->a, t->hash, &t->poll)) != NULL ||
	    (e = check_approved(rq, &t->poll)) != NULL ||
	    (e = device_take(db, &t->poll)) != NULL)
		return e;
	new = (struct api_token){ .user_id = t->poll.user_id,
		.name = t->poll.name,
		.role = t->poll.role,
		.hash = t->token_hash,
		.expires_at = t->poll.token_expires_at };
	rq->who.user_id = t->poll.user_id;
	rq->who.username = t->poll.username;
	if ((e = token_insert(db, &new, &id)) != NULL)
		return e;
	audited_made(rq, &api_token_shape, &new);
	if ((e = audited_change(rq, AUDIT_OF_TOKEN, id, 0)) != NULL)
		return e;
	return token_by_id(db, rq->a, new.user_id, id, &t->made);
}

static const struct err *
api_device_token(struct req *rq)
{
	const struct device_token *sent = rq->body;
	char hash[CRYPTO_HASH_HEX];
	struct taking t = { .rq = rq, .hash = hash };
	const struct err *e;

	if (rq->unready != NULL)
		return rq->unready;
	audited_nothing(rq); /* unless the device gets its token */
	crypto_sha256(sent->device_code, strlen(sent->device_code), hash);
	e = device_find(rq->db, rq->a, hash, &t.poll);
	if (e == NULL && strcmp(t.poll.status, DEVICE_PENDING) == 0)
		return still_pending(rq, &t.poll);
	if (e == NULL) {
		crypto_token("slw_", t.secret);
		crypto_sha256(t.secret, strlen(t.secret), t.token_hash);
		e = req_transaction(rq, take_body, &t);
	}
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? reject_expired(rq) : e;
	rq->who_text = rq->who.username;
	t.made.token = t.secret;
	answer_location(rq, "/api/auth/tokens/%lld", (long long)t.made.id);
	answer_item(rq, &api_token_shape, &t.made, 1);
	return NULL;
}

/* Finds the pending request with the code that the caller has entered. */
static const struct err *
request_find(struct req *rq, const char *text, struct device *out)
{
	const struct err *e = NULL;
	char code[CODE_SIZE];

	*out = (struct device){ .user_code = NULL };
	if (code_read(text, code))
		e = device_pending(rq->db, rq->a, code, out);
	if (out->user_code == NULL && (e == NULL || e->code == ERR_NOTFOUND))
		return err_public(ERR_NOTFOUND,
		    "No device waits with this code. Check for a typing "
		    "mistake; a code can be used only once, for 15 minutes.");
	return e;
}

static const struct err *
api_device_request(struct req *rq)
{
	const struct err *e;
	struct device d;

	if ((e = request_find(rq, req_str(rq, "userCode"), &d)) != NULL)
		return e;
	d.user_code = code_shown(rq->a, d.user_code);
	answer_item(rq, &request_shape, &d, 0);
	return NULL;
}

static const struct err *
api_device_judge(struct req *rq, const void *item)
{
	const struct device_decision *sent = item;

	return grant_judge(rq, sent->role, sent->expires_at);
}

struct deciding {
	struct req *rq;
	struct device device;
};

static const struct err *
decide_body(struct db *db, void *context)
{
	const struct deciding *d = context;
	const struct err *e;

	if ((e = device_decide(db, &d->device)) != NULL)
		return e;
	return audited_change(d->rq, AUDIT_OF_DEVICE, d->device.id, 0);
}

static const struct err *
decide(struct req *rq, const char *status, const char *role,
    struct when expires_at)
{
	const struct device_decision *sent = rq->body;
	struct deciding d = { .rq = rq };
	const struct err *e;

	if ((e = request_find(rq, sent->user_code, &d.device)) != NULL)
		return e;
	d.device.status = status;
	d.device.user_id = (struct maybe){ rq->who.user_id, true };
	d.device.token_id = (struct maybe){ rq->who.token_id,
		rq->who.token_id != 0 };
	d.device.role = role;
	d.device.token_expires_at = expires_at;
	return req_transaction(rq, decide_body, &d);
}

static const struct err *
api_device_approve(struct req *rq)
{
	const struct device_decision *sent = rq->body;
	struct when expires_at = sent->expires_at;
	const char *role = sent->role;
	const struct err *e;

	if ((e = req_judge(rq)) != NULL ||
	    (e = grant_fill(rq, &role, &expires_at)) != NULL)
		return e;
	return decide(rq, DEVICE_APPROVED, role, expires_at);
}

static const struct err *
api_device_deny(struct req *rq)
{
	return decide(rq, DEVICE_DENIED, NULL, (struct when){ 0 });
}

static const struct route_param request_query[] = {
	{ .name = "userCode",
	    .type = PARAM_STR,
	    .must = 1,
	    .min = 1,
	    .max = 50,
	    .doc = "User code that the device shows. Case, hyphens and spaces "
		   "do not matter." },
	PARAM_END,
};

static const enum err_code looking[] = { ERR_NOTFOUND, ERR_RATE, ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_POST,
	    .path = "/api/auth/device",
	    .flags = ROUTE_BODILESS,
	    .in = &begin_shape,
	    .mode = JSON_CREATE,
	    .handler = api_device_start,
	    .operation = "startDevice",
	    .summary = "Get the codes to sign in a device (RFC 8628)",
	    .doc = "Show the user userCode and verificationUri, and poll "
		   "/api/auth/device/token with deviceCode.",
	    .out = &codes_shape,
	    .status = 200,
	    .errors = route_limited },
	{ .method = METHOD_POST,
	    .path = "/api/auth/device/token",
	    .in = &token_shape,
	    .mode = JSON_CREATE,
	    .handler = api_device_token,
	    .operation = "takeDeviceToken",
	    .summary = "Get the token of a device that a user has approved",
	    .doc = "Until then, the response is 400, and error says why: see "
		   "DeviceError. A device code works only once.",
	    .out = &api_token_shape,
	    .status = 201,
	    .errors = route_limited },
	{ .method = METHOD_GET,
	    .path = "/api/auth/device/request",
	    .role = ROLE_GUEST,
	    .query = request_query,
	    .handler = api_device_request,
	    .operation = "getDeviceRequest",
	    .summary = "Get the device that shows a user code",
	    .out = &request_shape,
	    .status = 200,
	    .errors = looking },
	{ .method = METHOD_POST,
	    .path = "/api/auth/device/approve",
	    .role = ROLE_GUEST,
	    .in = &approval_shape,
	    .mode = JSON_CREATE,
	    .handler = api_device_approve,
	    .judge = api_device_judge,
	    .operation = "approveDevice",
	    .summary = "Sign in a device with a token of yours",
	    .status = 204,
	    .errors = looking },
	{ .method = METHOD_POST,
	    .path = "/api/auth/device/deny",
	    .role = ROLE_GUEST,
	    .in = &denial_shape,
	    .mode = JSON_CREATE,
	    .handler = api_device_deny,
	    .operation = "denyDevice",
	    .summary = "Refuse to sign in a device",
	    .status = 204,
	    .errors = looking },
	ROUTE_END,
};

const struct resource devices_resource = {
	.tag = "auth",
	.routes = routes,
};
