#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "train/forensics/forensics_report.h"

namespace stretto::train {
namespace {

// How the name of a sum over processes ends: see TensorKind::kSum.
constexpr const char* kOver = " over ";
constexpr const char* kSentAsFp16 = ", sent as fp16 (dist.compress)";

constexpr size_t kSamplesShown = 8, kGradientsInText = 3, kWeightsShown = 3;

std::string list_of(const std::vector<int64_t>& ids) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(ids.size(), kSamplesShown); ++i) {
    shown.push_back(std::to_string(ids[i]));
  }
  std::string text = join(shown, ", ");
  if (ids.size() > kSamplesShown) {
    text += " and " + std::to_string(ids.size() - kSamplesShown) + " more";
  }
  return text;
}

std::string power_of_two(double value) {
  if (value <= 0) return "0";
  return shortest(static_cast<double>(static_cast<float>(value))) + " (2^" +
         std::to_string(static_cast<int>(std::floor(std::log2(value)))) + ")";
}

std::string batch_line(const NonfiniteReport& report, const UpdateRecord& record,
                       const TaskWords& words) {
  if (report.micro_batch < 0) return "";
  const auto at = static_cast<size_t>(report.micro_batch);
  std::string text = "\n  micro-batch " + std::to_string(at + 1) + " of " +
                     std::to_string(report.micro_batches.size());
  if (at < record.positions.size()) {
    text += " (epoch " + std::to_string(record.positions[at].epoch + 1) + ", index " +
            std::to_string(record.positions[at].index) + ")";
  }
  const auto& all = report.micro_batches[at].sample_ids;
  if (!report.samples.empty()) {
    return text + ": of its " +
           counted(static_cast<int64_t>(all.size()), words.sample, words.samples) + " " +
           std::to_string(report.samples.size()) + " alone " +
           (report.samples.size() == 1 ? "makes" : "make") + " it so, sample " +
           list_of(report.samples);
  }
  return text + ", samples " + list_of(all) +
         (report.weights.empty() ? ": no single " + words.sample + " makes it so" : "");
}

std::string peak_list(const std::vector<GradientPeak>& peaks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(peaks.size(), kGradientsInText); ++i) {
    parts.push_back(peaks[i].name + " " +
                    (peaks[i].num_nonfinite > 0
                         ? with_thousands(peaks[i].num_nonfinite) + " not finite"
                         : power_of_two(peaks[i].max_abs)));
  }
  return join(parts, ", ");
}

std::string gradient_lines(const NonfiniteReport& report) {
  std::string text;
  if (!report.gradients.empty()) text += "\n  gradients: " + peak_list(report.gradients);
  if (!report.layers.empty()) {
    auto layers = report.layers;
    std::stable_sort(layers.begin(), layers.end(), larger_peak);
    text += "\n  by layer: " + peak_list(layers);
  }
  return text;
}

std::string weight_line(const NonfiniteReport& report) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(report.weights.size(), kWeightsShown); ++i) {
    parts.push_back(report.weights[i].name + " (" + with_thousands(report.weights[i].count) + ")");
  }
  if (report.weights.size() > kWeightsShown) {
    parts.push_back("and " + std::to_string(report.weights.size() - kWeightsShown) + " more");
  }
  return parts.empty() ? "" : "\n  weights that are not finite themselves: " + join(parts, ", ");
}

// A loss scale that is too large, in front of what else may help.
std::string scale_text(const NonfiniteReport& report, const UpdateRecord& record) {
  if (report.loss_scale <= 1) return "";
  const std::string advice = loss_scale_advice(record.scaler, report.loss_scale);
  if (!advice.empty()) return advice;
  return record.scaler.name.empty() ? "a smaller train.loss_scale.init or .max may help"
                                    : "the scaler lowers it";
}

// What each process had was finite.
std::string advice_on_sum(const NonfiniteReport& report, const UpdateRecord& record) {
  const std::string scale = scale_text(report, record);
  const std::string scaled =
      scale.empty() ? "" : "; loss scale " + shortest(report.loss_scale) + ": " + scale;
  if (report.first.name.ends_with(kSentAsFp16)) {
    return "each process's gradients were finite, but fp16 ends at 65504: try dist.compress = "
           "\"bf16\", which has the range of fp32, or \"none\"" +
           scaled;
  }
  return std::string("each ") +
         (is_sum_over_processes(report.first) ? "process's" : "micro-batch's") +
         " gradients were finite, their sum left the range of fp32" + scaled +
         "; try a lower optim.lr or a longer schedule.warmup_steps";
}

// A checkpoint that has them too would be no place to go back to: the run knows which has not.
std::string advice_on_weights(const AdviceContext& run) {
  const std::string spoilt = "the weights are spoilt: ";
  if (run.rolls_back && !run.checkpoint.empty()) {
    return spoilt +
           "train.forensics.policy = \"rollback\" goes back to a checkpoint where they "
           "were not, with a smaller learning rate";
  }
  return spoilt + "try " + stabilising_settings(run) + "; " + place_of_other_values(run) +
         rollback_instead(run);
}

