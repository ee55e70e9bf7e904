// SPDX-License-Identifier: Apache-2.0
// Display names. C++ is printed from the demangler's tree, not cut out of its text: what is a template argument and what
// an operator is known there. Rust comes as text and has its generics cut.
#include <demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

#define MANGLED_MAX 8192
#define STEPS_MAX   4096 // nodes printed; the tree is a graph that can unfold without end
#define DEPTH_MAX   256
#define RUST_MAX    16384

struct writer {
	char *out;
	size_t len, cap; // cap counts the terminating NUL
	unsigned steps, depth;
	bool full;
};

static void put(struct writer *w, const char *text, size_t len)
{
	if (!len) // demanglers also write nothing, from NULL
		return;
	if (len >= w->cap - w->len) {
		len = w->cap - w->len - 1;
		w->full = true;
	}
	memcpy(w->out + w->len, text, len);
	w->len += len;
	w->out[w->len] = 0;
}

static void put_text(struct writer *w, const char *text)
{
	put(w, text, strlen(text));
}

struct sink {
	struct writer *writer;
	jmp_buf enough;
};

// The printing demanglers allocate nothing in their callback forms, so that leaving one in the middle leaks nothing; it
// is the only way to stop a name that unfolds into gigabytes.
static void sink_text(const char *text, size_t len, void *opaque)
{
	struct sink *sink = opaque;

	put(sink->writer, text, len);
	if (sink->writer->full)
		longjmp(sink->enough, 1);
}

static void print_leaf(struct writer *w, struct demangle_component *dc)
{
	struct sink sink = { .writer = w };

	if (!setjmp(sink.enough))
		cplus_demangle_print_callback(DMGL_NO_OPTS, dc, sink_text, &sink);
}

static void print(struct writer *w, struct demangle_component *dc);

static void print_pair(struct writer *w, struct demangle_component *dc)
{
	print(w, dc->u.s_binary.left);
	put_text(w, "::");
	print(w, dc->u.s_binary.right);
}

static void print_lambda(struct writer *w, struct demangle_component *dc)
{
	char text[32];

	snprintf(text, sizeof(text), "{lambda#%d}", dc->u.s_unary_num.num + 1);
	put_text(w, text);
}

static void print_node(struct writer *w, struct demangle_component *dc)
{
	switch (dc->type) {
	case DEMANGLE_COMPONENT_QUAL_NAME:
	case DEMANGLE_COMPONENT_LOCAL_NAME:
		print_pair(w, dc);
		break;
	case DEMANGLE_COMPONENT_TYPED_NAME:
	case DEMANGLE_COMPONENT_TEMPLATE:
	case DEMANGLE_COMPONENT_TAGGED_NAME:
	case DEMANGLE_COMPONENT_CLONE:
	case DEMANGLE_COMPONENT_RESTRICT_THIS:
	case DEMANGLE_COMPONENT_VOLATILE_THIS:
	case DEMANGLE_COMPONENT_CONST_THIS:
	case DEMANGLE_COMPONENT_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_TRANSACTION_SAFE:
	case DEMANGLE_COMPONENT_NOEXCEPT:
	case DEMANGLE_COMPONENT_THROW_SPEC:
	case DEMANGLE_COMPONENT_THUNK:
	case DEMANGLE_COMPONENT_VIRTUAL_THUNK:
	case DEMANGLE_COMPONENT_COVARIANT_THUNK:
		print(w, dc->u.s_binary.left);
		break;
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		print(w, dc->u.s_unary_num.sub);
		break;
	case DEMANGLE_COMPONENT_CTOR:
		print(w, dc->u.s_ctor.name);
		break;
	case DEMANGLE_COMPONENT_DTOR:
		put_text(w, "~");
		print(w, dc->u.s_dtor.name);
		break;
	case DEMANGLE_COMPONENT_CONVERSION:
		put_text(w, "operator ");
		print(w, dc->u.s_binary.left);
		break;
	case DEMANGLE_COMPONENT_LAMBDA:
		print_lambda(w, dc);
		break;
	default:
		print_leaf(w, dc);
	}
}

static void print(struct writer *w, struct demangle_component *dc)
{
	if (!dc || w->full || ++w->steps > STEPS_MAX || w->depth >= DEPTH_MAX) {
		w->full = true;
		return;
	}
	w->depth++;
	print_node(w, dc);
	w->depth--;
}

static bool cpp_name(const char *mangled, char *out, size_t cap)
{
	struct writer w = { .out = out, .cap = cap };
	struct demangle_component *tree;
	void *memory = NULL;

	tree = cplus_demangle_v3_components(mangled, DMGL_PARAMS | DMGL_ANSI, &memory);
	if (!tree)
		return false;
	out[0] = 0;
	print(&w, tree);
	free(memory);
	return w.len > 0;
}

static bool word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80);
}

