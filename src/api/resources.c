/* SPDX-License-Identifier: ISC */
#include "api/resources.h"

#define X(name) &name##_resource,
const struct resource *const resources[] = { RESOURCES(X) NULL };
#undef X
