#include "sweep/grid_data.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <variant>

#include "base/error.h"
#include "base/text.h"

namespace stretto::sweep {
namespace {

using Files = std::span<const std::string>;

/// An option, and the files that it gets.
struct NamedFiles {
  const experiment::CommandOption& option;
  Files files;
};

bool takes_several(const experiment::CommandOption& option) {
  return std::holds_alternative<std::vector<std::string>>(option.value);
}

[[noreturn]] void refuse_data(const GridOptions& grid, const SweptRun& run) {
  std::vector<std::string> words;
  for (const auto& option : run.data_options) words.push_back(option.name + " " + option.type);
  const std::string wanted = words.empty() ? "no files" : join(words, " ");
  throw Error(ExitCode::kUsage,
              "grid.data: has " + counted(std::ssize(grid.data), "file") +
                  ", and `stretto eval` of " + run.directory.string() + " takes " + wanted,
              words.empty() ? "leave it out" : "name a file for each, in this order");
}

// One option takes all files, or each its own.
std::vector<NamedFiles> named_files(const GridOptions& grid, const SweptRun& run) {
  if (grid.data.empty()) return {};
  const Files files = grid.data;
  std::vector<NamedFiles> named;
  if (run.data_options.size() == 1 && takes_several(run.data_options.front())) {
    named.push_back({run.data_options.front(), files});
  } else if (run.data_options.size() == files.size()) {
    for (size_t i = 0; i < files.size(); ++i) {
      named.push_back({run.data_options[i], files.subspan(i, 1)});
    }
  } else {
    refuse_data(grid, run);
  }
  for (const auto& [option, own] : named) {
    if (!option.check) continue;
    for (const auto& file : own) option.check(file);
  }
  return named;
}

// A path alone needs no quotes. JSON quotes a string as TOML does.
std::string value_of(Files files) {
  if (files.size() == 1) return files.front();
  std::vector<std::string> quoted;
  for (const auto& file : files) {
    quoted.push_back(nlohmann::json(file).dump(-1, ' ', /*ensure_ascii=*/false,
                                               nlohmann::json::error_handler_t::replace));
  }
  return "[" + join(quoted, ", ") + "]";
}

}  // namespace

std::vector<std::string> eval_data_words(const GridOptions& grid, const SweptRun& run) {
  std::vector<std::string> words;
  for (const auto& [option, files] : named_files(grid, run)) {
    for (const auto& file : files) words.insert(words.end(), {option.name, file});
  }
  return words;
}

std::vector<std::string> bench_data_words(const GridOptions& grid, const SweptRun& run) {
  std::vector<std::string> words;
  for (const auto& [option, files] : named_files(grid, run)) {
    // A task is made with data for training, though they are not measured.
    const size_t num_keys = run.has_data ? 1 : option.data_keys.size();
    for (const auto& key : std::span(option.data_keys).first(num_keys)) {
      words.push_back(key + "=" + value_of(files));
    }
  }
  return words;
}

}  // namespace stretto::sweep
