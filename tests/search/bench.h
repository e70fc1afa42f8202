#pragma once

#include <string>

#include "tests/base/temp_dir.h"

namespace stretto::testing {

/// A configuration that is sound, and search files beside it.
struct SearchBench {
  TempDir folder;
  std::string config;

  explicit SearchBench(const std::string& more = "") {
    for (const char* name : {"train.src", "train.tgt", "valid.src", "valid.tgt"}) {
      folder.write(name, "a\n");
    }
    config = folder.write("my.toml",
                          "[data]\n"
                          "train_src = [\"train.src\"]\ntrain_tgt = [\"train.tgt\"]\n"
                          "valid_src = [\"valid.src\"]\nvalid_tgt = [\"valid.tgt\"]\n"
                          "[train]\nmax_steps = 64\n[schedule]\nwarmup_steps = 4\n" +
                              more);
  }

  /// @param search  keys of `[search]` beside `config`
  std::string file(const std::string& search, const std::string& rest) const {
    return folder.write("space.toml", "[search]\nconfig = \"my.toml\"\n" + search + rest);
  }
};

inline const std::string kLearningRate =
    "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 1e-4\nmax = 1e-2\n";

}  // namespace stretto::testing
