#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/base/temp_dir.h"
#include "tests/fuzz/config_mutator.h"

namespace stretto::testing {

/// All configurations that come with Stretto, with mistakes, one after another: the first with a
/// few, the second, and so on, then the first with others. They lie in a folder of their own, where
/// a file finds what it includes. One seed makes the same configurations everywhere.
class MutatedRecipes {
 public:
  /// A configuration; its file is there until the next one is made.
  struct Made {
    std::filesystem::path path;
    std::string text;
  };

  /// @param source  the folder of Stretto's sources
  MutatedRecipes(const std::filesystem::path& source, uint64_t seed)
      : paths_(copied(source)), texts_(read(paths_)), mutator_(texts_), random_(seed) {}

  size_t num_recipes() const { return paths_.size(); }

  Made next() {
    const size_t recipe = made_++ % paths_.size();
    Made made{.path = paths_[recipe].parent_path() / "mutated.toml",
              .text = mutator_.mutated(texts_[recipe], random_)};
    std::ofstream(made.path, std::ios::binary) << made.text;
    return made;
  }

 private:
  using Paths = std::vector<std::filesystem::path>;

  Paths copied(const std::filesystem::path& source) const {
    namespace fs = std::filesystem;
    Paths copies;
    for (const char* part : {"configs", "examples"}) {
      for (const auto& entry : fs::recursive_directory_iterator(source / part)) {
        if (entry.path().extension() != ".toml") continue;
        const fs::path copy = folder_.path() / fs::relative(entry.path(), source);
        fs::create_directories(copy.parent_path());
        fs::copy_file(entry.path(), copy);
        copies.push_back(copy);
      }
    }
    std::sort(copies.begin(), copies.end());  // folders are listed in any order
    return copies;
  }

  static std::vector<std::string> read(const Paths& paths) {
    std::vector<std::string> texts;
    for (const auto& path : paths) texts.push_back(read_file(path));
    return texts;
  }

  TempDir folder_;
  Paths paths_;
  std::vector<std::string> texts_;
  ConfigMutator mutator_;
  ConfigMutator::Random random_;
  size_t made_ = 0;
};

}  // namespace stretto::testing