// The '>' that closes the '<' at text[at], or len. "->" closes nothing.
static size_t closing(const char *text, size_t at, size_t len)
{
	size_t depth = 0;

	for (; at < len; at++) {
		if (text[at] == '<')
			depth++;
		else if (text[at] == '>' && !(at && text[at - 1] == '-') && !--depth)
			return at;
	}
	return len;
}

// " as " outside of nested brackets, or len.
static size_t find_as(const char *text, size_t at, size_t len)
{
	size_t depth = 0;

	for (; at + 4 <= len; at++) {
		if (strchr("<([", text[at]))
			depth++;
		else if (strchr(">)]", text[at]) && !(text[at] == '>' && at && text[at - 1] == '-'))
			depth -= depth > 0;
		else if (!depth && !strncmp(text + at, " as ", 4))
			return at;
	}
	return len;
}

// Generic arguments follow a word or "::"; "<T as Trait>::f" and "<T>::f" begin a path and become "T::f".
static void put_rust(struct writer *w, const char *text, size_t len, unsigned depth)
{
	for (size_t i = 0; i < len && !w->full; i++) {
		bool generic, turbofish;
		size_t end;

		if (text[i] != '<') {
			put(w, text + i, 1);
			continue;
		}
		end = closing(text, i, len);
		turbofish = i >= 2 && text[i - 1] == ':' && text[i - 2] == ':';
		generic = i && (word(text[i - 1]) || turbofish);
		if (generic && turbofish && w->len >= 2)
			w->out[w->len -= 2] = 0;
		if (!generic && depth < DEPTH_MAX)
			put_rust(w, text + i + 1, find_as(text, i + 1, end) - i - 1, depth + 1);
		i = end;
	}
}

static bool rust_name(const char *mangled, char *out, size_t cap)
{
	struct writer text = { .cap = RUST_MAX }, w = { .out = out, .cap = cap };
	struct sink sink = { .writer = &text };
	volatile int ok = 1;

	text.out = malloc(RUST_MAX);
	if (!text.out)
		return false;
	text.out[0] = 0;
	if (!setjmp(sink.enough))
		ok = rust_demangle_callback(mangled, DMGL_NO_OPTS, sink_text, &sink);
	out[0] = 0;
	if (ok)
		put_rust(&w, text.out, text.len, 0);
	free(text.out);
	return ok && w.len > 0;
}

static bool is_in(const char *const *words, const char *text, size_t len)
{
	for (; *words; words++)
		if (strlen(*words) == len && !memcmp(*words, text, len))
			return true;
	return false;
}

// What compilers append to copies of a function: ".isra.0", ".cold", ".llvm.123"; coroutines' parts in C++.
static size_t without_suffix(const char *name, size_t len)
{
	static const char *const numbered[] = { "isra", "constprop", "part", "clone", "lto_priv", "llvm", "__uniq", "__part",
						"cold", "localalias", "cfi", NULL };
	static const char *const bare[] = { "cold", "localalias", "cfi", "cfi_jt", "resolver", "warm", NULL };
	static const char *const coroutine[] = { "actor", "resume", "destroy", "cleanup", NULL };
	const char *dot = memrchr(name, '.', len), *before;
	bool known;
	size_t at, n;

	if (!dot || dot == name)
		return len;
	at = (size_t)(dot - name);
	n = len - at - 1;
	if (!n || strspn(dot + 1, "0123456789") < n) {
		known = is_in(bare, dot + 1, n) || (!strncmp(name, "_Z", 2) && is_in(coroutine, dot + 1, n));
		return known ? at : len;
	}
	before = memrchr(name, '.', at);
	if (before && before > name && is_in(numbered, before + 1, (size_t)(dot - before) - 1))
		return (size_t)(before - name);
	// A bare number is a C compiler's for a static name; Go counts its closures so.
	return before || memchr(name, '/', at) ? len : at;
}

static size_t without_clones(const char *name, size_t len)
{
	for (size_t shorter; (shorter = without_suffix(name, len)) < len; len = shorter)
		;
	return len;
}

bool sym_display_name(const char *mangled, char *out, size_t cap)
{
	char name[MANGLED_MAX];
	size_t full = strnlen(mangled, MANGLED_MAX), len;
	char *text;
	bool done = false;

	if (!cap)
		return false;
	text = full < MANGLED_MAX ? malloc(cap) : NULL;
	if (!text) {
		text_sanitize(out, cap, mangled, full);
		return false;
	}
	len = without_clones(mangled, full);
	memcpy(name, mangled, len);
	name[len] = 0;
	if (!strncmp(name, "_R", 2) || !strncmp(name, "_ZN", 3))
		done = rust_name(name, text, cap);
	if (!done && !strncmp(name, "_Z", 2))
		done = cpp_name(name, text, cap);
	if (done)
		text_sanitize(out, cap, text, strlen(text));
	else
		text_sanitize(out, cap, name, len);
	free(text);
	return done || len != full;
}
