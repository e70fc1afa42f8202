#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/question_answering/question_answering_options.h"
#include "families/text_classification/text_classification_options.h"
#include "families/translation/translation_options.h"

namespace stretto::cli {

/// Values of task.name, for tables of FamilyOption.
constexpr const char* kTranslation = experiment::TranslationOptions::kName;
constexpr const char* kMaskedLm = experiment::MaskedLmOptions::kName;
constexpr const char* kAnswers = experiment::QuestionAnsweringOptions::kName;
constexpr const char* kLabels = experiment::TextClassificationOptions::kName;

/// An option of a command that reads the run of any family, for some of them.
struct FamilyOption {
  const char* option;                      ///< "--src"
  std::vector<std::string_view> families;  ///< values of task.name
  /// What it states in their configurations: "decode.beam_size", a whole number, or of a flag
  /// "decode.method=sample". Empty = their requests have its value.
  std::string key = {};
  std::vector<std::string_view> without_key = {};  ///< of the families, whose requests have it
};

/// Throws Error(kUsage) for the first option that was given and is none of the family of this
/// experiment, with the options that are.
void require_own_options(const CLI::App& app, std::span<const FamilyOption> options,
                         const experiment::Experiment& experiment);

/// The keys that given options state in the configuration of a family which has these options, as
/// overrides. A family without such a key refuses it when they are read.
std::vector<std::string> stated_keys(const CLI::App& app, std::span<const FamilyOption> options,
                                     const std::string& family);

}  // namespace stretto::cli
