// SPDX-License-Identifier: GPL-2.0
/*
 * raw(8): what it prints, and how it exits.  The program is looked for in PATH;
 * the environment variable RAW names another.
 */
#include "../kselftest_harness.h"
#include "rawdev.h"

#include <stdarg.h>
#include <sys/wait.h>

#define NOBODY 65534

/* ---- running it ---- */

static char out[64 * KIB], err[4096];

static const char *tool(void)
{
	return getenv("RAW") ?: "raw";
}

static void slurp(FILE *f, char *text, size_t size)
{
	rewind(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

/* Run raw as user @uid, fill in @out and @err, and return the exit status. */
static int run_as(uid_t uid, char **argv)
{
	FILE *o = tmpfile(), *e = tmpfile();
	int status;
	pid_t pid;

	if (!o || !e)
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		dup2(fileno(o), 1);
		dup2(fileno(e), 2);
		if (uid && (setgid(uid) || setuid(uid)))
			_exit(126);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	slurp(o, out, sizeof(out));
	slurp(e, err, sizeof(err));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(const char *arg, ...)
{
	char *argv[8] = { (char *)tool(), (char *)arg };
	int i = 1;
	va_list ap;

	va_start(ap, arg);
	while (argv[i] && ++i < 7)
		argv[i] = va_arg(ap, char *);
	va_end(ap);
	return run_as(0, argv);
}

/* ---- */

FIXTURE(raw_tool) {
	struct raw_pair p;
	char name[2][16];	/* rawN */
	char major[8], minor[8];
	char line[80];		/* what raw says when minor[0] is bound */
	char none[80];		/* and when it is not */
};

FIXTURE_SETUP(raw_tool)
{
	const char *why;
	int ret, i;

	if (!strchr(tool(), '/') && !dio_have(tool()))
		SKIP(return, "raw is not in PATH (make -C tools/raw install)");
	self->p.disk.mib = 4;
	ret = raw_pair_create(&self->p, &why);
	if (ret)
		SKIP(return, "%s: %s", why, strerror(-ret));
	ASSERT_EQ(0, raw_unbind(self->p.ctl, self->p.minor[0]));
	for (i = 0; i < 2; i++)
		sprintf(self->name[i], "raw%d", self->p.minor[i]);
	sprintf(self->major, "%u", major(self->p.dev));
	sprintf(self->minor, "%u", minor(self->p.dev));
	sprintf(self->line, "%s:\tbound to major %u, minor %u\n",
		self->p.path[0], major(self->p.dev), minor(self->p.dev));
	sprintf(self->none, "%s:\tbound to major 0, minor 0\n",
		self->p.path[0]);
}

FIXTURE_TEARDOWN(raw_tool)
{
	raw_pair_destroy(&self->p);
}

TEST_F(raw_tool, bind_by_path_query_unbind)
{
	EXPECT_EQ(0, run(self->p.path[0], self->p.disk.path, NULL));
	EXPECT_STREQ(self->line, out);
	EXPECT_STREQ("", err);
	EXPECT_EQ(0, access(self->p.path[0], F_OK));
	EXPECT_EQ(0, run("-q", self->p.path[0], NULL));
	EXPECT_STREQ(self->line, out);
	EXPECT_EQ(0, run(self->p.path[0], "0", "0", NULL));
	EXPECT_STREQ(self->none, out);
	EXPECT_EQ(0, run("-q", self->p.path[0], NULL));
	EXPECT_STREQ(self->none, out);
	EXPECT_EQ(-1, access(self->p.path[0], F_OK));
}

TEST_F(raw_tool, bind_by_numbers)
{
	EXPECT_EQ(0, run(self->p.path[0], self->major, self->minor, NULL));
	EXPECT_STREQ(self->line, out);
	/* the disk need not be there */
	EXPECT_EQ(0, run(self->p.path[0], "4095", "0xfffff", NULL));
	EXPECT_NE(NULL, strstr(out, ":\tbound to major 4095, minor 1048575\n"));
}

TEST_F(raw_tool, three_ways_to_name_a_raw_device)
{
	char dev_name[32];

	sprintf(dev_name, "/dev/%s", self->name[0]);
	EXPECT_EQ(0, run(self->name[0], self->p.disk.path, NULL));
	EXPECT_STREQ(self->line, out);
	EXPECT_EQ(0, run("-q", dev_name, NULL));
	EXPECT_STREQ(self->line, out);
	EXPECT_EQ(0, run("--query", self->name[0], NULL));
	EXPECT_STREQ(self->line, out);
	EXPECT_EQ(0, run(dev_name, "0", "0", NULL));
	EXPECT_STREQ(self->none, out);
}

TEST_F(raw_tool, query_all_shows_bound_ones)
{
	EXPECT_EQ(0, run("-qa", NULL));
	EXPECT_EQ(NULL, strstr(out, self->p.path[0]));
	EXPECT_EQ(NULL, strstr(out, "major 0, minor 0"));
	EXPECT_EQ(0, run(self->p.path[0], self->p.disk.path, NULL));
	EXPECT_EQ(0, run("-qa", NULL));
	EXPECT_NE(NULL, strstr(out, self->line));
	EXPECT_EQ(0, run("-q", "-a", NULL));
	EXPECT_NE(NULL, strstr(out, self->line));
}

TEST_F(raw_tool, busy)
{
	char want[80];
	int fd;

	ASSERT_EQ(0, raw_pair_bind(&self->p, 0));
	fd = open(self->p.path[0], O_RDONLY);
	ASSERT_GE(fd, 0);
	sprintf(want, "raw: %s: busy\n", self->p.path[0]);
	EXPECT_EQ(1, run(self->p.path[0], "0", "0", NULL));
	EXPECT_STREQ(want, err);
	EXPECT_STREQ("", out);
	EXPECT_EQ(1, run(self->p.path[0], self->p.disk.path, NULL));
	EXPECT_STREQ(want, err);
	close(fd);
}

TEST_F(raw_tool, refused_by_the_system)
{
	char last[32], beyond[32];

	EXPECT_EQ(1, run(self->p.path[0], "/dev/null", NULL));
	EXPECT_STREQ("raw: /dev/null: not a block device\n", err);
	EXPECT_EQ(1, run(self->p.path[0], "/dev/no-such-disk", NULL));
	EXPECT_STREQ("raw: /dev/no-such-disk: No such file or directory\n",
		     err);
	sprintf(beyond, "raw%d", raw_minors(self->p.ctl));
	sprintf(last, "raw%d;", raw_minors(self->p.ctl) - 1);
	EXPECT_EQ(1, run(beyond, self->p.disk.path, NULL));
	EXPECT_NE(NULL, strstr(err, "no such raw device"));
	EXPECT_NE(NULL, strstr(err, last));
	EXPECT_NE(NULL, strstr(err, "max_raw_minors"));
	EXPECT_EQ(1, run("-q", beyond, NULL));
	EXPECT_NE(NULL, strstr(err, "no such raw device"));
}

TEST_F(raw_tool, senseless_command_lines)
{
	const char *path = self->p.path[0], *disk = self->p.disk.path;

	EXPECT_EQ(2, run(NULL, NULL));
	EXPECT_NE(NULL, strstr(err, "raw -h"));
	EXPECT_EQ(2, run(path, NULL));
	EXPECT_EQ(2, run("-q", NULL));
	EXPECT_EQ(2, run("-a", NULL));
	EXPECT_EQ(2, run("-qa", path, NULL));
	EXPECT_EQ(2, run("-x", NULL));
	EXPECT_EQ(2, run(path, "8", "0", "0", NULL));
	EXPECT_EQ(2, run("raw0", disk, NULL));
	EXPECT_EQ(2, run("rawctl", disk, NULL));
	EXPECT_EQ(2, run("/dev/raw/raw1x", disk, NULL));
	EXPECT_EQ(2, run("/dev/raw1/raw1", disk, NULL));
	EXPECT_EQ(2, run("raw99999999999999999999", disk, NULL));
	EXPECT_EQ(2, run(path, "4096", "0", NULL));
	EXPECT_EQ(2, run(path, "8", "1048576", NULL));
	EXPECT_EQ(2, run(path, "8", "-1", NULL));
	EXPECT_EQ(2, run(path, "8", "x", NULL));
	EXPECT_EQ(2, run(path, "0", "1", NULL));
	EXPECT_NE(NULL, strstr(err, "0 0 removes a binding"));
	EXPECT_STREQ("", out);
}

TEST_F(raw_tool, help_and_version)
{
	EXPECT_EQ(0, run("-h", NULL));
	EXPECT_EQ(0, strncmp(out, "Usage: raw ", 11));
	EXPECT_STREQ("", err);
	EXPECT_EQ(0, run("-V", NULL));
	EXPECT_EQ(0, strncmp(out, "raw ", 4));
	EXPECT_STREQ("", err);
}

TEST_F(raw_tool, not_root)
{
	char *argv[4] = { (char *)tool(), self->p.path[0], self->p.disk.path,
			 NULL };

	ASSERT_EQ(0, chmod("/dev/raw/rawctl", 0600));
	EXPECT_EQ(1, run_as(NOBODY, argv));
	EXPECT_NE(NULL, strstr(err, "run raw as root"));
	/* rawctl open to all is not enough either */
	ASSERT_EQ(0, chmod("/dev/raw/rawctl", 0666));
	EXPECT_EQ(1, run_as(NOBODY, argv));
	ASSERT_EQ(0, chmod("/dev/raw/rawctl", 0600));
	EXPECT_NE(NULL, strstr(err, "run raw as root (CAP_SYS_ADMIN)"));
}

TEST_HARNESS_MAIN
