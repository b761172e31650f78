/* SPDX-License-Identifier: ISC */
#include "api/resources.h"

#define X(name) &name##_resource,
const struct resource *const resources[] = { RESOURCES(X) NULL };
#undef X

const struct route_param route_page[] = { ROUTE_PAGE, PARAM_END };

const enum err_code route_conflict[] = { ERR_CONFLICT, ERR__MAX };
const enum err_code route_limited[] = { ERR_RATE, ERR__MAX };
