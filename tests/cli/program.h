#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "store/run_record.h"
#include "tests/base/temp_dir.h"

namespace stretto::testing {

struct ProgramResult {
  int code = -1;
  std::string out, err;
};

inline std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The built program, with stdin, stdout and stderr in files of a folder of its own.
class Program {
 public:
  static std::string path() { return std::string(STRETTO_BINARY_DIR) + "/stretto"; }

  /// False in a build without libtorch.
  static bool has_engine() {
    return std::filesystem::exists(std::filesystem::path(STRETTO_BINARY_DIR) /
                                   "libstretto_engine.so");
  }

  ProgramResult run(const std::vector<std::string>& words, const std::string& input = "") const {
    std::string line = shell_quoted(path());
    for (const auto& word : words) line += " " + shell_quoted(word);
    return shell(line, input);
  }

  ProgramResult shell(const std::string& command, const std::string& input = "") const {
    const std::string in = folder.write("stdin", input);
    const auto out = folder.path() / "stdout", err = folder.path() / "stderr";
    const std::string line = "cd " + shell_quoted(folder.path()) + " && { " + command + "\n} <" +
                             shell_quoted(in) + " >" + shell_quoted(out) + " 2>" +
                             shell_quoted(err);
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(out),
            text_of(err)};
  }

  /// A run folder `run` with this configuration, as training begins one.
  void write_run(const std::string& toml) const {
    folder.write("run/config.toml", store::seal_config(toml, "0"));
    folder.write("run/run.json", "{\"run_id\": \"0\"}");
  }

  TempDir folder;
};

}  // namespace stretto::testing
