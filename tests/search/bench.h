#pragma once

#include <gtest/gtest.h>

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

/// One table of the space with these lines.
inline std::string block(const std::string& lines) {
  return "[[space]]\n" + lines + "\n";
}

/// A grid of six points, three of which have heads that do not divide the width.
inline const std::string kHeadsGrid =
    "[method]\nname = \"grid\"\n"
    "[[space]]\nkey = \"model.d_model\"\nname = \"numbers\"\nvalues = [64, 96]\n"
    "[[space]]\nkey = \"model.encoder.num_heads\"\nname = \"numbers\"\nvalues = [4, 5, 6]\n";

inline const std::string kHalving =
    "[method]\nname = \"asha\"\nmode = \"aggressive\"\ndivisor = 2\n";

/// Whether `whole` has `text` somewhere.
inline void expect_in(const std::string& text, const std::string& whole) {
  EXPECT_NE(whole.find(text), std::string::npos) << text << " in\n" << whole;
}

}  // namespace stretto::testing
