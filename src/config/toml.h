// toml++ as this room uses it: no exceptions, and its assertion away, since that aborts on some
// malformed files that it otherwise reports as errors.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_ENABLE_FORMATTERS 0

#include <toml++/toml.h>
