#include "families/question_answering/engine/question_answering_family.h"

#include "families/question_answering/engine/commands.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "families/question_answering/engine/question_answering.h"
#include "families/question_answering/question_data.h"
#include "families/text/engine/encoder_family.h"

namespace stretto::tasks {
namespace {

/// Whether the run's model learns that a paragraph may not answer its question.
bool learns_no_answer(const experiment::Experiment& experiment) {
  const auto& options = experiment::questions_of(experiment).data;
  if (options.version != "auto") return options.version == "2";
  // What data.bad_samples leaves out teaches nothing; a question that data.bad_answers leaves out
  // counts all the same.
  return experiment::has_impossible(
      options.bad_samples == "skip" ? *experiment::open_questions(experiment, options.train).data
                                    : *experiment::open_training_text(experiment).data);
}

class QuestionAnsweringFamily final : public EncoderFamily {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    Assets assets = TextFamily::first_assets(experiment);
    assets.merge(answer_assets(learns_no_answer(experiment.options)));
    return assets;
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<QuestionAnsweringTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_answers(request, context);
  }
  int infer(const InferRequest& request, const CommandContext& context) const override {
    return infer_answers(request, context);
  }

 protected:
  std::unique_ptr<text::LineSource> training_text(
      const experiment::Experiment& experiment) const override {
    return std::make_unique<experiment::QuestionText>(
        [experiment] { return experiment::open_training_text(experiment); });
  }
  TextHead head(const experiment::Experiment& /*experiment*/,
                const Assets* /*assets*/) const override {
    return span_head();
  }
  // The question's rows too, whose number is not known here: a few per cent too many operations.
  double head_rows(const experiment::Experiment& /*experiment*/, double tokens) const override {
    return tokens;
  }
};

}  // namespace

const Family& question_answering_family() {
  static const QuestionAnsweringFamily family;
  return family;
}

}  // namespace stretto::tasks
