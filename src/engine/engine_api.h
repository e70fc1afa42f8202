#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"
#include "experiment/preflight.h"
#include "interchange/import_options.h"
#include "models/model_cost.h"
#include "tasks/requests.h"

/// The door between the command line and the rooms with libtorch. The command line links neither;
/// it opens libstretto_engine.so when a command needs it, since loading libtorch costs a third of a
/// second.
namespace stretto::engine {

/// `stretto train`
struct TrainRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  bool extend = false;
  bool accept_data = false;  ///< goes on although training or validation data have changed
  int64_t until = 0;         ///< updates, see train::TrainerSetup
  /// What training asks before it makes a folder was asked, and answered well: one process alone
  /// asks while the engine is being opened.
  bool is_looked_at = false;
};

using tasks::CostRequest;
using tasks::EmbedRequest;
using tasks::EvalRequest;
using tasks::ExportRequest;
using tasks::InferRequest;

/// `stretto average`
struct AverageRequest {
  std::string run_directory;
  std::string checkpoints;  ///< with commas; empty = the newest `last`
  int64_t last = 0;
  std::string name = "averaged";
};

/// `stretto replay`
struct ReplayRequest {
  experiment::LoadedExperiment experiment;  ///< of the run to which the report belongs
  std::string run_directory;
  std::string file;  ///< RUN/forensics/step_00000123.json
  bool json = false;
};

/// `stretto import`
struct ImportRequest {
  std::string folder;  ///< of transformers
  std::string run_directory;
  interchange::ImportOptions options;
};

/// What the engine library exports as `stretto_engine`. Commands return an exit code; failures are
/// Error objects thrown through the door (both sides link the same libstretto_core).
///
/// Requests are handed over as they lie in memory, so that both sides have to be of one build.
struct EngineApi {
  /// A hash of all headers that the engine was built from, to be compared before any call. It
  /// stands first: there an engine of any build has bytes that can be read.
  uint64_t build_id;
  int (*train)(const TrainRequest&);
  int (*eval)(const EvalRequest&);
  int (*infer)(const InferRequest&);
  int (*embed)(const EmbedRequest&);
  int (*average)(const AverageRequest&);
  int (*replay)(const ReplayRequest&);
  int (*import_model)(const ImportRequest&);
  int (*export_model)(const ExportRequest&);
  experiment::Preflight (*check)(const experiment::CheckRequest&);
  /// The parameters of the model, by the names that patterns see; an experiment::TensorLister.
  std::vector<optim::TensorName> (*tensor_names)(const experiment::Experiment&);
  models::ModelCost (*model_cost)(const CostRequest&);
  const char* (*describe)();  ///< "libtorch 2.11.0, AVX512, CUDA not built in"
  /// Operators that take their reference on a GPU; none in a build without CUDA.
  std::vector<std::string> (*gpu_fallbacks)();
};
inline constexpr const char* kEngineSymbol = "stretto_engine";

}  // namespace stretto::engine
