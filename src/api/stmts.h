/* SPDX-License-Identifier: ISC */
/* The statements of all stores that the API uses, for the check at start. */
#ifndef SLIPWAY_API_STMTS_H
#define SLIPWAY_API_STMTS_H

struct stmt;
extern const struct stmt *const *const api_stmts[]; /* ends with a NULL */

#endif
