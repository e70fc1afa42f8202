#include "train/forensics/update_forensics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "store/checkpoint.h"
#include "train/forensics/forensics.h"
#include "train/forensics/rank_reports.h"

namespace stretto::train {
namespace {

constexpr size_t kScalesKept = 100;

}  // namespace

UpdateForensics::UpdateForensics(Task& task, optim::Arena& arena, Updater& updater,
                                 distributed::ProcessGroup group, UpdateForensicsSetup setup)
    : task_(task),
      arena_(arena),
      updater_(updater),
      group_(std::move(group)),
      setup_(std::move(setup)) {}

void UpdateForensics::note_scale(double loss_scale) {
  loss_scales_.push_back(loss_scale);
  if (loss_scales_.size() > kScalesKept) loss_scales_.erase(loss_scales_.begin());
}

std::string UpdateForensics::examine(const FailedAttempt& failed) {
  // Examined and saved are the weights that the update computed with: a replay has them too.
  const optim::NoisyWeights noisy = updater_.noisy_weights(failed.step - 1);
  RankFindings mine{.found = {},
                    .record = record_of(failed),
                    .overflowed_sum = {},
                    .run = advice_context(failed.good_step),
                    .loss_finite = std::isfinite(failed.update.totals.loss()),
                    .half_sums = setup_.compress == "fp16",
                    .carry = updater_.gather_carry().states()};
  mine.found = examine_or_warn([&] {
    mine.overflowed_sum = overflowed_sum();  // now, since the examination clears the gradients
    mine.record.weights_hash = hex64(arena_.weights_hash());
    const std::vector<data::Batch> batches(updater_.batches().begin(), updater_.batches().end());
    return train::examine(task_, arena_, batches, updater_.context_of(failed.step - 1),
                          failed.update.loss_scale, setup_.compute, updater_.divisors());
  });
  return gather_reports(group_, setup_.run_directory, std::move(mine), arena_);
}

// The loss scale acts on gradients alone.
std::string UpdateForensics::advice_on_scale(const UpdateResult& update,
                                             const std::string& scaler_says) const {
  if (!std::isfinite(update.totals.loss())) return "";
  const auto& scaler = updater_.scaler();
  std::string advice = scaler_says.empty()
                           ? loss_scale_advice({scaler.name(), scaler.scale()}, update.loss_scale)
                           : scaler_says;
  if (setup_.compute == kernels::Compute::kFp16) {
    advice += std::string(advice.empty() ? "" : "; or ") +
              "use train.precision = \"mixed_bf16\", which has the range of fp32, or \"fp32\"";
  }
  return advice;
}

AdviceContext UpdateForensics::advice_context(int64_t good_step) const {
  return {.clip_norm = setup_.clip_norm,
          .rolls_back = setup_.rolls_back,
          .checkpoint = newest_checkpoint(setup_.run_directory, good_step),
          .words = task_.words()};
}

// The first parameter whose gradient, summed over processes, is not finite, as far as this rank has
// that sum: the rest of its arena is unspecified.
std::string UpdateForensics::overflowed_sum() const {
  if (group_.size() == 1) return "";
  const optim::Slice owned = updater_.owned();
  for (const auto& slot : arena_.slots()) {
    const optim::Slice part = optim::part_in(slot, owned);
    if (part.size() == 0 ||
        at::isfinite(arena_.grads().narrow(0, part.begin, part.size())).all().item<bool>()) {
      continue;
    }
    const auto& type = setup_.compress;
    return slot.name + " over " + std::to_string(group_.size()) + " processes" +
           (type == "none" ? "" : ", sent as " + type + " (dist.compress)");
  }
  return "";
}

UpdateRecord UpdateForensics::record_of(const FailedAttempt& failed) const {
  return {.run_id = setup_.identity.run_id,
          .config_hash = setup_.identity.config_hash,
          .step = failed.step,
          .rank = group_.rank(),
          .world_size = group_.size(),
          .positions = updater_.positions(),
          .lr = failed.lr,
          .checkpoint = failed.good_step > 0 ? store::step_name(failed.good_step) : "",
          .loss_scales = loss_scales_,
          .device = arena_.params().device().str(),
          .tokenizer = setup_.identity.tokenizer,
          .scaler = {updater_.scaler().name(), updater_.scaler().scale()},
          .updates = arena_.has_late() ? updater_.completed() : -1};
}

}  // namespace stretto::train
