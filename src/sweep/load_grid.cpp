#include "sweep/load_grid.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "config/key_check.h"
#include "config/load.h"
#include "config/schema.h"
#include "config/toml_file.h"
#include "store/quantised.h"
#include "sweep/swept_point.h"

namespace stretto::sweep {
namespace {

bool is_whole(double value) {
  return std::isfinite(value) && value == std::floor(value) && std::abs(value) < 1000;
}

void check_bits(const GridOptions& grid, config::KeyCheck& check) {
  if (grid.bits.empty()) {
    check.wrong("grid.bits", "is empty: the grid asks for nothing", "give some: [8, 6, 4, 3]");
  }
  for (const double bits : grid.bits) {
    if (bits == kUnpackedBits) continue;
    store::QuantFormat format;
    format.bits = is_whole(bits) ? static_cast<int64_t>(bits) : 0;
    const std::string problem = store::format_problem(format);
    if (problem.empty()) continue;
    check.wrong("grid.bits", "has " + config::number_text(bits) + " bits",
                "8, 6, 4, 3 and 2 are possible, and 32 for weights that are not rounded");
  }
}

void check_sparsities(const GridOptions& grid, config::KeyCheck& check) {
  if (grid.sparsity.empty()) {
    check.wrong("grid.sparsity", "is empty: the grid asks for nothing",
                "leave it out, or give shares: [0, 0.5]");
  }
  for (const double share : grid.sparsity) {
    if (share >= 0 && share < 1) continue;
    check.wrong("grid.sparsity",
                "has the share " + config::number_text(share) + ", which is not from 0 to below 1",
                "0.5 makes half of the weights zero");
  }
}

// The runs as they are take no compression.
void require_compression(const GridOptions& grid, config::KeyCheck& check) {
  const auto packs = [](double bits) { return bits != kUnpackedBits; };
  const auto prunes = [](double share) { return share > 0; };
  if (std::ranges::any_of(grid.bits, packs) || std::ranges::any_of(grid.sparsity, prunes)) return;
  if (grid.bits.empty() || grid.sparsity.empty()) return;
  check.wrong("grid.bits", "asks for nothing: weights of 32 bits, and none of them zero",
              "add 8 or fewer bits, or a sparsity above 0");
}

struct Sections {
  bool grid = false, others = false;
};
Sections sections_of(const std::vector<config::TomlFile>& files) {
  Sections found;
  for (const auto& file : files) {
    for (const auto& [name, node] : file.table) {
      if (!node.is_table() && !node.is_array_of_tables()) continue;
      (name.str() == "grid" ? found.grid : found.others) = true;
    }
  }
  return found;
}

std::vector<config::Problem> problems_as_grid(const std::filesystem::path& path) {
  std::vector<config::Problem> unread;  // load_file() reports them
  const Sections found = sections_of(config::read_toml_file(path, unread));
  if (found.grid || !found.others) return {};
  return {{.place = path.string(),
           .what = "is a configuration of one run, and no grid",
           .hint = "train it first: stretto train " + path.string() +
                   " --run RUN; a grid has one section, [grid]",
           .key = ""}};
}

}  // namespace

GridOptions load_grid(const std::filesystem::path& path) {
  GridFileOptions options, fallback;
  std::vector<config::Problem> problems;
  const auto origins = config::load_file(path, {}, config::schema_of(options),
                                         config::schema_of(fallback), problems);
  if (!problems.empty()) config::throw_problems(problems_as_grid(path));  // that one alone
  config::KeyCheck check(origins, problems);
  check_bits(options.grid, check);
  check_sparsities(options.grid, check);
  require_compression(options.grid, check);
  config::throw_problems(problems);
  return options.grid;
}

std::vector<config::Problem> problems_as_configuration(const std::filesystem::path& path) {
  std::vector<config::Problem> unread;  // whoever loads the file reports them
  const Sections found = sections_of(config::read_toml_file(path, unread));
  // A configuration that has such a section by mistake is still one.
  if (!found.grid || found.others) return {};
  return {{.place = path.string(),
           .what = "is a grid of compressed runs, and no configuration of one run",
           .hint = "compress a trained run with it: stretto compress RUN --grid " + path.string() +
                   " --dir DIR",
           .key = ""}};
}

}  // namespace stretto::sweep
