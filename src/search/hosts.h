#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::search {

/// A machine that trials run on.
struct Host {
  std::string name;               ///< as ssh takes it; empty = this machine
  int64_t slots = 1;              ///< cores that trials may take together
  std::vector<std::string> gpus;  ///< as CUDA_VISIBLE_DEVICES names them: "0", "1"

  bool is_here() const { return name.empty(); }
  std::string shown() const { return is_here() ? "this machine" : name; }
};

/// Reads a host file: a line "NAME slots=8 gpus=2" for each host. `slots` is 1 and `gpus` 0 where
/// they are not given; what stands behind `#` is a remark. A host that is called localhost, or as
/// this machine is, is this machine. Throws Error(kUsage) with the line that is wrong, and when
/// there is no host.
/// @param where  the file, for messages
std::vector<Host> parse_hosts(std::string_view text, const std::string& where);

/// The GPUs that this process may use: those of CUDA_VISIBLE_DEVICES, or all that the system has a
/// device file for.
std::vector<std::string> visible_gpus();

}  // namespace stretto::search
