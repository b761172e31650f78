/* SPDX-License-Identifier: ISC */
#include "web/resource.h"

const struct route_param route_page[] = { ROUTE_PAGE, PARAM_END };

const enum err_code route_conflict[] = { ERR_CONFLICT, ERR__MAX };
const enum err_code route_limited[] = { ERR_RATE, ERR__MAX };

const struct resource *
resource_with_headers(void)
{
	const struct resource *const *res;

	for (res = resources; *res != NULL && (*res)->headers == 0; res++)
		;
	return *res;
}
