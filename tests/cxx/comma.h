/* SPDX-License-Identifier: BSD-2-Clause */
/* A locale in which numbers have a decimal comma, while an object of this class lives. */
#ifndef COMMA_H
#define COMMA_H

#include <clocale>
#include <cstdlib>
#include <string>

class Comma {
	char folder[32] = "/tmp/commaXXXXXX";

public:
	bool there; /* false: the machine has no such locale, and no tool that makes one */

	Comma()
	{
		std::string name = std::string(mkdtemp(folder)) + "/de_DE.UTF-8";

		there = setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
		if (there ||
		    system(("localedef -i de_DE -f UTF-8 " + name + " 2>/dev/null").c_str()))
			return;
		setenv("LOCPATH", folder, 1);
		there = setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
	}
	~Comma()
	{
		setlocale(LC_NUMERIC, "C");
		unsetenv("LOCPATH");
		if (system((std::string("rm -r ") + folder).c_str()) != 0)
			abort();
	}
	Comma(const Comma &) = delete;
	Comma &operator=(const Comma &) = delete;
};

#endif
