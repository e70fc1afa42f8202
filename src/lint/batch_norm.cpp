#include <cmath>

#include "base/text.h"
#include "config/schema.h"
#include "lint/rules.h"

namespace stretto::lint::rules {
namespace {

// Below 16 images a worker the error of Wu and He's ResNet-50 begins to rise.
constexpr double kFewSamples = 16;
// The default of data.max_tokens.
constexpr double kUsualTokens = 4096;

}  // namespace

void few_rows_to_normalise(const Subject& s, Remarks& out) {
  if (!s.task.has_batch_norm(s.e) || s.e.dist.batch_norm == "all") return;
  const auto samples = s.task.samples_of_micro_batch(s.e);
  if (samples.usual_size == 0) return;
  const double of_bound = static_cast<double>(s.micro_batch.value) / samples.usual_size;
  const auto most = static_cast<double>(samples.most);
  const bool by_samples = most > 0 && most <= of_bound;
  const double number = by_samples ? most : of_bound;
  if (number >= kFewSamples) return;
  const std::string& key = by_samples ? samples.key : s.micro_batch.key;
  const double enough =
      s.micro_batch.unit == "tokens" ? kUsualTokens : kFewSamples * samples.usual_size;
  out.push_back({key,
                 "batch norm takes its mean and variance from one micro-batch, about " +
                     counted(std::llround(number), samples.unit) +
                     " here: too few to stand for the others",
                 key + " = " + config::number_text(by_samples ? kFewSamples : enough) +
                     " with train.update_freq lowered in proportion, or dist.batch_norm = \"all\" "
                     "on several processes"});
}

void scaling_of_synchronised(const Subject& s, Remarks& out) {
  if (!s.task.has_batch_norm(s.e) || s.e.dist.batch_norm != "all" || s.scaling != "linear") return;
  out.push_back({"dist.batch_norm",
                 "\"all\" normalises over the micro-batches of all processes together: with "
                 "another number of processes another loss is minimised, for which the linear rule "
                 "says nothing",
                 "dist.batch_norm = \"worker\", or one number of processes and a rate that was "
                 "searched for it (optim.lr_scaling = \"none\")"});
}

void nothing_to_synchronise(const Subject& s, Remarks& out) {
  if (s.task.has_batch_norm(s.e) || s.e.dist.batch_norm != "all") return;
  const std::string setting = s.task.batch_norm_setting();
  out.push_back({"dist.batch_norm", "\"all\" has no effect: this model has no batch norm",
                 (setting.empty() ? "" : setting + ", or ") + "leave it out"});
}

}  // namespace stretto::lint::rules
