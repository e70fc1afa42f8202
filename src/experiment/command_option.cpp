#include "experiment/command_option.h"

#include <filesystem>

#include "base/error.h"
#include "base/named_output.h"

namespace stretto::experiment {

std::function<void(const std::string&)> must_exist(const std::string& advice) {
  return [advice](const std::string& path) {
    if (path.empty() || path.find(".zip:") != std::string::npos) return;
    if (std::filesystem::exists(path)) return;
    throw Error(ExitCode::kUsage, "no file " + path, advice);
  };
}

std::function<void(const std::string&)> must_be_writable(const std::string& option) {
  return [option](const std::string& path) { require_output_place(path, option); };
}

}  // namespace stretto::experiment
