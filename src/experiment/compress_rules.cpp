#include "experiment/compress_rules.h"

#include <string>

#include "base/text.h"
#include "compress/prune_schedule.h"
#include "config/schema.h"
#include "experiment/task_rules.h"
#include "store/quantised.h"

namespace stretto::experiment {
namespace {

void check_prunings(RuleCheck& c) {
  const auto& prune = c.e.compress.prune;
  if (!prune.prunes()) return;
  if (prune.schedule == "cubic" && prune.end < prune.begin + prune.every) {
    c.wrong({"compress.prune.end", "compress.prune.begin", "compress.prune.every",
             "compress.prune.schedule"},
            "from " + with_thousands(prune.begin) + " to " + with_thousands(prune.end) +
                " there is no second pruning, and \"cubic\" needs several",
            "raise it to compress.prune.begin + some times compress.prune.every, or use "
            "compress.prune.schedule = \"once\"");
    return;
  }
  if (c.e.train.stop != "none") {
    c.wrong({"train.stop", "compress.prune.sparsity"},
            "goes by the curve of the losses, and each pruning is a step in it",
            "drop it: what is pruned trains to its end");
  }
  const int64_t last = compress::PruneSchedule(prune).last();
  const int64_t end = c.e.train.max_steps;
  if (end == 0 || last < end) return;
  c.wrong(
      {"compress.prune.sparsity", "compress.prune.schedule", "compress.prune.begin",
       "compress.prune.every", "compress.prune.increment", "compress.prune.end", "train.max_steps"},
      "a share of " + config::number_text(prune.sparsity) + " is reached after " +
          counted(last, "update") + ", and the run ends after " + with_thousands(end),
      "lower compress.prune.every or begin, or raise train.max_steps: what is pruned needs "
      "training after it");
}

void check_rounding(RuleCheck& c) {
  const auto& quantise = c.e.compress.quantise;
  if (!quantise.quantises()) return;
  const store::QuantFormat format{
      .bits = quantise.bits,
      .symmetric = quantise.symmetric,
      .scope = quantise.group == 0 ? store::QuantScope::kRow : store::QuantScope::kGroup,
      .group_size = quantise.group};
  if (const std::string problem = store::format_problem(format); !problem.empty()) {
    c.wrong({"compress.quantise.bits", "compress.quantise.group"}, problem,
            "8 bits with a scale for each row, or 4 bits with compress.quantise.group = 32, are "
            "usual");
  }
  const int64_t end = c.e.train.max_steps;
  if (end > 0 && quantise.begin >= end) {
    c.wrong({"compress.quantise.begin", "train.max_steps"},
            "weights are rounded after " + counted(quantise.begin, "update") +
                ", and the run ends after " + with_thousands(end),
            "lower it");
  }
  if (c.e.optim.weight_noise > 0) {
    c.wrong({"optim.weight_noise", "compress.quantise.bits"},
            "an update has weights with noise or rounded ones, not both",
            "set one of the two to 0");
  }
}

// Without patterns all matrices that train are meant: those that were added are not what is stored.
void check_added_matrices(RuleCheck& c) {
  const TaskRules* rules = find_task_rules(c.e);
  if (rules == nullptr) return;
  const auto* lora = rules->lora(c.e);
  const auto* adapter = rules->adapter(c.e);
  const bool has_lora = lora != nullptr && lora->is_on();
  const std::string added = has_lora ? "model.lora.rank" : "model.adapter.dim";
  if (!has_lora && (adapter == nullptr || !adapter->is_on())) return;
  const auto refuse = [&](const std::string& section, const std::string& key, const char* what) {
    c.wrong({section + key, section + "tensors", added},
            std::string("the matrices that ") + (has_lora ? "model.lora" : "model.adapter") +
                " adds would be " + what + ", and the others stay as they are",
            "name tensors with " + section +
                "tensors, or set it in a run that begins with the "
                "result (train.init_from)");
  };
  const auto& [prune, quantise] = c.e.compress;
  if (prune.prunes() && prune.tensors.empty()) refuse("compress.prune.", "sparsity", "pruned");
  if (quantise.quantises() && quantise.tensors.empty()) {
    refuse("compress.quantise.", "bits", "rounded");
  }
}

}  // namespace

void check_compress(RuleCheck& c) {
  check_prunings(c);
  check_rounding(c);
  check_added_matrices(c);
}

}  // namespace stretto::experiment
