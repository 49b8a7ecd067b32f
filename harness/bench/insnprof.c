// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU's TCG that tells what a guest executes between two marks
 * (see mark() in iobench.c), function by function:
 *
 *   -plugin insnprof.so,map=System.map,out=FILE
 *
 * For each pair of marks FILE gets a line "section N" and then, for each
 * function, "INSTRUCTIONS CALLS LOCKED NAME", the most expensive first; LOCKED
 * counts instructions with a lock prefix and exchanges with memory. The kernel
 * has to run where System.map says (nokaslr); "user" is all that is not kernel.
 *
 * Debian's QEMU ships no header for plugins: what is used of the interface,
 * version 1, is declared here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum { QEMU_PLUGIN_INLINE_ADD_U64 };
enum { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
	void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op,
	void *counter, uint64_t add);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
	void (*cb)(unsigned int cpu, void *data), int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
	size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#define EXPORTED	__attribute__((visibility("default")))
#define KERNEL		0xffff800000000000ULL

EXPORTED int qemu_plugin_version = 1;

static const unsigned char marker[] = { 0x0f, 0x1f, 0x80, 'd', 'i', 'o', '!' };

struct count {
	uint64_t insns, calls, locked;
};

struct function {
	uint64_t address;
	char *name;
	struct count now, before, between;
};

/* The first one, at address 0, is user space. */
static struct function *functions;
static size_t nr;
static FILE *out;

static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int by_cost(const void *a, const void *b)
{
	const struct function *x = *(void **)a, *y = *(void **)b;

	return (x->between.insns < y->between.insns) -
	       (x->between.insns > y->between.insns);
}

static void add_function(uint64_t address, const char *name)
{
	if (!(nr & (nr - 1)))
		functions = realloc(functions, (nr ? nr * 2 : 1) * sizeof(*functions));
	functions[nr++] = (struct function){ .address = address, .name = strdup(name) };
}

static bool read_map(const char *path)
{
	unsigned long long address;
	char type, name[512];
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		return false;
	}
	add_function(0, "user");
	while (fscanf(f, "%llx %c %511s", &address, &type, name) == 3)
		if (strchr("tTwW", type) && address >= KERNEL)
			add_function(address, name);
	fclose(f);
	qsort(functions, nr, sizeof(*functions), by_address);
	return true;
}

static struct function *function_at(uint64_t pc)
{
	size_t low = 0, high = nr;

	while (pc >= KERNEL && high - low > 1) {
		size_t middle = (low + high) / 2;

		if (functions[middle].address <= pc)
			low = middle;
		else
			high = middle;
	}
	return &functions[low];
}

static void report(unsigned int section)
{
	struct function **list = malloc(nr * sizeof(*list));

	for (size_t i = 0; i < nr; i++) {
		struct function *f = list[i] = &functions[i];

		f->between.insns = f->now.insns - f->before.insns;
		f->between.calls = f->now.calls - f->before.calls;
		f->between.locked = f->now.locked - f->before.locked;
	}
	qsort(list, nr, sizeof(*list), by_cost);
	fprintf(out, "section %u\n", section);
	for (size_t i = 0; i < nr && list[i]->between.insns; i++)
		fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
			list[i]->between.insns, list[i]->between.calls,
			list[i]->between.locked, list[i]->name);
	fflush(out);
	free(list);
}

static void on_mark(unsigned int cpu, void *data)
{
	static unsigned int marks;

	(void)cpu, (void)data;
	if (++marks % 2 == 0)
		report(marks / 2);
	for (size_t i = 0; i < nr; i++)
		functions[i].before = functions[i].now;
}

/* A lock prefix, maybe behind another one, or xchg with memory. */
static bool is_locked(const unsigned char *code, size_t size)
{
	size_t i = 0;

	while (i < size && (code[i] == 0x66 || code[i] == 0x3e || code[i] == 0x2e ||
			    code[i] == 0x65))
		i++;
	if (i < size && code[i] == 0xf0)
		return true;
	if (i < size && (code[i] & 0xf0) == 0x40)
		i++;
	return i + 1 < size && (code[i] & 0xfe) == 0x86 && code[i + 1] < 0xc0;
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb), locked = 0;
	uint64_t pc = qemu_plugin_tb_vaddr(tb);
	struct function *f = function_at(pc);

	(void)id;
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const unsigned char *code = qemu_plugin_insn_data(insn);
		size_t size = qemu_plugin_insn_size(insn);

		if (size == sizeof(marker) && !memcmp(code, marker, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
				QEMU_PLUGIN_CB_NO_REGS, NULL);
		locked += is_locked(code, size);
	}
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
						 &f->now.insns, insns);
	if (pc == f->address)
		qemu_plugin_register_vcpu_tb_exec_inline(tb,
			QEMU_PLUGIN_INLINE_ADD_U64, &f->now.calls, 1);
	if (locked)
		qemu_plugin_register_vcpu_tb_exec_inline(tb,
			QEMU_PLUGIN_INLINE_ADD_U64, &f->now.locked, locked);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
				 int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "map=", 4) && !read_map(argv[i] + 4))
			return 1;
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	}
	if (!nr || !out) {
		fprintf(stderr, "insnprof: needs map=System.map,out=FILE\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	return 0;
}
