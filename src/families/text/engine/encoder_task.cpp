#include "families/text/engine/encoder_task.h"

#include <utility>

#include "data/text_columns.h"
#include "models/packed.h"
#include "models/registry.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"

namespace stretto::tasks {

EncoderTask::EncoderTask(const experiment::Experiment& experiment, Assets assets,
                         const TextHead& head, const CommandContext& context)
    : TextTask(experiment, std::move(assets), context) {
  require_head(experiment);
  model_ = make_run_model(experiment, tokenizer(), head, context.device);
}

train::TaskWords EncoderTask::words() const {
  auto words = TextTask::words();
  const auto* model = experiment::encoder_sections(experiment()).model;
  if (model != nullptr && model->norm != "pre") {
    words.stabilising_setting = "model.norm = \"pre\"";
  }
  return words;
}

bool EncoderTask::replaces_all_parts() const {
  if (experiment().train.init_from.empty()) return false;
  const InitialModel theirs(open_initial_run(experiment(), runs::Reading::kHeads));
  return theirs.has_another_head(experiment());
}

int64_t EncoderTask::num_parameters() const {
  return models::num_parameters(*model_);
}

train::Prepared prepare_texts(data::Batch batch, const models::TextModel& model) {
  train::Prepared made(std::move(batch));
  const data::Batch& texts = made;
  made.add(models::pack_text(data::tokens(texts),
                             model.has_segments() ? &data::segments(texts) : nullptr,
                             &texts.sample_ids, at::kCPU));
  return made;
}

void append_text(const text::EncodedText& text, data::Batch& batch) {
  data::tokens(batch).append(text.ids);
  data::segments(batch).append(text.segments);
}

}  // namespace stretto::tasks
