/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment as a test wants it: only its own VIADUCT_* variables, restored afterwards. */
#ifndef ENV_GUARD_H
#define ENV_GUARD_H

#include <map>
#include <string>

extern "C" {
#include "u_cfg.h"
#include "u_log.h"
}

class EnvGuard {
public:
	EnvGuard();
	~EnvGuard();
	EnvGuard(const EnvGuard &) = delete;
	EnvGuard &operator=(const EnvGuard &) = delete;

	/* Sets a variable and makes the library forget what it read. */
	void set(const std::string &name, const std::string &value);

	/* The log so far: it goes to a file of this guard. */
	std::string log() const;
	const std::string &log_path() const { return path; }

private:
	void clear();

	std::map<std::string, std::string> saved;
	std::string path;
};

#endif
