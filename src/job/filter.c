/* SPDX-License-Identifier: ISC */
#include "job/filter.h"

#include <sys/prctl.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#define X32 UINT32_C(0x40000000) /* of a call number, on x86-64 */
#define ABIS_MAX 2
#define NAMESPACES_SIZE 12 /* instructions for one of them */
#define SCHEDULING_SIZE 17
#define KEYS_SIZE 9

/* A filter sees call numbers, which differ between the system call ABIs. */
static const struct abi {
	uint32_t arch;
	uint32_t clone, unshare, clone3;
	uint32_t setpriority;
	uint32_t setparam, setscheduler, setaffinity, setattr; /* sched_… */
	uint32_t keyctl;
} abis[] = {
#if defined(__x86_64__)
	{ AUDIT_ARCH_X86_64, 56, 272, 435, 141, 142, 144, 203, 314, 250 },
	{ AUDIT_ARCH_I386, 120, 310, 435, 97, 154, 156, 241, 351, 288 },
#elif defined(__aarch64__) && defined(__AARCH64EL__)
	{ AUDIT_ARCH_AARCH64, 220, 97, 435, 140, 118, 119, 122, 274, 219 },
	{ AUDIT_ARCH_ARM, 120, 337, 435, 97, 155, 157, 241, 380, 311 },
#elif defined(__riscv) && __riscv_xlen == 64
	{ AUDIT_ARCH_RISCV64, 220, 97, 435, 140, 118, 119, 122, 274, 219 },
#else
	{ .arch = 0 },
#endif
};

/* The processes to protect. */
struct guarded {
	pid_t job, group;
	uid_t watch;
};

static struct sock_filter
filter_statement(unsigned code, uint32_t k)
{
	return (struct sock_filter){ .code = (uint16_t)code, .k = k };
}

static struct sock_filter
filter_jump(unsigned how, uint32_t k, unsigned yes, unsigned no)
{
	return (struct sock_filter){ .code = (uint16_t)(BPF_JMP | how | BPF_K),
		.jt = (uint8_t)yes,
		.jf = (uint8_t)no,
		.k = k };
}

/* The lower half of an argument: these processors are little-endian. */
static struct sock_filter
filter_argument(size_t i)
{
	return filter_statement(BPF_LD | BPF_W | BPF_ABS,
	    (unsigned)(offsetof(struct seccomp_data, args) +
		i * sizeof(uint64_t)));
}

static struct sock_filter
filter_reject(unsigned error)
{
	return filter_statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
}

/* Loads the call number; jumps past `size` instructions for another ABI. */
static size_t
number_put(const struct abi *abi, size_t size, struct sock_filter *out)
{
	out[0] = filter_jump(BPF_JEQ, abi->arch, 0, (unsigned)size - 1);
	out[1] = filter_statement(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr));
	out[2] = filter_statement(BPF_ALU | BPF_AND | BPF_K, ~X32);
	return 3;
}

/* Rejects the flag in clone and unshare. clone3 has its flags in memory, where
 * filters cannot read them, so it fails with ENOSYS, and libc falls back to
 * clone. */
static size_t
namespaces_put(const struct abi *abi, const struct guarded *guarded,
    struct sock_filter *out)
{
	size_t n = number_put(abi, NAMESPACES_SIZE, out);

	(void)guarded;
	out[n++] = filter_jump(BPF_JEQ, abi->clone, 3, 0);
	out[n++] = filter_jump(BPF_JEQ, abi->unshare, 2, 0);
	out[n++] = filter_jump(BPF_JEQ, abi->clone3, 5, 0);
	out[n++] = filter_statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	out[n++] = filter_argument(0);
	out[n++] = filter_jump(BPF_JSET, CLONE_NEWUSER, 0, 1);
	out[n++] = filter_reject(EPERM);
	out[n++] = filter_statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	out[n++] = filter_reject(ENOSYS);
	return n;
}

/* setpriority takes a process, a group or a user; no step needs to change
 * another one that has the same number. */
static size_t
scheduling_put(const struct abi *abi, const struct guarded *guarded,
    struct sock_filter *out)
{
	size_t n = number_put(abi, SCHEDULING_SIZE, out);

	out[n++] = filter_jump(BPF_JEQ, abi->setpriority, 7, 0);
	out[n++] = filter_jump(BPF_JEQ, abi->setparam, 4, 0);
	out[n++] = filter_jump(BPF_JEQ, abi->setscheduler, 3, 0);
	out[n++] = filter_jump(BPF_JEQ, abi->setaffinity, 2, 0);
	out[n++] = filter_jump(BPF_JEQ, abi->setattr, 1, 0);
	out[n++] = filter_statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	out[n++] = filter_argument(0);
	out[n++] = filter_jump(BPF_JEQ, (uint32_t)guarded->job, 4, 3);
	out[n++] = filter_argument(1);
	out[n++] = filter_jump(BPF_JEQ, (uint32_t)guarded->job, 2, 0);
	out[n++] = filter_jump(BPF_JEQ, (uint32_t)guarded->group, 1, 0);
	out[n++] = filter_jump(BPF_JEQ, (uint32_t)guarded->watch, 0, 1);
	out[n++] = filter_reject(EPERM);
	out[n++] = filter_statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return n;
}

static size_t
keys_put(const struct abi *abi, const struct guarded *guarded,
    struct sock_filter *out)
{
	size_t n = number_put(abi, KEYS_SIZE, out);

	(void)guarded;
	out[n++] = filter_jump(BPF_JEQ, abi->keyctl, 0, 3);
	out[n++] = filter_argument(0);
	out[n++] = filter_jump(BPF_JEQ, KEYCTL_SETPERM, 2, 0);
	out[n++] = filter_jump(BPF_JEQ, KEYCTL_RESTRICT_KEYRING, 1, 0);
	out[n++] = filter_statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	out[n++] = filter_reject(EPERM);
	return n;
}

static bool
filter_install(size_t (*put)(const struct abi *, const struct guarded *,
		   struct sock_filter *),
    const struct guarded *guarded)
{
	struct sock_filter code[ABIS_MAX * SCHEDULING_SIZE + 2];
	struct sock_fprog program = { .filter = code };
	size_t n = 0, i;

	if (abis[0].arch == 0)
		return true;
	code[n++] = filter_statement(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, arch));
	for (i = 0; i < sizeof(abis) / sizeof(abis[0]); i++)
		n += put(&abis[i], guarded, code + n);
	code[n++] = filter_reject(ENOSYS);
	program.len = (unsigned short)n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

bool
filter_namespaces(void)
{
	return filter_install(namespaces_put, NULL);
}

bool
filter_keys(void)
{
	return filter_install(keys_put, NULL);
}

bool
filter_scheduling(pid_t job, pid_t group, uid_t watch)
{
	const struct guarded guarded = { job, group, watch };

	return filter_install(scheduling_put, &guarded);
}
