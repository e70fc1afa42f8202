#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/stack_shape.h"
#include "experiment/load_experiment.h"
#include "experiment/preflight.h"
#include "interchange/import_options.h"
#include "models/model_cost.h"
#include "store/quantised_plan.h"
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

/// `stretto compress`
struct CompressRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoint;  ///< runs/choose_checkpoint.h
  std::string target;      ///< the run folder that is written; one that is whole already stays
  bool packs = true;       ///< false: weights are pruned, and stay in the type that they have
  store::QuantRequest quantised = {};
  std::string rounding = "least_error";  ///< nearest, least_error or calibrated
  double sparsity = 0;                   ///< share of the weights that becomes zero
  std::string scope = "global";          ///< of pruning: global, layer or block
  /// Shares of layers, units and heads that are taken out, instead of all above; and the
  /// micro-batches of training data whose gradients say how important they are (0 = magnitudes do).
  compress::StackRemoval removal = {};
  int64_t micro_batches = 0;
  /// With other data for calibrated rounding than the run's own, and the keys that say so.
  std::optional<experiment::LoadedExperiment> calibration = {};
  std::vector<std::string> calibration_keys = {};
  bool json = false;
};

/// `stretto bench`
struct BenchRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;  ///< empty = a model with first weights, as the experiment has it
  std::string checkpoint;
  /// Of fp32, bf16, int8, int4 and stored (as a compressed run has it); empty = all that there are.
  std::vector<std::string> precisions = {};
  double seconds = 5;  ///< of measuring, for each
  bool json = false;
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
  int (*compress)(const CompressRequest&);
  int (*bench)(const BenchRequest&);
  experiment::Preflight (*check)(const experiment::CheckRequest&);
  /// The parameters of the model, by the names that patterns see; an experiment::TensorLister.
  std::vector<optim::TensorName> (*tensor_names)(const experiment::Experiment&);
  models::ModelCost (*model_cost)(const CostRequest&);
  const char* (*describe)();  ///< "libtorch 2.11.0, AVX512, CUDA not built in"
  /// Operators that take their reference on a GPU; none in a build without CUDA.
  std::vector<std::string> (*gpu_fallbacks)();
  uint64_t (*gpu_memory)();  ///< bytes that the first GPU has in all; 0 = there is none
};
inline constexpr const char* kEngineSymbol = "stretto_engine";

}  // namespace stretto::engine
