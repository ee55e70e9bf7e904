// SPDX-License-Identifier: Apache-2.0
// The rules are in docs/formats.md, "Thread and kernel thread names".
#include "agent/service.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

#define NAME_CAP 256

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_separator(char c)
{
	return c && strchr(" -_#.:/@[](){}<>|=+,;~", c);
}

// ---- kernel threads

// Their names up to the '/': what follows is a CPU, a device, a queue.
static const char *const slash_names[] = {
	"kworker", "jbd2", "xfsaild", "xfs-buf", "xfs-conv", "xfs-cil", "xfs-reclaim", "xfs-blockgc", "xfs-inodegc",
	"xfs-log", "xfs-sync", "xfs-eofblocks", "ext4-rsv-conver", "ksoftirqd", "migration", "cpuhp", "idle_inject", "irq",
	"rcub", "rcuc", "rcuog", "rcuop", "rcuos", "dmcrypt_write", "kcryptd", "kcryptd_io", "kdmflush", "kverityd", "bioset",
	"mmcqd", "reiserfs", "posixcputmr", "watchdog", "stopper", "hv_balloon", "jfsCommit", "kmpath_rdacd", "ktimers",
	"backlog_napi", "napi", "edac-poller", "kipmi",
};

static size_t slash_name(const char *name)
{
	for (size_t i = 0; i < sizeof(slash_names) / sizeof(*slash_names); i++) {
		size_t len = strlen(slash_names[i]);

		if (!strncmp(name, slash_names[i], len) && name[len] == '/')
			return len;
	}
	return 0;
}

// "md127_raid1", "md0_resync": the number names the array.
static size_t md_number(const char *name)
{
	size_t digits = strncmp(name, "md", 2) ? 0 : strspn(name + 2, "0123456789");

	return digits && name[2 + digits] == '_' && is_letter(name[3 + digits]) ? digits : 0;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

void kernel_thread_kind(const char *comm, char *out, size_t cap)
{
	static const char *const families[] = { "drbd_", "loop", "nbd", "rbd", "zd" };
	char name[NAME_CAP];
	size_t len = text_sanitize(name, sizeof(name), comm, strlen(comm)), cut = strcspn(name, "/");

	if (md_number(name)) {
		text_sanitize(out, cap, "md", 2);
		return;
	}
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		size_t n = strlen(families[i]);

		if (!begins(name, families[i]) || (families[i][n - 1] != '_' && !is_digit(name[n])))
			continue;
		text_sanitize(out, cap, families[i], families[i][n - 1] == '_' ? n - 1 : n);
		return;
	}
	if (cut && cut < len) {
		text_sanitize(out, cap, name, cut);
		return;
	}
	// "f2fs_gc-254:0", "vhost-4711", "nvme0q1-poll": from the first separator that a number follows.
	for (cut = 1; cut < len && !(is_separator(name[cut]) && is_digit(name[cut + 1])); cut++)
		;
	while (cut > 1 && (is_digit(name[cut - 1]) || is_separator(name[cut - 1])))
		cut--;
	text_sanitize(out, cap, name, cut > 1 || is_letter(name[0]) ? cut : len);
}

// ---- pools of threads

// Words whose number is part of the name and not a count.
static const char *const numbered_words[] = {
	"python", "pypy", "perl", "ruby", "lua", "luajit", "php", "fpm", "node", "nodejs", "java", "tclsh", "wish", "guile",
	"sqlite", "bzip", "bunzip", "lz", "gpg", "iperf", "ext", "jbd", "raid", "ipv", "utf", "sha", "libuv",
};

static bool is_numbered_word(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(numbered_words) / sizeof(*numbered_words); i++)
		if (strlen(numbered_words[i]) == len && !memcmp(word, numbered_words[i], len))
			return true;
	return false;
}

// The letters right before the number at `at`.
static size_t word_before(const char *name, size_t at)
{
	size_t n = 0;

	while (n < at && is_letter(name[at - n - 1]))
		n++;
	return n;
}

// "3", and "3.11" behind a word that has its version in its name.
static size_t number_length(const char *number, bool version)
{
	size_t n = strspn(number, "0123456789");

	while (version && number[n] == '.' && is_digit(number[n + 1]))
		n += 1 + strspn(number + n + 1, "0123456789");
	return n;
}

static bool is_count(const char *name, size_t at, size_t digits, size_t word)
{
	char left = at ? name[at - 1] : 0, right = name[at + digits];

	if (digits >= 5)
		return true;
	if (right && !is_separator(right))
		return false;
	if (!left || is_separator(left))
		return true;
	// Behind letters: at the end always ("worker12"), inside only behind a real word ("pool12-thread"; not "C2 Compiler").
	return word && (!right || word >= 3);
}

static size_t collapse(const char *name, char *out)
{
	size_t n = 0, i = 0;

	while (name[i]) {
		size_t word, digits;
		bool keep;

		if (!is_digit(name[i])) {
			out[n++] = name[i++];
			continue;
		}
		word = word_before(name, i);
		keep = is_numbered_word(name + i - word, word);
		digits = number_length(name + i, keep);
		if (keep || !is_count(name, i, digits, word)) {
			memcpy(out + n, name + i, digits);
			n += digits;
			i += digits;
			continue;
		}
		i += digits;
		// "pool-1-thread-3" is "pool-thread-": one of the two separators is enough.
		if (n && is_separator(out[n - 1]) && is_separator(name[i]) && !strchr(")]}>", name[i]))
			i++;
	}
	out[n] = 0;
	return n;
}

void thread_stem(const char *comm, char *out, size_t cap)
{
	char name[NAME_CAP], stem[NAME_CAP];
	size_t len = text_sanitize(name, sizeof(name), comm, strlen(comm)), n = slash_name(name), md = md_number(name);

	if (n) {
		text_sanitize(out, cap, name, n + 1);
		return;
	}
	if (md)
		memmove(name + 2, name + 2 + md, len + 1 - 2 - md);
	n = collapse(name, stem);
	for (len = 0; len < n && !is_letter(stem[len]) && (unsigned char)stem[len] < 0x80; len++)
		;
	// Nothing but a number: it is the name.
	if (len == n)
		text_sanitize(out, cap, name, strlen(name));
	else
		text_sanitize(out, cap, stem, n);
}
