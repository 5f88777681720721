/* SPDX-License-Identifier: BSD-2-Clause */
#include "env_guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

static std::string temp_file()
{
	const char *dir = getenv("TMPDIR");
	std::string path = std::string(dir != nullptr ? dir : "/tmp") + "/viaduct-util-XXXXXX";
	int fd = mkstemp(&path[0]);

	if (fd < 0)
		throw std::runtime_error("cannot create " + path);
	close(fd);
	return path;
}

void EnvGuard::clear()
{
	std::map<std::string, std::string> found;

	for (char **e = environ; *e != nullptr; e++) {
		const char *equals = strchr(*e, '=');

		if (equals != nullptr && strncmp(*e, "VIADUCT_", 8) == 0)
			found[std::string(*e, (size_t)(equals - *e))] = equals + 1;
	}
	for (auto &variable : found)
		unsetenv(variable.first.c_str());
	saved.swap(found);
}

EnvGuard::EnvGuard() : path(temp_file())
{
	clear();
	set("VIADUCT_LOG_FILE", path);
}

EnvGuard::~EnvGuard()
{
	std::map<std::string, std::string> before = saved;

	clear();
	for (auto &variable : before)
		setenv(variable.first.c_str(), variable.second.c_str(), 1);
	u_cfg_reset();
	unlink(path.c_str());
}

void EnvGuard::set(const std::string &name, const std::string &value)
{
	setenv(name.c_str(), value.c_str(), 1);
	u_cfg_reset();
}

std::string EnvGuard::log() const
{
	std::ifstream file(path);
	std::ostringstream text;

	text << file.rdbuf();
	return text.str();
}
