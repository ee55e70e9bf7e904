// SPDX-License-Identifier: Apache-2.0
// Stacks of C++: in a destructor while an exception passes, in a handler, in a virtual function, under a lambda.
#include "corpus.h"

#include <functional>
#include <stdexcept>

namespace {

struct Guard {
	int before;

	FUNCTION explicit Guard(int d) : before(d) {}

	FUNCTION ~Guard()
	{
		depth = before;
		ENTER();
		stop("destructor");
		LEAVE();
	}
};

FUNCTION void throws(int n)
{
	ENTER();
	if (n)
		throws(n - 1);
	else
		throw std::runtime_error("thrown");
	LEAVE();
}

FUNCTION void cleans(int n)
{
	ENTER();
	Guard guard(depth);
	throws(n);
	LEAVE();
}

FUNCTION void catches(int n)
{
	ENTER();
	int before = depth;
	try {
		cleans(n);
	} catch (const std::exception &e) {
		depth = before;
		stop("handler");
		KEEP(e.what());
	}
	LEAVE();
}

struct Base {
	virtual ~Base() = default;
	virtual void run(int n) = 0;
};

FUNCTION void called(int n)
{
	truth[depth++] = GAP; // the lambda and what calls it
	ENTER();
	stop("lambda");
	KEEP(n);
	depth -= 2;
}

struct Derived : Base {
	FUNCTION void run(int n) override
	{
		ENTER();
		std::function<void(int)> f = [n](int m) { called(n + m); };
		f(n);
		KEEP(&f);
		LEAVE();
	}
};

} // namespace

int main()
{
	ENTER();
	catches(4);
	Derived d;
	Base *b = &d;
	KEEP(b);
	b->run(1);
	return 0;
}
