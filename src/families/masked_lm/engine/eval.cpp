#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "families/masked_lm/engine/commands.h"
#include "families/masked_lm/engine/masked_lm.h"
#include "families/masked_lm/requests.h"
#include "families/text/engine/eval_files.h"
#include "families/text/engine/run_model.h"
#include "families/text/text_sections.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

void print_masked_score(const MaskedScore& score, const std::string& checkpoint,
                        const std::string& set, bool json) {
  if (json) {
    nlohmann::ordered_json out{{"set", set}, {"checkpoint", checkpoint}};
    for (const auto& [name, value] : masked_scores(score.nll, score.accuracy)) out[name] = value;
    out["masked_tokens"] = score.masked_tokens;
    out["tokens"] = score.tokens;
    std::cout << out.dump() << std::endl;
    return;
  }
  std::cout << "nll " << fixed(score.nll, 4) << "  ppl " << fixed(std::exp(score.nll), 2)
            << " (exp of nll)  accuracy " << fixed(score.accuracy, 4) << "  masked tokens "
            << with_thousands(score.masked_tokens) << " of " << with_thousands(score.tokens)
            << std::endl;
}

}  // namespace

int evaluate_masked_lm(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  require_head(experiment);  // whatever text there is
  const auto& data = masked_lm_of(experiment).data;
  const EvalFiles set = eval_files(request.own.as<MaskedLmEvalFiles>().data, data.test, data.valid);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run = load_masked_lm(experiment, folder, request.checkpoint, context.device);
  const auto& group = context.group;
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) log::info("checkpoint " + checkpoint + ", " + set.name + " text");
  const auto text = open_masked_text(experiment, *run.tokenizer.tokenizer, set.paths, set.key);
  if (group.is_root()) warn_of_left_out(text.sequences->documents().left_out());
  distributed::require_agreement(
      group, {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
              {"text", hex64(text.sequences->documents().key()) + " of " +
                           counted(text.sequences->size(), "text")}});
  const auto batches = masked_eval_batches(experiment, text, context.device);
  const MaskedScore score =
      score_masked(*run.models.front(), *batches,
                   {.device = context.device,
                    .group = group,
                    .loading = experiment::text_sections(experiment).loading});
  if (!std::isfinite(score.nll)) {
    refuse_not_finite(set.name + " text", "its nll", request.run_directory);
  }
  if (group.is_root()) print_masked_score(score, checkpoint, set.name, request.json);
  return 0;
}

}  // namespace stretto::tasks
