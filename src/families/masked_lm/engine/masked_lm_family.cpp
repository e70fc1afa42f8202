#include "families/masked_lm/engine/masked_lm_family.h"

#include "families/masked_lm/engine/commands.h"
#include "families/masked_lm/engine/masked_lm.h"
#include "families/text/engine/encoder_family.h"

namespace stretto::tasks {
namespace {

class MaskedLmFamily final : public EncoderFamily {
 public:
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<MaskedLmTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_masked_lm(request, context);
  }
  int infer(const InferRequest& request, const CommandContext& context) const override {
    return fill_masks(request, context);
  }

 protected:
  TextHead head(const experiment::Experiment&, const Assets*) const override {
    return kMaskedTokenHead;
  }
  double head_rows(const experiment::Experiment& experiment, double tokens) const override {
    return tokens * masked_lm_of(experiment).data.mask_probability;
  }
};

}  // namespace

const Family& masked_lm_family() {
  static const MaskedLmFamily family;
  return family;
}

}  // namespace stretto::tasks
