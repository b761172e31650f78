/* SPDX-License-Identifier: ISC */
/* How git-lfs is run. */
#ifndef SLIPWAY_JOB_LFS_H
#define SLIPWAY_JOB_LFS_H

struct job;

/* Settings and variables with which git fetches the files of Git LFS. */
#define LFS_SETTINGS 4
extern const char *const lfs_settings[LFS_SETTINGS];
#define LFS_ENVIRONMENT 2
void lfs_environment(const struct job *, const char *out[LFS_ENVIRONMENT]);
/* Removes what git-lfs left in the home. */
void lfs_close(void);

#endif
