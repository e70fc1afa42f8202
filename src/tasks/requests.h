#pragma once

#include <string>
#include <vector>

#include "experiment/family_export.h"
#include "experiment/family_values.h"
#include "experiment/load_experiment.h"

/// What the command line asks of a family of tasks: what all of them have, and the values of the
/// options that one alone has (experiment::FamilySpec). No libtorch.
namespace stretto::tasks {

/// `stretto eval`
struct EvalRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoint;  ///< as runs/choose_checkpoint.h reads it; several with commas
  bool json = false;
  experiment::FamilyValues own = {};
};

/// `stretto infer`
struct InferRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoints;  ///< as runs/choose_checkpoint.h reads it; several are an ensemble
  /// As data::open_bytes() takes them, "-" = stdin; empty = stdin. Some families take files of
  /// their data too.
  std::vector<std::string> files = {};
  bool json = false;
  bool stats = false;  ///< at the end lines, batches, tokens and time on stderr
  experiment::FamilyValues own = {};
};

/// `stretto embed`
struct EmbedRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoint;               ///< one, as runs/choose_checkpoint.h reads it
  std::vector<std::string> files = {};  ///< as data::open_bytes() takes them; empty = stdin
  bool stats = false;                   ///< at the end lines, batches, tokens and time on stderr
  experiment::FamilyValues own = {};
};

/// `stretto export`
struct ExportRequest {
  experiment::LoadedExperiment experiment;  ///< of the run
  std::string run_directory;
  std::string checkpoint;                                ///< runs/choose_checkpoint.h
  std::string format = experiment::kTransformersFormat;  ///< experiment::export_formats_of()
  std::string model_type = "auto";                       ///< of transformers
  std::string weights = "auto";                          ///< experiment::stored_weights_names()
  std::string folder;  ///< of some formats a file (ExportFormat::is_file)
};

/// `stretto plan`
struct CostRequest {
  experiment::Experiment experiment;
  experiment::FamilyValues sizes = {};  ///< what the model is made for
};

}  // namespace stretto::tasks
