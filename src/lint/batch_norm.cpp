#include <cmath>

#include "base/text.h"
#include "config/schema.h"
#include "experiment/task_rules.h"
#include "lint/rules.h"

namespace stretto::lint::rules {
namespace {

// Below 16 images a worker the error of Wu and He's ResNet-50 begins to rise.
constexpr double kFewSentences = 16;

bool has_batch_norm(const Subject& s) {
  const auto* task = experiment::find_task_rules(s.e);
  return task != nullptr && task->has_batch_norm(s.e);
}

}  // namespace

void few_rows_to_normalise(const Subject& s, Remarks& out) {
  if (!has_batch_norm(s) || s.e.dist.batch_norm == "all") return;
  const double of_tokens =
      static_cast<double>(translation_of(s.e).data.max_tokens) / kTokensPerSentence;
  const auto samples = static_cast<double>(translation_of(s.e).data.max_samples);
  const bool by_samples = samples > 0 && samples < of_tokens;
  const double sentences = by_samples ? samples : of_tokens;
  if (sentences >= kFewSentences) return;
  const std::string raised = by_samples ? "data.max_samples = " + config::number_text(kFewSentences)
                                        : "data.max_tokens = 4096";
  out.push_back({by_samples ? "data.max_samples" : "data.max_tokens",
                 "batch norm takes its mean and variance from one micro-batch, about " +
                     counted(std::llround(sentences), "sentence") +
                     " here: too few to stand for the others",
                 raised + " with train.update_freq lowered in proportion, or dist.batch_norm = "
                          "\"all\" on several processes"});
}

void scaling_of_synchronised(const Subject& s, Remarks& out) {
  if (!has_batch_norm(s) || s.e.dist.batch_norm != "all" || s.scaling != "linear") return;
  out.push_back({"dist.batch_norm",
                 "\"all\" normalises over the micro-batches of all processes together: with "
                 "another number of processes another loss is minimised, for which the linear rule "
                 "says nothing",
                 "dist.batch_norm = \"worker\", or one number of processes and a rate that was "
                 "searched for it (optim.lr_scaling = \"none\")"});
}

void nothing_to_synchronise(const Subject& s, Remarks& out) {
  if (has_batch_norm(s) || s.e.dist.batch_norm != "all") return;
  out.push_back({"dist.batch_norm", "\"all\" has no effect: this model has no batch norm",
                 "model.norm_layer = \"batch_norm\", or leave it out"});
}

}  // namespace stretto::lint::rules
