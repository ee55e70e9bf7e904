// SPDX-License-Identifier: Apache-2.0
#include "agent/jvm_options.h"

#include <string.h>

#define WORD_MAX 4352 // an option with a path

struct parse {
	const struct jvm_options_source *source;
	struct jvm_options o;
	unsigned files;
	bool launcher;	// the words are the launcher's: from its command line or JDK_JAVA_OPTIONS
	bool main_seen; // what follows is the program's own
	bool skip;	// the next word belongs to the option before it
	bool no_files;	// @ has no meaning any more
};

static bool is(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && !memcmp(word, what, len);
}

static bool begins(const char *word, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(word, with, strlen(with));
}

// "+Name" or "-Name"
static void set_flag(struct jvm_options *o, const char *flag, size_t len)
{
	enum jvm_flag value;

	if (len < 2 || (*flag != '+' && *flag != '-'))
		return;
	value = *flag == '+' ? JVM_ON : JVM_OFF;
	if (is(flag + 1, len - 1, "PreserveFramePointer"))
		o->frame_pointers = value;
	else if (is(flag + 1, len - 1, "ReduceSignalUsage"))
		o->few_signals = value;
	else if (is(flag + 1, len - 1, "DisableAttachMechanism"))
		o->no_attach = value;
}

typedef void (*take_fn)(struct parse *p, const char *text, size_t len);

static void take_text(struct parse *p, const char *text, size_t len, take_fn take);
static void take_argument_file(struct parse *p, const char *text, size_t len);

// A file of options, which may name no other one.
static void take_file(struct parse *p, const char *path, size_t len, take_fn take)
{
	struct buf b = { 0 };

	if (p->files < JVM_OPTIONS_FILES && p->source->file && p->source->file(p->source->context, path, len, &b) && !b.error) {
		p->files++;
		take(p, (const char *)b.data, b.len);
	} else {
		p->o.unread = true;
	}
	buf_free(&b);
}

static void take_nested_option(struct parse *p, const char *word, size_t len)
{
	if (is(word, len, "-Xrs"))
		p->o.few_signals = JVM_ON;
	else if (begins(word, len, "-XX:Flags=") || begins(word, len, "-XX:VMOptionsFile="))
		p->o.unread = true;
	else if (begins(word, len, "-XX:"))
		set_flag(&p->o, word + 4, len - 4);
}

static void take_options_file(struct parse *p, const char *text, size_t len)
{
	take_text(p, text, len, take_nested_option);
}

static void take_option(struct parse *p, const char *word, size_t len)
{
	static const char file[] = "-XX:VMOptionsFile=";

	if (begins(word, len, file))
		take_file(p, word + sizeof(file) - 1, len - (sizeof(file) - 1), take_options_file);
	else
		take_nested_option(p, word, len);
}

static bool takes_a_word(const char *word, size_t len)
{
	static const char *const names[] = {
		"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
		"--enable-native-access", "--limit-modules", "--add-exports", "--add-opens", "--add-reads", "--patch-module",
		"-d", "--describe-module", "--source",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (is(word, len, names[i]))
			return true;
	return false;
}

// As the launcher tells options, their values and the main class apart.
static void take_launchers_word(struct parse *p, const char *word, size_t len)
{
	if (p->main_seen)
		return;
	if (p->skip)
		p->skip = false;
	else if (!len || *word != '-' || is(word, len, "-m") || is(word, len, "--module") || begins(word, len, "--module="))
		p->main_seen = true;
	else if (takes_a_word(word, len))
		p->skip = true;
	else if (is(word, len, "--disable-@files"))
		p->no_files = true;
	else
		take_option(p, word, len);
}

static void take_word(struct parse *p, const char *word, size_t len)
{
	if (!p->launcher && begins(word, len, "-J"))
		take_option(p, word + 2, len - 2);
	else if (!p->launcher)
		take_option(p, word, len);
	else if (!p->main_seen && !p->no_files && len > 1 && word[0] == '@' && word[1] != '@')
		take_file(p, word + 1, len - 1, take_argument_file);
	else
		take_launchers_word(p, word, len);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

// Words between blanks; quotes keep blanks inside and are not part of the word.
static void take_text(struct parse *p, const char *text, size_t len, take_fn take)
{
	char word[WORD_MAX], quote = 0;
	bool inside = false;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!quote && is_blank(c)) {
			if (inside)
				take(p, word, n);
			inside = false;
			n = 0;
			continue;
		}
		inside = true;
		if (quote ? c == quote : c == '"' || c == '\'')
			quote = quote ? 0 : c;
		else if (n < sizeof(word))
			word[n++] = c;
	}
	if (inside)
		take(p, word, n);
}

static char unescaped(char c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'f' ? '\f' : c;
}

static size_t behind(const char *text, size_t len, size_t i, bool blanks)
{
	while (i < len && (blanks ? is_blank(text[i]) : text[i] != '\n' && text[i] != '\r'))
		i++;
	return i;
}

// A file behind @: as above, with comments, and within quotes escapes and lines that go on in the next one.
static void take_argument_file(struct parse *p, const char *text, size_t len)
{
	char word[WORD_MAX], quote = 0;
	bool inside = false;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (quote && c == '\\' && i + 1 < len) {
			c = text[++i];
			if (c == '\n' || c == '\r') {
				i = behind(text, len, i, true) - 1;
				continue;
			}
			c = unescaped(c);
		} else if (c == '\n' || c == '\r' || (!quote && (is_blank(c) || c == '#'))) {
			if (inside)
				take_launchers_word(p, word, n);
			inside = false;
			n = 0;
			quote = 0;
			if (c == '#')
				i = behind(text, len, i, false) - 1;
			continue;
		} else if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? 0 : c;
			inside = true;
			continue;
		}
		inside = true;
		if (n < sizeof(word))
			word[n++] = c;
	}
	if (inside)
		take_launchers_word(p, word, n);
}

static void take_variable(struct parse *p, const char *name, take_fn take)
{
	const char *text = p->source->environment, *end = text + p->source->environment_len;
	size_t name_len = strlen(name);

	while (text < end) {
		size_t len = strnlen(text, (size_t)(end - text));

		if (len > name_len && text[name_len] == '=' && !memcmp(text, name, name_len)) {
			take_text(p, text + name_len + 1, len - name_len - 1, take);
			return;
		}
		text += len + 1;
	}
}

static void take_arguments(struct parse *p)
{
	const char *text = p->source->arguments, *end = text + p->source->arguments_len;
	bool first = true;

	while (text < end) {
		size_t len = strnlen(text, (size_t)(end - text));

		if (!first)
			take_word(p, text, len);
		first = false;
		text += len + 1;
	}
}

void jvm_options_parse(const struct jvm_options_source *source, struct jvm_options *ret)
{
	struct parse p = { .source = source };

	// In the order in which the JVM takes them: what is said later counts.
	take_variable(&p, "JAVA_TOOL_OPTIONS", take_option);
	p.launcher = source->launcher;
	if (p.launcher)
		take_variable(&p, "JDK_JAVA_OPTIONS", take_word);
	take_arguments(&p);
	take_variable(&p, "_JAVA_OPTIONS", take_option);
	p.o.unread |= !p.launcher;
	*ret = p.o;
}