std::string advice_on_samples(const AdviceContext& run) {
  const std::string& odd = run.words.odd_samples;
  return "look at these " + run.words.samples + ", which `stretto replay` prints" +
         (odd.empty() ? "" : " (" + odd + ")") + "; a lower optim.lr " +
         (may_clip(run) ? "or optim.clip_norm = 1.0 " : "") + "makes the model calmer";
}

// At most half of the micro-batch.
bool few_samples(const NonfiniteReport& report) {
  return !report.samples.empty() && report.micro_batch >= 0 &&
         report.samples.size() * 2 <=
             report.micro_batches[static_cast<size_t>(report.micro_batch)].sample_ids.size();
}

std::string advice(const NonfiniteReport& report, const UpdateRecord& record,
                   const AdviceContext& run) {
  if (!report.found()) {
    return record.world_size > 1
               ? "run again by each process alone, every value was finite: the sum over processes, "
                 "which one process cannot show, or the machine (memory, overclocking)"
               : "run again, every value was finite: doubt the machine (memory, overclocking) "
                 "before the model";
  }
  if (!report.weights.empty()) return advice_on_weights(run);
  if (report.first.kind == TensorKind::kSum) return advice_on_sum(report, record);
  const bool in_forward = report.first.kind == TensorKind::kOutput;
  const std::string scale = in_forward ? "" : scale_text(report, record);
  if (report.compute == kernels::Compute::kFp16) {
    if (in_forward) {
      return "fp16 ends at 65504: try train.precision = \"mixed_bf16\", which has the range of "
             "fp32, or \"fp32\"";
    }
    return "fp16 ends at 65504 and the loss scale is " + shortest(report.loss_scale) + ": " +
           (scale.empty() ? "try a lower optim.lr, or train.precision = \"mixed_bf16\""
                          : scale + "; if this goes on, train.precision = \"mixed_bf16\"");
  }
  if (few_samples(report)) return advice_on_samples(run);
  const std::string calmer =
      "try " + stabilising_settings(run) +
      (run.words.stabilising_setting.empty() ? "" : ", or " + run.words.stabilising_setting);
  if (scale.empty()) return calmer;
  return calmer + "; loss scale " + shortest(report.loss_scale) + ": " + scale +
         "; outside of fp16 train.loss_scale.name = \"none\" will do";
}

}  // namespace

std::string loss_scale_advice(const ScalerRecord& scaler, double loss_scale) {
  if (loss_scale <= 1) return "";
  if (scaler.name == "static") {
    return "lower train.loss_scale.init, " + shortest(loss_scale) +
           ", or use train.loss_scale.name = \"fairseq\", which finds the scale by itself";
  }
  if (scaler.name.empty() || scaler.next < loss_scale) return "";
  return "lower train.loss_scale.min, below which the scaler may not go";
}

bool is_sum_over_processes(const FirstNonfinite& first) {
  return first.kind == TensorKind::kSum && first.name.find(kOver) != std::string::npos;
}

std::string place_text(const FirstNonfinite& first) {
  switch (first.kind) {
    case TensorKind::kNone:
      return "nothing";
    case TensorKind::kOutput:
      return first.name == "loss" ? "the loss" : "the output of " + first.name + " (forward)";
    case TensorKind::kOutputGradient:
      return "the gradient of the output of " + first.name + " (backward)";
    case TensorKind::kParameterGradient:
      return "the gradient of " + first.name + " (backward)";
    case TensorKind::kSum:
      return (is_sum_over_processes(first) ? "the sum of the gradient of "
                                           : "the sum over micro-batches of the gradient of ") +
             first.name;
  }
  return "";
}

std::string report_to_text(const NonfiniteReport& report, const UpdateRecord& record,
                           const ReportAdvice& known) {
  std::string text = "step " + with_thousands(record.step) + ": ";
  if (report.found()) {
    text += "first not finite was " + place_text(report.first);
    if (!report.first.last_finite.empty()) {
      text += "; the last finite tensor before it was that of " + report.first.last_finite;
    }
  } else {
    text += "the loss or a gradient was not finite";
  }
  text += " (" + compute_name(report.compute) + ", loss scale " + shortest(report.loss_scale) +
          ", lr " + shortest(record.lr) + ")";
  text +=
      weight_line(report) + batch_line(report, record, known.run.words) + gradient_lines(report);
  if (known.in_fp32 != nullptr && report.found()) {
    return text +
           "\n  in fp32 it is not finite either: " + advice(*known.in_fp32, record, known.run);
  }
  return text + "\n  " + advice(report, record, known.run);
}

}  // namespace stretto::train
