// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

struct pair {
	const char *in, *out;
};

static void check(const struct pair *pairs, size_t count, bool (*function)(const char *, char *, size_t))
{
	for (size_t i = 0; i < count; i++) {
		char out[512];
		bool changed = function(pairs[i].in, out, sizeof(out));

		if (strcmp(out, pairs[i].out))
			print_message("of %s\n", pairs[i].in);
		assert_string_equal(out, pairs[i].out);
		assert_int_equal(changed, strcmp(pairs[i].in, pairs[i].out) != 0);
	}
}

static void shows_cpp(void **state)
{
	static const struct pair pairs[] = {
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back" },
		{ "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo" },
		{ "_ZN3FoolsERSo", "Foo::operator<<" },
		{ "_ZN3FoogtERKS_", "Foo::operator>" },
		{ "_ZNK3FooclEi", "Foo::operator()" },
		{ "_ZNK3FooptEv", "Foo::operator->" },
		{ "_ZN3FooixEi", "Foo::operator[]" },
		{ "_Znwm", "operator new" },
		{ "_ZdaPv", "operator delete[]" },
		{ "_ZN3FoocvSsEv", "Foo::operator std::string" },
		{ "_ZN3FooC2Ev", "Foo::Foo" },
		{ "_ZN3FooD0Ev", "Foo::~Foo" },
		{ "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EPKcRKS3_", "std::__cxx11::basic_string::basic_string" },
		{ "_ZN3fooB5cxx11Ev", "foo" },
		{ "_ZN3barB5cxx11Ev.part.0", "bar" },
		{ "_ZZ3foovENKUlvE_clEv", "foo::{lambda#1}::operator()" },
		{ "_ZZN3Foo3barEiENKUliE0_clEi", "Foo::bar::{lambda#2}::operator()" },
		{ "_ZThn16_N3Foo3barEv", "Foo::bar" },
		{ "_Z3maxIiET_S0_S0_", "max" },
		{ "_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsEPNS_18ColumnFamilyHandleERKNS_5SliceEPNSt7__cxx1112basic_stringIc"
		  "St11char_traitsIcESaIcEEE.cold", "rocksdb::DBImpl::Get" },
		{ "_Z3foov.actor", "foo" },
		{ "_Z3foov.localalias", "foo" },
		{ "_Zbroken", "_Zbroken" },
		{ "_Z", "_Z" },
	};

	check(pairs, sizeof(pairs) / sizeof(*pairs), sym_display_name);
}

