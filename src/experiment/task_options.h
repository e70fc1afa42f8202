#pragma once

#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::experiment {

/// `[task]`
struct TaskOptions {
  std::string name = "translation";
  std::string src_lang;
  std::string tgt_lang;

  static auto fields() {
    using namespace config;
    using O = TaskOptions;
    return std::tuple{
        field(&O::name, "name", "which family of tasks", one_of({"translation"})),
        field(&O::src_lang, "src_lang", "name of the source language, for people", any(),
              {.change = Change::kFree}),
        field(&O::tgt_lang, "tgt_lang", "name of the target language, for people", any(),
              {.change = Change::kFree}),
    };
  }
};

}  // namespace stretto::experiment
