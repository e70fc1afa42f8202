#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stretto {

/// A named place where a test can make the process fail. Does nothing unless the environment has
/// STRETTO_FAILPOINT="name:action[:n][;…]", read once. Actions, on the n-th pass (default 1; `n+`
/// means that pass and all after it): `kill` and `term` (SIGKILL, SIGTERM to this process),
/// `enospc`, `eio`, `eintr`, `einval` and `enomem` (the caller sees that errno), `short` (a write
/// takes half of what it was given), `throw` (std::bad_alloc), `bug` (std::logic_error). The name
/// `*` stands for every failpoint, counted together.
///
/// @return 0, or the errno that the caller must treat as the result of its system call.
/// Throws Error(kUsage) when STRETTO_FAILPOINT cannot be understood.
int failpoint(std::string_view name);

/// The same before a write of `size` bytes, which `short` makes smaller (never 0 unless it was 0).
int failpoint(std::string_view name, size_t& size);

/// Whether there are rules at all, for places where even a failpoint that does nothing costs time.
bool failpoints_armed();

/// Replaces the rules, as if the environment variable had been `spec`; "" removes them. For tests.
void set_failpoints(std::string_view spec);

/// How often any failpoint was passed since the rules were last set; 0 while there are no rules.
uint64_t failpoint_passes();

}  // namespace stretto
