#pragma once

#include <memory>
#include <string>
#include <vector>

#include "families/text/encoder_sections.h"
#include "families/text/engine/run_model.h"
#include "families/text/engine/text_task.h"
#include "text/encoded_text.h"
#include "train/prepared.h"

namespace stretto::tasks {

/// What the tasks on encoded texts share: a TextTask whose model is a TextModel.
class EncoderTask : public TextTask {
 public:
  torch::nn::Module& model() override { return *model_; }
  std::vector<optim::TiedName> tied_names() const override { return model_->tied_names(); }
  train::TaskWords words() const override;
  std::vector<std::string> replaceable_parts() const override { return text_parts_of_tasks(); }
  bool replaces_all_parts() const override;

 protected:
  /// Makes the model. Throws Error(kUsage) where it has no head.
  /// @param assets  all files of the run
  EncoderTask(const experiment::Experiment& experiment, Assets assets, const TextHead& head,
              const CommandContext& context);

  int64_t num_parameters() const override;
  std::vector<models::VocabularyTable> vocabulary_tables() const override {
    return model_->vocabulary_tables();
  }

  models::TextModel& text_model() const { return *model_; }
  std::shared_ptr<models::TextModel> shared_model() const { return model_; }

 private:
  std::shared_ptr<models::TextModel> model_;
};

/// A batch of texts (data/text_columns.h) with its tokens as rows(0), and their segments where the
/// model has vectors for them; a family adds what its loss reads.
train::Prepared prepare_texts(data::Batch batch, const models::TextModel& model);

/// Appends one encoded text as one more sample of a batch; columns of a family are its own matter.
void append_text(const text::EncodedText& text, data::Batch& batch);

}  // namespace stretto::tasks
