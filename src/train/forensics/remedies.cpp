#include "train/forensics/remedies.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "store/checkpoint.h"

namespace stretto::train {

std::filesystem::path newest_checkpoint(const std::filesystem::path& run_directory, int64_t step) {
  try {
    const auto steps = store::CheckpointStore(run_directory).steps();
    const auto end = std::ranges::upper_bound(steps, step);
    if (end != steps.begin())
      return run_directory / "checkpoints" / store::step_name(*std::prev(end));
  } catch (const std::exception&) {  // a folder that cannot be read has nothing to offer
  }
  return {};
}

bool may_clip(const AdviceContext& run) {
  return run.clip_norm == 0 || run.clip_norm > 1;
}

std::string stabilising_settings(const AdviceContext& run) {
  std::vector<std::string> values{"a lower optim.lr"};
  if (may_clip(run)) values.emplace_back("optim.clip_norm = 1.0");
  return join(values, ", ") + " or a longer schedule.warmup_steps";
}

std::string place_of_other_values(const AdviceContext& run) {
  const std::string from =
      run.checkpoint.empty() ? "" : " train.init_from=" + run.checkpoint.string();
  return "this run's folder keeps its values: give others to a new run (--run NEW" + from + ")";
}

std::string rollback_instead(const AdviceContext& run) {
  if (run.rolls_back || run.checkpoint.empty()) return "";
  return "; or resume this run with train.forensics.policy=rollback";
}

}  // namespace stretto::train
