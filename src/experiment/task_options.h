#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "config/field.h"

namespace stretto::experiment {

/// The families of tasks, in the order of their table (experiment/task_rules.cpp).
std::vector<std::string> task_names();

/// `[task]`
struct TaskOptions {
  std::string name = "translation";
  std::string src_lang;
  std::string tgt_lang;

  static auto fields() {
    using namespace config;
    using O = TaskOptions;
    return std::tuple{
        field(&O::name, "name", "which family of tasks", one_of(task_names()))
            .also_called({"type"})
            .value_also_called("translation",
                               {"mt", "seq2seq", "translation_from_pretrained_bart", "text2text"}),
        field(&O::src_lang, "src_lang", "name of the source language, for people", any(),
              {.change = Change::kFree})
            .also_called({"source_lang", "source_language"}),
        field(&O::tgt_lang, "tgt_lang", "name of the target language, for people", any(),
              {.change = Change::kFree})
            .also_called({"target_lang", "target_language"}),
    };
  }
};

}  // namespace stretto::experiment
