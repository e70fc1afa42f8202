#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/start_memory.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "experiment/data_files.h"
#include "parallel/carry.h"
#include "runs/checkpoint_tensors.h"
#include "runs/provenance.h"
#include "runs/run_data.h"
#include "runs/run_folder.h"
#include "tasks/registry.h"
#include "train/forensics/forensics_report.h"
#include "train/frozen_parts.h"

namespace stretto::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFiniteNow = 1;
constexpr size_t kSamplesListed = 8, kReportsShown = 8;

/// One way in which the update was run again.
struct Attempt {
  std::string name;
  train::NonfiniteReport report;
};

/// A sample that alone makes the update non-finite.
struct NonfiniteSample {
  int64_t sample = 0;
  std::vector<std::pair<std::string, std::string>> parts;  ///< train::Task::show()
};

// Names of the reports that other ranks made of the same update.
std::vector<std::string> other_reports(const std::filesystem::path& file) {
  std::vector<std::string> names;
  for (const auto& path : train::reports_beside(file)) {
    if (path.filename() != file.filename()) names.push_back(path.filename().string());
  }
  return names;
}

// A replay is one process: of several ranks it runs one.
std::string rank_line(const train::SavedReport& saved, std::vector<std::string> others) {
  const auto& record = saved.record;
  if (record.world_size == 1) return "";
  std::string text = "rank " + std::to_string(record.rank) + " of " +
                     std::to_string(record.world_size) +
                     " processes: its micro-batches run again, those of the others do not";
  if (saved.report.first.kind == train::TensorKind::kSum) {
    text += ", and nothing is summed over processes";
  }
  if (others.empty()) return text + "; no other rank wrote a report of this update\n";
  const size_t count = others.size();
  others.resize(std::min(count, kReportsShown));
  text += "; other ranks' reports beside it: " + join(others, ", ");
  if (count > kReportsShown) text += " and " + std::to_string(count - kReportsShown) + " more";
  return text + "\n";
}

// Each of several losses was divided by a number of its own; a single one by none.
void require_losses_of(const train::SavedReport& saved, const std::string& file,
                       const train::Task& task) {
  const auto& divisors = saved.report.divisors;
  if (divisors.empty()) return;
  const auto refuse = [&](const std::string& what) {
    throw Error(ExitCode::kBadData, file + " has " + what,
                "the report is damaged: take another one of the run's forensics folder");
  };
  const auto is_sound = [](double divisor) { return divisor >= 0 && std::isfinite(divisor); };
  const auto divides = [](double divisor) { return divisor > 0; };
  if (!std::all_of(divisors.begin(), divisors.end(), is_sound) ||
      std::none_of(divisors.begin(), divisors.end(), divides)) {
    refuse("a divisor that no update divides by");
  }
  if (divisors.size() == task.losses().size()) return;
  refuse("divisors of " + counted(static_cast<int64_t>(divisors.size()), "loss", "losses") +
         ", the run has " + std::to_string(task.losses().size()));
}

// Samples get other numbers with another tokenizer, and weights mean nothing with them.
void require_tokenizer_of(const train::SavedReport& saved, const std::string& file,
                          const std::map<std::string, std::string>& assets,
                          const std::filesystem::path& folder) {
  const auto difference =
      runs::tokenizer_difference(saved.record.tokenizer, runs::tokenizer_hashes(assets));
  if (difference.empty()) return runs::require_listed_files(saved.record.tokenizer, folder, file);
  throw Error(
      ExitCode::kBadData,
      file + " was made with another tokenizer than there is: " + (folder / difference).string(),
      "put the tokenizer of this run back, from a copy of the run folder; sha256sum shows "
      "whether it is the right one");
}

// A micro-batch as it was, or the part of it that was left when memory ran out.
data::Batch load_batch(train::Task& task, data::Position at,
                       const std::vector<int64_t>& sample_ids) {
  const data::BatchSource& source = task.train_batches();
  if (at.epoch >= 0 && at.index >= 0 && at.index < source.num_batches()) {
    const data::Batch whole = source.load_for_training(at.epoch, at.index);
    const auto& ids = whole.sample_ids;
    const auto found = std::search(ids.begin(), ids.end(), sample_ids.begin(), sample_ids.end());
    const int64_t begin = found - ids.begin();
    if (found != ids.end()) {
      return data::part(whole, begin, begin + static_cast<int64_t>(sample_ids.size()));
    }
  }
  throw Error(ExitCode::kBadData,
              "micro-batch " + std::to_string(at.index) + " of epoch " +
                  std::to_string(at.epoch + 1) + " holds other " + task.words().samples +
                  " than the report says",
              "the training data have changed since, or the report is of another run");
}