static void shows_rust(void **state)
{
	static const struct pair pairs[] = {
		{ "_ZN3std2io5Write9write_all17h0123456789abcdefE", "std::io::Write::write_all" },
		{ "_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$closure$u7d$$u7d$$GT$"
		  "17h0123456789abcdefE", "core::ptr::drop_in_place" },
		{ "_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
		  "alloc::vec::Vec::drop" },
		{ "_ZN4main3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.1234567", "main::foo::{{closure}}" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_RNvXs_NtC5alloc3vecINtB4_3VechENtNtC4core3ops4Drop4drop", "alloc::vec::Vec::drop" },
		{ "_RINvNtC3std3mem8align_ofdE", "std::mem::align_of" },
		{ "_RNCNvC4main3run0B3_", "main::run::{closure#0}" },
	};

	check(pairs, sizeof(pairs) / sizeof(*pairs), sym_display_name);
}

static void leaves_plain_names(void **state)
{
	static const struct pair pairs[] = {
		{ "submit_bio", "submit_bio" },
		{ "main.(*T).Read", "main.(*T).Read" },
		{ "main.main.func1.2", "main.main.func1.2" },
		{ "net/http.serve.1", "net/http.serve.1" },
		{ "do_fetch.isra.0", "do_fetch" },
		{ "do_fetch.constprop.0.cold", "do_fetch" },
		{ "do_fetch.part.0.llvm.99", "do_fetch" },
		{ "helper.5", "helper" },
		{ "helper.lto_priv.0", "helper" },
		{ ".cold", ".cold" },
		{ "internal/poll.(*FD).destroy", "internal/poll.(*FD).destroy" },
		{ "debug/dwarf.(*Reader).clone", "debug/dwarf.(*Reader).clone" },
		{ "main.part", "main.part" },
		{ "fetch.cold.3", "fetch" },
		{ "a.", "a." },
		{ "a.b", "a.b" },
		{ "", "" },
	};

	check(pairs, sizeof(pairs) / sizeof(*pairs), sym_display_name);
}

static void shows_java(void **state)
{
	static const struct pair pairs[] = {
		{ "void org.x.A.readBytes(byte[], int, int)", "org.x.A.readBytes" },
		{ "int[] org.x.B.f()", "org.x.B.f" },
		{ "java.lang.Object java.util.HashMap.get(java.lang.Object)", "java.util.HashMap.get" },
		{ "Lorg/x/A;::readBytes", "org.x.A.readBytes" },
		{ "org/x/A.readBytes", "org.x.A.readBytes" },
		{ "org.x.A::readBytes", "org.x.A.readBytes" },
		{ "void org.x.A.<init>(int)", "org.x.A.<init>" },
		{ "org.x.A$$Lambda$14/0x0000000800c03000.run()", "org.x.A$$Lambda.run" },
		{ "void org.x.A$$Lambda/0x00007f0000001000.accept(java.lang.Object)", "org.x.A$$Lambda.accept" },
		{ "java.lang.invoke.LambdaForm$MH/0x00007f12.invoke(java.lang.Object)", "java.lang.invoke.LambdaForm$MH.invoke" },
		{ "com.sun.proxy.$Proxy12.foo", "com.sun.proxy.$Proxy.foo" },
		{ "jdk.internal.reflect.GeneratedMethodAccessor12.invoke", "jdk.internal.reflect.GeneratedMethodAccessor.invoke" },
		{ "org.x.A.lambda$run$0", "org.x.A.lambda$run$0" },
		{ "org.x.Outer$1.run", "org.x.Outer$1.run" },
		{ "Interpreter", "Interpreter" },
		{ "StubRoutines (1)", "StubRoutines (1)" },
		{ "I2C/C2I adapters(0xbaba)", "I2C/C2I adapters(0xbaba)" },
		{ "", "" },
	};

	check(pairs, sizeof(pairs) / sizeof(*pairs), sym_java_name);
}

static void keeps_within_bounds(void **state)
{
	static const char *const names[] = { "_ZN12_GLOBAL__N_13fooEv", "_RNvCs1234_7mycrate3foo", "plain_name", "a\xff\xc3\xa9\x01" };
	char out[64], *bomb;
	size_t len = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (size_t cap = 0; cap < 40; cap++) {
			memset(out, 0x7f, sizeof(out));
			sym_display_name(names[i], out, cap);
			assert_int_equal(out[cap], 0x7f);
			if (cap)
				assert_true(strlen(out) < cap && text_is_utf8(out, strlen(out)));
			memset(out, 0x7f, sizeof(out));
			sym_java_name(names[i], out, cap);
			assert_int_equal(out[cap], 0x7f);
		}
	// Each substitution doubles what it stands for.
	bomb = malloc(20000);
	assert_non_null(bomb);
	len += (size_t)sprintf(bomb, "_Z1fI1AIS0_S0_E");
	for (unsigned i = 0; i < 60; i++)
		len += (size_t)sprintf(bomb + len, "1AIS%c_S%c_E", "123456789ABCDEFG"[i % 16], "123456789ABCDEFG"[i % 16]);
	strcpy(bomb + len, "Evv");
	sym_display_name(bomb, out, sizeof(out));
	memset(bomb, 'N', 19999);
	memcpy(bomb, "_Z", 2);
	bomb[19999] = 0;
	assert_false(sym_display_name(bomb, out, sizeof(out)));
	bomb[8000] = 0;
	sym_display_name(bomb, out, sizeof(out));
	free(bomb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_cpp),  cmocka_unit_test(shows_rust),	     cmocka_unit_test(leaves_plain_names),
		cmocka_unit_test(shows_java), cmocka_unit_test(keeps_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
