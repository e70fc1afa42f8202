#include "families/masked_lm/masked_lm_folders.h"

#include "families/masked_lm/masked_lm_options.h"
#include "families/text/folders/text_folders.h"
#include "interchange/described_experiment.h"

namespace stretto::interchange {
namespace {

/// Encoders that predict masked tokens, and those without a head: what they were pretrained with.
class MaskedLmFolders final : public TextFolders {
 public:
  Head head() const override { return Head::kMaskedTokens; }
  bool has_encoders() const override { return true; }
  experiment::Experiment experiment_of(const ModelDescription& description,
                                       const FolderTexts& texts) const override {
    return described_experiment(
        sections_of_folder<experiment::MaskedLmOptions>(description, texts));
  }
};

}  // namespace

const ModelFolders& masked_lm_folders() {
  static const MaskedLmFolders folders;
  return folders;
}

}  // namespace stretto::interchange