// As it was; and, where half precision took part, what is left of it without.
std::vector<Attempt> run_attempts(train::Task& task, optim::Arena& arena,
                                  const train::SavedReport& saved,
                                  const std::vector<data::Batch>& batches) {
  const auto examine_with = [&](double scale, kernels::Compute compute) {
    return train::examine(task, arena, batches, saved.report.context, scale, compute,
                          saved.report.divisors);
  };
  const auto& was = saved.report;
  std::vector<Attempt> attempts{{"as recorded", examine_with(was.loss_scale, was.compute)}};
  if (kernels::is_half(was.compute) && was.loss_scale != 1) {
    attempts.push_back({"with loss scale 1", examine_with(1, was.compute)});
  }
  if (was.compute != kernels::Compute::kFp32) {
    attempts.push_back({"in fp32", examine_with(1, kernels::Compute::kFp32)});
  }
  return attempts;
}

std::vector<NonfiniteSample> find_nonfinite_samples(const train::NonfiniteReport& report,
                                                    const std::vector<data::Batch>& batches,
                                                    const train::Task& task) {
  std::vector<NonfiniteSample> found;
  if (report.samples.empty()) return found;
  const auto& batch = batches[static_cast<size_t>(report.micro_batch)];
  for (int64_t i = 0; i < batch.num_sequences() && found.size() < kSamplesListed; ++i) {
    const int64_t sample = batch.sample_ids[static_cast<size_t>(i)];
    if (std::find(report.samples.begin(), report.samples.end(), sample) != report.samples.end()) {
      found.push_back({.sample = sample, .parts = task.show(batch, i)});
    }
  }
  return found;
}

bool same_place(const train::FirstNonfinite& a, const train::FirstNonfinite& b) {
  return a.kind == b.kind && a.name == b.name;
}

std::string outcome(const Attempt& attempt) {
  return attempt.report.found() ? "not finite, first " + train::place_text(attempt.report.first)
                                : "finite";
}

// What the configuration has in force, and the checkpoint of the report if it is still there.
train::AdviceContext advice_context(const ReplayRequest& request, const train::SavedReport& saved,
                                    const train::Task& task) {
  const auto& experiment = request.experiment.options;
  const auto checkpoint =
      std::filesystem::path(request.run_directory) / "checkpoints" / saved.record.checkpoint;
  std::error_code error;
  const bool is_there =
      !saved.record.checkpoint.empty() && std::filesystem::exists(checkpoint, error);
  return {.clip_norm = experiment.optim.clip_norm,
          .rolls_back = experiment.train.forensics.policy == "rollback",
          .checkpoint = is_there ? checkpoint : std::filesystem::path(),
          .words = task.words()};
}

// Precision is not to blame for what fp32 does not mend.
const train::NonfiniteReport* in_fp32_too(const std::vector<Attempt>& attempts) {
  const auto& last = attempts.back().report;
  const bool is_another = attempts.size() > 1 && last.compute == kernels::Compute::kFp32;
  return is_another && last.found() ? &last : nullptr;
}

// Two parts are what goes in and what is to come out; any others need their names.
std::string parts_text(const std::vector<std::pair<std::string, std::string>>& parts) {
  constexpr size_t kMost = 1000;  // bytes
  if (parts.size() == 2) {
    return printable(parts[0].second, kMost) + " -> " + printable(parts[1].second, kMost);
  }
  std::vector<std::string> named;
  for (const auto& [name, text] : parts) named.push_back(name + ": " + printable(text, kMost));
  return join(named, "; ");
}

/// All that is said at the end.
struct Replayed {
  const train::SavedReport& saved;
  const std::vector<Attempt>& attempts;
  const std::vector<NonfiniteSample>& nonfinite_samples;
  const train::Task& task;
};

void print_text(const ReplayRequest& request, const Replayed& replayed) {
  const auto& [saved, attempts, nonfinite_samples, task] = replayed;
  const auto& now = attempts.front().report;
  std::cout << train::report_to_text(
                   now, saved.record,
                   {.run = advice_context(request, saved, task), .in_fp32 = in_fp32_too(attempts)})
            << "\n\n"
            << rank_line(saved, other_reports(request.file));
  for (const auto& attempt : attempts)
    std::cout << attempt.name << ": " << outcome(attempt) << "\n";
  for (const auto& nonfinite : nonfinite_samples) {
    std::cout << "sample " << nonfinite.sample << ": " << parts_text(nonfinite.parts) << "\n";
  }
  if (!now.found()) {
    std::cout << "not reproduced: the values are finite now"
              << (train::is_sum_over_processes(saved.report.first)
                      ? "; training saw it in the sum over processes alone, which one process "
                        "cannot show"
                      : "")
              << "\n";
  } else if (same_place(now.first, saved.report.first)) {
    std::cout << "reproduced\n";
  } else {
    std::cout << "not finite again, but training saw it first in "
              << train::place_text(saved.report.first) << "\n";
  }
  std::cout.flush();
}

