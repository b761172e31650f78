/* SPDX-License-Identifier: ISC */
#include "job/userns.h"

#include <sys/prctl.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#define X32 UINT32_C(0x40000000) /* of a number, on x86-64 */
#define ABI_SIZE 12              /* instructions */
#define ABIS_MAX 2

/* A filter sees numbers, which differ between the ways into the kernel. */
static const struct abi {
	uint32_t arch;
	uint32_t clone;
	uint32_t unshare;
	uint32_t clone3;
} abis[] = {
#if defined(__x86_64__)
	{ AUDIT_ARCH_X86_64, 56, 272, 435 },
	{ AUDIT_ARCH_I386, 120, 310, 435 },
#elif defined(__aarch64__) && defined(__AARCH64EL__)
	{ AUDIT_ARCH_AARCH64, 220, 97, 435 },
	{ AUDIT_ARCH_ARM, 120, 337, 435 },
#elif defined(__riscv) && __riscv_xlen == 64
	{ AUDIT_ARCH_RISCV64, 220, 97, 435 },
#else
	{ 0, 0, 0, 0 },
#endif
};

static struct sock_filter
statement(unsigned code, uint32_t k)
{
	return (struct sock_filter){ .code = (uint16_t)code, .k = k };
}

static struct sock_filter
jump(unsigned how, uint32_t k, unsigned yes, unsigned no)
{
	return (struct sock_filter){ .code = (uint16_t)(BPF_JMP | how | BPF_K),
		.jt = (uint8_t)yes,
		.jf = (uint8_t)no,
		.k = k };
}

/* Refuses the flag in clone and unshare.  clone3 has its flags in memory, where
 * no filter can read them: it is said not to exist, and libc uses clone. */
static void
abi_put(const struct abi *abi, struct sock_filter out[ABI_SIZE])
{
	size_t n = 0;

	out[n++] = jump(BPF_JEQ, abi->arch, 0, ABI_SIZE - 1);
	out[n++] = statement(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr));
	out[n++] = statement(BPF_ALU | BPF_AND | BPF_K, ~X32);
	out[n++] = jump(BPF_JEQ, abi->clone, 3, 0);
	out[n++] = jump(BPF_JEQ, abi->unshare, 2, 0);
	out[n++] = jump(BPF_JEQ, abi->clone3, 5, 0);
	out[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* the lower half: these processors are little endian */
	out[n++] = statement(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, args[0]));
	out[n++] = jump(BPF_JSET, CLONE_NEWUSER, 0, 1);
	out[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	out[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	out[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
}

bool
userns_forbid(void)
{
	struct sock_filter code[1 + ABIS_MAX * ABI_SIZE + 2];
	struct sock_fprog program = { .filter = code };
	size_t n = 0, i;

	if (abis[0].arch == 0)
		return true;
	code[n++] = statement(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, arch));
	for (i = 0; i < sizeof(abis) / sizeof(abis[0]); i++) {
		abi_put(&abis[i], code + n);
		n += ABI_SIZE;
	}
	code[n++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	program.len = (unsigned short)n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
