#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/rank_batches.h"
#include "parallel/carry.h"
#include "train/forensics/forensics.h"
#include "train/forensics/remedies.h"

/// What `examine` found as a file, RUN/forensics/step_00000123.json, with the weights of that
/// moment beside it (step_00000123.safetensors), and the state of lanes that the update read, if
/// the task has one (step_00000123.carry.safetensors). `stretto replay` runs the update again from
/// these, the run's config.toml and the training text.
namespace stretto::train {

/// The loss scaler at the end of an update that failed.
struct ScalerRecord {
  std::string name;  ///< of its method, as optim::LossScaler::name(); "" = not known
  double next = 0;   ///< the scale that it chose for the next update

  bool operator==(const ScalerRecord&) const = default;
};

/// What the trainer knows about the update beside what `examine` found.
struct UpdateRecord {
  std::string run_id, config_hash;
  int64_t step = 0;  ///< as metrics.jsonl counts: StepContext::update + 1
  int64_t rank = 0, world_size = 1;
  /// The position of each examined micro-batch, epochs from 0; parts of one that was split for lack
  /// of memory have the same position.
  std::vector<data::Position> positions;
  double lr = 0;
  std::string checkpoint;  ///< "step_00000100", the newest that a finite update followed; "" = none
  std::vector<double> loss_scales;  ///< of the last updates, oldest first; at most 100
  std::string device;               ///< "cpu", "cuda:0"
  /// SHA-256 of the tokenizer's files, as in a checkpoint's manifest; empty = not known.
  std::map<std::string, std::string> tokenizer = {};
  std::string weights_hash = {};  ///< XXH3-64 of this rank's weights, in hex; "" = not known
  ScalerRecord scaler = {};
  /// Completed before it, which train.unfreeze counts; -1 = the run has no such key.
  int64_t updates = -1;

  bool operator==(const UpdateRecord&) const = default;
};

/// A report that was read back.
struct SavedReport {
  NonfiniteReport report;
  UpdateRecord record;
  std::filesystem::path weights;     ///< the safetensors file beside it
  std::filesystem::path carry = {};  ///< the same of the state of lanes; empty = there is none
};

/// One rank's report as text.
struct ReportText {
  int64_t rank = 0;
  std::string json;
};

/// Writes the reports of one step and, once, the weights (weights_name()) and the state of lanes
/// that they share; each JSON is written after these, so that where it exists, everything does.
/// That of another rank than 0 is called step_00000123.rank2.json. What another try at this step
/// left, as before a rollback, stays: then these are called step_00000123-2.json,
/// step_00000123-2.rank2.json and so on.
///
/// @param arena  its parameters must be those that the update computed with
/// @param carry  the state that the update read, of all lanes; empty = the task has none
/// @return paths of the JSON files, in the order of `reports`
/// Throws Error(kIo); training need not end for that.
std::vector<std::filesystem::path> write_reports(
    const std::filesystem::path& run_directory, int64_t step,
    const std::vector<ReportText>& reports, const optim::Arena& arena,
    const std::vector<parallel::LaneState>& carry = {});

/// The reports of one update, of all ranks that wrote one, sorted by name; `file` is one of them.
std::vector<std::filesystem::path> reports_beside(const std::filesystem::path& file);

/// Throws Error(kUsage) when there is no such file, Error(kBadData) when it is no report.
SavedReport read_report(const std::filesystem::path& file);

/// Sets the state of all lanes to the one that the update of a report read. Throws Error(kBadData)
/// where the report has none, or that of another model.
void load_carry(const SavedReport& saved, parallel::Carry& carry);

/// The report as JSON text; `weights` is the name of the safetensors file.
std::string report_to_json(const NonfiniteReport& report, const UpdateRecord& record,
                           const std::string& weights);

/// "step_00000123.safetensors", which the reports of all ranks on one step share; write_reports()
/// puts another one into them when this name is taken.
std::string weights_name(int64_t step);

/// What report_to_text() may know beside the report.
struct ReportAdvice {
  AdviceContext run = {};
  /// The same update in fp32 where it was not finite either: what to try is then about that, since
  /// precision and loss scale are not to blame.
  const NonfiniteReport* in_fp32 = nullptr;
};

/// A paragraph for people: what was first, in which samples, and what to try.
std::string report_to_text(const NonfiniteReport& report, const UpdateRecord& record,
                           const ReportAdvice& known = {});

/// What to do about a loss scale at which gradients overflowed. Empty when there is none, or the
/// scaler has just lowered it.
std::string loss_scale_advice(const ScalerRecord& scaler, double loss_scale);

/// Whether each process found finite gradients, and only their sum over processes is not: one
/// process alone cannot show that again.
bool is_sum_over_processes(const FirstNonfinite& first);

/// "the output of encoder.layers.0.ffn.up", "the gradient of the parameter …", …
std::string place_text(const FirstNonfinite& first);

/// "fp32", "tf32", "bf16", "fp16".
std::string compute_name(kernels::Compute compute);

}  // namespace stretto::train