void print_replay(const std::string& file, const Replayed& replayed) {
  const auto& [saved, attempts, nonfinite_samples, task] = replayed;
  const std::string samples = task.words().samples;  // they are the key of a list
  const auto& now = attempts.front().report;
  Json json{{"file", file},
            {"step", saved.record.step},
            {"rank", saved.record.rank},
            {"world_size", saved.record.world_size},
            {"other_reports", other_reports(file)},
            {"reproduced", now.found()},
            {"same_tensor", same_place(now.first, saved.report.first)},
            {"trials", Json::array()},
            {samples, Json::array()}};
  for (const auto& attempt : attempts) {
    // The same fields as in the file itself.
    const auto found = Json::parse(train::report_to_json(attempt.report, saved.record, ""));
    json["trials"].push_back({{"name", attempt.name},
                              {"precision", found.at("precision")},
                              {"loss_scale", found.at("loss_scale")},
                              {"finite", !attempt.report.found()},
                              {"first", found.at("first")},
                              {"micro_batch", found.at("micro_batch")},
                              {"samples", found.at("samples")},
                              {"largest_gradients", found.at("largest_gradients")},
                              {"layer_gradients", found.at("layer_gradients")}});
  }
  for (const auto& nonfinite : nonfinite_samples) {
    Json entry = Json::object();
    entry["sample"] = nonfinite.sample;
    for (const auto& [name, text] : nonfinite.parts) entry[name] = text;
    json[samples].push_back(std::move(entry));
  }
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

}  // namespace

int run_replay(const ReplayRequest& request) {
  const auto& experiment = request.experiment.options;
  const auto folder = runs::RunFolder::open(request.run_directory);
  auto saved = train::read_report(request.file);
  if (saved.record.run_id != folder.run_id()) {
    throw Error(ExitCode::kBadData,
                request.file + " is a report of another run than " + request.run_directory,
                "leave reports in the forensics folder of their run");
  }
  const auto assets = folder.read_assets();
  require_tokenizer_of(saved, request.file, assets, folder.directory() / "tokenizer");
  // What training remembers of its files, and what is hashed here, is not hashed again.
  const data::StartMemory start_memory;
  runs::require_data_of_step(folder, experiment::data_files_of(experiment),
                             experiment::digest_setting_of(experiment), saved.record.step);
  const at::Device device = prepare_process(experiment);
  const auto made =
      tasks::family_of(experiment).make_task(experiment, assets, {.group = {}, .device = device});
  train::Task& task = *made;
  require_losses_of(saved, request.file, task);
  const auto parts = train::freeze_parts(task, experiment.train.freeze, experiment.train.unfreeze);
  optim::Arena arena(task.model(), optim::Arena::Gradients::kAllocated, parts.late);
  if (saved.record.updates >= 0) arena.train_after(saved.record.updates);
  runs::load_weights(store::SafetensorsFile(saved.weights), saved.weights.string(), arena);
  parallel::Carry carry(task.carry(), {});
  train::load_carry(saved, carry);
  if (!carry.empty()) saved.report.context.carry = &carry;
  const auto& hash = saved.record.weights_hash;
  if (!hash.empty() && hash != hex64(arena.weights_hash())) {
    log::warn("rank " + std::to_string(saved.record.rank) +
              " had other weights than those beside " +
              "the report, which are rank 0's: its memory or its network card may be faulty");
  }
  std::vector<data::Batch> batches;
  for (size_t i = 0; i < saved.record.positions.size(); ++i) {
    batches.push_back(
        load_batch(task, saved.record.positions[i], saved.report.micro_batches[i].sample_ids));
  }
  log::info("step " + with_thousands(saved.record.step) + " of " + request.run_directory + " on " +
            device.str() +
            (device.str() == saved.record.device.substr(0, device.str().size())
                 ? ""
                 : "; training ran on " + saved.record.device));
  const auto attempts = run_attempts(task, arena, saved, batches);
  const auto nonfinite_samples = find_nonfinite_samples(attempts.front().report, batches, task);
  const Replayed replayed{saved, attempts, nonfinite_samples, task};
  if (request.json) {
    print_replay(request.file, replayed);
  } else {
    print_text(request, replayed);
  }
  return attempts.front().report.found() ? 0 : kFiniteNow;
}

}  // namespace stretto::engine
