#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"
#include "families/masked_lm/requests.h"
#include "families/question_answering/requests.h"
#include "families/text/requests.h"
#include "families/text_classification/requests.h"
#include "families/translation/requests.h"
#include "models/model_cost.h"

/// What the command line asks of a family of tasks: what all of them have, and a member for each
/// family with what it alone has. No libtorch.
namespace stretto::tasks {

/// `stretto eval`
struct EvalRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoint;  ///< as runs/choose_checkpoint.h reads it; several with commas
  std::vector<std::string> data = {};  ///< instead of data.test; translation has files of two sides
  bool json = false;
  TranslationEvalFiles translation = {};
  QuestionEvalFiles question_answering = {};
  TextClassificationEvalFiles text_classification = {};
};

/// `stretto infer`
struct InferRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoints;  ///< as runs/choose_checkpoint.h reads it; several are an ensemble
  /// As data::open_bytes() takes them, "-" = stdin; empty = stdin. For question answering also
  /// files of its data.
  std::vector<std::string> files = {};
  bool json = false;
  TranslationInferFiles translation = {};
  MaskedLmInferArguments masked_lm = {};
  QuestionInferArguments question_answering = {};
  TextClassificationInferArguments text_classification = {};
};

/// `stretto export`
struct ExportRequest {
  experiment::LoadedExperiment experiment;  ///< of the run
  std::string run_directory;
  std::string checkpoint;           ///< runs/choose_checkpoint.h
  std::string model_type = "auto";  ///< of transformers
  std::string folder;
};

/// `stretto plan`
struct CostRequest {
  experiment::Experiment experiment;
  TranslationSizes translation = {};
  TextSizes text = {};
};

}  // namespace stretto::tasks
